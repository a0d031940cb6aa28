//! Nothing secret outlives the call that used it (K24): the dead stack and the registers after every
//! operation, and the memory of keys after their drop.
//!
//! Each operation runs on painted stack. What it leaves is searched, at every byte, for eight bytes of
//! the key, of the one-time key in the forms that the kernels give it, of the keystream and of the
//! plaintext. All of them come from the big-integer oracle.
//!
//! It is a promise about optimised code, and this file's profile is optimised (Cargo.toml): without
//! optimisation each helper has a frame of its own, deeper than any that is cleared. Built with
//! `--cfg chapoly_fault="no_wipe"` these tests must fail.
#![allow(unsafe_code)]

mod common;
mod oracle;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use core::hint::black_box;
use core::mem::ManuallyDrop;
use std::alloc::System;
use std::collections::HashMap;

use num_bigint::BigUint;
#[cfg(feature = "rustls")]
use rustls::{SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite};
use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Error, TAG_LEN, Tag};
#[cfg(feature = "rustls")]
use rustls_chapoly::over_with_backend;

use oracle::{chacha20_block, one_time_key, prime, r};

#[test]
fn operations_leave_nothing() {
    for backend in Backend::available() {
        for len in lens() {
            let message = Message::new(len);
            let secrets = message.secrets();
            for (operation, left) in message.operations(backend) {
                secrets.assert_none_in(&left, &format!("{operation} of {len} bytes, {backend}"));
            }
        }
    }
}

/// The key's own memory, and what dropping it leaves on the stack.
#[test]
fn drop_wipes_the_key() {
    for backend in Backend::available() {
        let message = Message::new(0);
        let mut key = ManuallyDrop::new(ChaCha20Poly1305::with_backend(&message.key, backend));
        // SAFETY: dropped once, and no longer used as a key
        let left = left_by(&mut || unsafe { ManuallyDrop::drop(&mut key) });
        message.secrets().assert_none_in(&left, "drop");

        let place = (&raw const key).cast::<u8>();
        let memory: Vec<u8> = (0..size_of::<ChaCha20Poly1305>())
            .map(|at| place.wrapping_add(at))
            // SAFETY: within `key`; a volatile read of what may be padding takes whatever is there
            .map(|byte| unsafe { byte.read_volatile() })
            .collect();
        let left = Left { stack: memory, registers: Vec::new() };
        message.secrets().assert_none_in(&left, "the memory of a dropped key");
        assert!(left.stack.windows(32).any(|bytes| bytes == [0; 32]));
    }
}

/// The keystream block behind a QUIC header protection mask (RFC 9001 section 5.4.4).
#[cfg(feature = "rustls")]
#[test]
fn header_protection_leaves_nothing() {
    let Message { key, .. } = Message::new(0);
    for backend in Backend::available() {
        for sample in [[0; 16], common::painted(3), [0xff; 16]] {
            let mut secrets = Secrets(HashMap::new());
            secrets.add_bytes("key", &key);
            secrets.add_lanes("key", &key, &key);
            let (counter, nonce) = sample.split_first_chunk().unwrap();
            let nonce = nonce.first_chunk().unwrap();
            let block = chacha20_block(&key, u32::from_le_bytes(*counter), nonce);
            secrets.add_bytes("keystream", &block);

            let (suite, _) = suites(backend);
            let protection = suite.quic.unwrap().header_protection_key(key.into());
            let (mut first, mut number, mut done) = (0x43, [1, 2, 3, 4], Ok(()));
            let left = left_by(&mut || {
                done = protection.encrypt_in_place(&sample, &mut first, &mut number);
            });
            assert!(done.is_ok() && number != [1, 2, 3, 4]);
            secrets.assert_none_in(&left, &format!("header protection, {backend}"));
        }
    }
}

/// The keys and IVs of records and packets: in no memory that is given back.
#[cfg(feature = "rustls")]
#[test]
fn connections_free_no_key() {
    const KEY: [u8; 32] = *b"a key that must not outlive us  ";
    const IV: [u8; 12] = *b"nor this, IV";
    let mut secrets = Secrets(HashMap::new());
    secrets.add_bytes("key", &KEY);
    secrets.add_bytes("IV", &IV);
    // an allocation that nobody looks at may be optimised away
    let freed = freed_by(|| drop(black_box((Box::new(KEY), Box::new(IV)))));
    assert_eq!(freed.len(), 2);
    assert!(freed.iter().all(|memory| secrets.found_in(memory).next().is_some()));

    for backend in Backend::available() {
        let (tls13, tls12) = suites(backend);
        let (key, iv) = (|| KEY.into(), || IV.into());
        let quic = tls13.quic.unwrap();
        let freed = freed_by(|| {
            drop(tls13.aead_alg.encrypter(key(), iv()));
            drop(tls13.aead_alg.decrypter(key(), iv()));
            drop(tls12.aead_alg.encrypter(key(), &IV, &[]));
            drop(tls12.aead_alg.decrypter(key(), &IV));
            drop(quic.packet_key(key(), iv()));
            drop(quic.header_protection_key(key()));
        });
        assert_eq!(freed.len(), 6);
        for memory in freed {
            assert!(memory.len() >= 32, "a key is smaller than that");
            let found = secrets.found_in(&memory).next();
            assert_eq!(found, None, "{backend}");
        }
    }
}

/// Our ChaCha20-Poly1305 suites on `backend`.
#[cfg(feature = "rustls")]
fn suites(backend: Backend) -> (&'static Tls13CipherSuite, &'static Tls12CipherSuite) {
    let provider = over_with_backend(rustls::crypto::ring::default_provider(), backend);
    let ours = |suite: &SupportedCipherSuite| format!("{suite:?}").contains("CHACHA20_POLY1305");
    let suites: Vec<_> = provider.cipher_suites.into_iter().filter(ours).collect();
    let tls13 = suites.iter().find_map(SupportedCipherSuite::tls13).unwrap();
    let tls12 = suites.iter().find_map(|suite| match suite {
        SupportedCipherSuite::Tls12(suite) => Some(*suite),
        SupportedCipherSuite::Tls13(_) => None,
    });
    (tls13, tls12.unwrap())
}

/// The search itself finds what is left, in both places.
#[test]
fn what_is_left_is_found() {
    let message = Message::new(100);
    let secrets = message.secrets();
    let mut keystream = chacha20_block(&message.key, 1, &message.nonce);
    let left = left_by(&mut || leave(&message.key, &mut keystream));
    assert!(secrets.names_in(&left.stack).any(|name| name == "key"));
    #[cfg(target_arch = "x86_64")]
    assert!(secrets.names_in(&left.registers).any(|name| name == "keystream"));
}

/// Copies `key` to a frame that dies, and leaves bytes of `keystream` in a register.
#[inline(never)]
fn leave(key: &[u8; 32], keystream: &mut [u8; 64]) {
    black_box(*key);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads 16 bytes that are there into a register that is declared
    unsafe {
        core::arch::asm!("movups xmm13, [{}]", in(reg) keystream, out("xmm13") _, options(nostack));
    }
    black_box(keystream);
}

/// Every kernel of every backend: rows by the set, whole tiles, tails after tiles.
fn lens() -> impl Iterator<Item = usize> {
    let short = [0, 1, 16, 17, 63, 64, 65, 100, 127, 128, 129];
    let sets = (3..=24).flat_map(|blocks| [64 * blocks, 64 * blocks + 1, 64 * blocks + 50]);
    short.into_iter().chain(sets).chain([2047, 2048, 3000, 4096, 4097, 5000, 16_384, 16_401])
}

struct Message {
    key: [u8; 32],
    nonce: [u8; 12],
    plaintext: Vec<u8>,
}

impl Message {
    fn new(len: usize) -> Self {
        // no two windows of it are alike, and none looks like the paint
        let mut state = 0x9e37_79b9_7f4a_7c15u64 + len as u64;
        let mut bytes = core::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        });
        let key = core::array::from_fn(|_| bytes.next().unwrap());
        let nonce = core::array::from_fn(|_| bytes.next().unwrap());
        Self { key, nonce, plaintext: bytes.take(len).collect() }
    }

    /// What each operation on `backend` leaves.
    fn operations(&self, backend: Backend) -> Vec<(&'static str, Left)> {
        let Self { nonce, plaintext, .. } = self;
        let key = ChaCha20Poly1305::with_backend(&self.key, backend);
        let aad = b"aad";
        let mut text = plaintext.clone();
        let mut out = vec![0; plaintext.len() + TAG_LEN];
        let mut tag = Err(Error::InvalidTag);
        let mut done = Ok(());

        let seal = left_by(&mut || tag = key.seal_in_place(nonce, aad, &mut text));
        let (first, last) = plaintext.split_at(plaintext.len() / 3);
        let pieces = [first, &[], last];
        let gather = left_by(&mut || done = key.seal_gather(nonce, aad, &pieces, &mut out));
        let (tag, (ciphertext, _)) = (tag.unwrap(), out.split_at(plaintext.len()));
        assert!(text == ciphertext && done.is_ok());

        let open = left_by(&mut || done = key.open_in_place(nonce, aad, &mut text, &tag));
        assert!(text == *plaintext && done.is_ok());
        let into = left_by(&mut || done = key.open_into(nonce, aad, ciphertext, &tag, &mut text));
        assert!(text == *plaintext && done.is_ok());

        text.copy_from_slice(ciphertext);
        let forged = Tag::from([0; TAG_LEN]);
        let refused = left_by(&mut || done = key.open_in_place(nonce, aad, &mut text, &forged));
        assert_eq!(done, Err(Error::InvalidTag));
        vec![
            ("seal_in_place", seal),
            ("seal_gather", gather),
            ("open_in_place", open),
            ("open_into", into),
            ("a refused open_in_place", refused),
        ]
    }

    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets(HashMap::new());
        secrets.add_bytes("key", &self.key);
        secrets.add_bytes("plaintext", &self.plaintext);
        secrets.add_lanes("key", &self.key, &self.key);

        let blocks = 1 + self.plaintext.len().div_ceil(64) as u32;
        let keystream: Vec<u8> =
            (0..blocks).flat_map(|n| chacha20_block(&self.key, n, &self.nonce)).collect();
        secrets.add_bytes("keystream", &keystream);
        for (block, next) in keystream.chunks(64).zip(keystream.chunks(64).skip(1)) {
            secrets.add_lanes("keystream", block, next);
        }

        let one_time = one_time_key(&self.key, &self.nonce);
        let r = r(&one_time);
        secrets.add_bytes("r", &r.to_le_bytes());
        let high = (r >> 64) as u64;
        secrets.add("r folded", high + (high >> 2));
        let mut power = BigUint::from(1u8);
        for _ in 0..32 {
            power = power * r % prime();
            for (shift, bits) in [(0, 44), (44, 44), (88, 42)] {
                let limb = (&power >> shift) % (BigUint::from(1u8) << bits);
                let limb = u64::try_from(limb).unwrap();
                secrets.add("limb of a power of r", limb);
                secrets.add("limb of a power of r, folded", 20 * limb);
            }
        }
        secrets
    }
}

/// Eight bytes that must not be found, and what they are.
struct Secrets(HashMap<[u8; 8], &'static str>);

impl Secrets {
    fn add(&mut self, name: &'static str, value: u64) {
        self.0.insert(value.to_le_bytes(), name);
    }

    fn add_bytes(&mut self, name: &'static str, bytes: &[u8]) {
        self.0.extend(bytes.windows(8).map(|window| (*window.first_chunk().unwrap(), name)));
    }

    /// Each word of two blocks in neighbouring lanes.
    fn add_lanes(&mut self, name: &'static str, block: &[u8], next: &[u8]) {
        for (word, other) in block.chunks(4).zip(next.chunks(4)) {
            self.add_bytes(name, &[word, other].concat());
        }
    }

    fn names_in<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'static str> + 'a {
        self.found_in(bytes).map(|(_, name)| name)
    }

    fn found_in<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (usize, &'static str)> + 'a {
        let found = |(at, window): (usize, &[u8])| Some((at, *self.0.get(window)?));
        bytes.windows(8).enumerate().filter_map(found)
    }

    fn assert_none_in(&self, left: &Left, after: &str) {
        if let Some((at, name)) = self.found_in(&left.stack).next() {
            panic!("{after}: {name} on the stack, {} bytes down", left.stack.len() - at);
        }
        if let Some((at, name)) = self.found_in(&left.registers).next() {
            panic!("{after}: {name} in registers, at {at}");
        }
    }
}

/// What a call leaves behind.
struct Left {
    stack: Vec<u8>,
    registers: Vec<u8>,
}

/// What `operation` leaves, in registers that were cleared and on stack that was painted before.
#[inline(never)]
fn left_by(operation: &mut dyn FnMut()) -> Left {
    let mut left = Left { stack: vec![0; DEPTH], registers: vec![0; REGISTERS] };
    let width = vector_width();
    paint_stack();
    load_registers(width, &left.registers);
    operation();
    // at once, and without a call, which would use both
    save_registers(width, &mut left.registers);
    let bottom = (&raw const left).cast::<u8>().wrapping_sub(DEPTH);
    for (at, byte) in left.stack.iter_mut().enumerate() {
        // SAFETY: below what lives on this stack, and painted, so it is mapped; a volatile read takes
        // whatever is there
        *byte = unsafe { bottom.wrapping_add(at).read_volatile() };
    }
    left
}

#[inline(never)]
fn paint_stack() {
    black_box([0xa5u8; DEPTH]);
}

/// More than any operation uses.
const DEPTH: usize = 1 << 15;
/// Bytes of the registers that a call may change: eight of 64 bits, and vectors.
const REGISTERS: usize = 64 + 32 * 64;

/// `all_vectors!(line, width, registers)`: the assembly `line` on each vector register.
#[cfg(target_arch = "x86_64")]
macro_rules! all_vectors {
    ($line:ident, $width:expr, $registers:expr) => {
        match $width {
            64 => all_vectors!($line, $registers, "vmovdqu64" "zmm" 64: 0 1 2 3 4 5 6 7 8 9 10 11 12
                13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
            32 => all_vectors!($line, $registers, "vmovdqu" "ymm" 32: 0 1 2 3 4 5 6 7 8 9 10 11 12 13
                14 15),
            _ => all_vectors!($line, $registers, "movups" "xmm" 16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13
                14 15),
        }
    };
    ($line:ident, $registers:expr, $move:literal $kind:literal $bytes:literal: $($n:literal)+) => {
        // SAFETY: this CPU has the instruction, and `registers` room for all after the integers
        unsafe {
            core::arch::asm!(
                $line!(integers),
                $($line!($move $kind $n $bytes),)+
                in("rax") $registers,
                clobber_abi("sysv64"),
            )
        }
    };
}

/// Sets the vector registers.
#[inline(always)]
fn load_registers(width: usize, registers: &[u8]) {
    assert!(registers.len() == REGISTERS);
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! load {
            (integers) => {
                ""
            };
            ($move:literal $kind:literal $n:literal $bytes:literal) => {
                concat!($move, " ", $kind, $n, ", [rax + 64 + ", $n, " * ", $bytes, "]")
            };
        }
        all_vectors!(load, width, registers.as_ptr());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = width;
}

/// Stores the integer and the vector registers that a call may change.
#[inline(always)]
fn save_registers(width: usize, registers: &mut [u8]) {
    assert!(registers.len() == REGISTERS);
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! save {
            (integers) => {
                "mov [rax], rcx
                mov [rax + 8], rdx
                mov [rax + 16], rsi
                mov [rax + 24], rdi
                mov [rax + 32], r8
                mov [rax + 40], r9
                mov [rax + 48], r10
                mov [rax + 56], r11"
            };
            ($move:literal $kind:literal $n:literal $bytes:literal) => {
                concat!($move, " [rax + 64 + ", $n, " * ", $bytes, "], ", $kind, $n)
            };
        }
        all_vectors!(save, width, registers.as_mut_ptr());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = width;
}

/// Bytes of the widest vector register of this CPU.
fn vector_width() -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return 64;
    } else if is_x86_feature_detected!("avx") {
        return 32;
    }
    16
}

/// The memory that `run` gives back, as it was then.
#[cfg(feature = "rustls")]
fn freed_by(run: impl FnOnce()) -> Vec<Vec<u8>> {
    FREED.set(Some(Vec::new()));
    run();
    FREED.take().unwrap()
}

thread_local! {
    static FREED: RefCell<Option<Vec<Vec<u8>>>> = const { RefCell::new(None) };
}

/// The system's allocator; keeps what a thread frees, if it asked for that.
struct Keeping;

// SAFETY: passes every call on to `System` unchanged.
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is `System`'s condition
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // nothing while it is taken out, for what is kept is itself allocated, and when a thread ends
        if let Ok(Some(mut freed)) = FREED.try_with(RefCell::take) {
            let bytes = (0..layout.size())
                // SAFETY: still allocated; a volatile read of what may be padding takes whatever is there
                .map(|at| unsafe { ptr.wrapping_add(at).read_volatile() });
            freed.push(bytes.collect());
            FREED.set(Some(freed));
        }
        // SAFETY: the caller's promise is `System`'s condition
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Keeping = Keeping;
