//! Runs the AEAD with its secrets marked as undefined memory, so that valgrind's memcheck or
//! MemorySanitizer reports every branch and every address that depends on them.
//!
//! Secret are the key and what is sealed; so the keystream, the one-time key, its powers and the tag
//! that opening computes are as well. A nonce, a length, AAD and what was received are not.
//!
//! `run`, beside this package, builds and checks. With the arguments `leak BACKEND PLACE` the program
//! does what must be found: it branches on one byte of what came out, which only a tracker that follows
//! the secret through the whole kernel knows to be secret.

use std::hint::black_box;
use std::io::{self, Write};
use std::{env, slice};

use rustls::CipherSuite;
use rustls::crypto::cipher::AeadKey;
use rustls::crypto::ring;
use rustls::quic::HeaderProtectionKey;
use rustls_chapoly::aead::{ChaCha20Poly1305, TAG_LEN};
use rustls_chapoly::{Backend, over_with_backend};

fn main() {
    assert!(tracker::is_running(), "to be run under valgrind, or built with MemorySanitizer");
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Backend::available().filter(tracker::follows).for_each(check),
        ["leak", backend, place] => leak(backend.parse().unwrap(), place),
        _ => panic!("usage: constant-time [leak BACKEND PLACE]"),
    }
}

fn check(backend: Backend) {
    for len in LENS {
        seal(backend, len);
        open(backend, len);
    }
    protect_header(backend);
    writeln!(io::stdout(), "{backend}").unwrap();
}

/// The text is public: what is secret about these bytes is the key alone.
fn leak(backend: Backend, place: &str) {
    let mut text = [1; 5000];
    let tag = key(backend).seal_in_place(&NONCE, b"aad", &mut text).unwrap();
    let [mut first, mut number] = [0xc3, 1];
    let header = header_key(backend);
    header.encrypt_in_place(&[9; 16], &mut first, slice::from_mut(&mut number)).unwrap();
    branch_on(match place {
        "tile" => text[600],
        "tail" => text[4999],
        "tag" => <[u8; TAG_LEN]>::from(tag)[0],
        "header" => number,
        _ => panic!("no place to leak from: {place}"),
    });
}

fn seal(backend: Backend, len: usize) {
    let key = key(backend);
    let mut text = vec![1; len];
    tracker::hide(&mut text);
    let tag = key.seal_in_place(&NONCE, b"aad", &mut text).unwrap();
    black_box((&text, &tag));

    let mut plaintext = vec![1; len];
    tracker::hide(&mut plaintext);
    let mut out = vec![0; len + TAG_LEN];
    let (front, back) = plaintext.split_at(len - len.min(1));
    key.seal_gather(&NONCE, b"aad", &[front, back], &mut out).unwrap();
    black_box(&out);
}

/// Accepts and refuses: both verdicts are public, and so is what was accepted.
fn open(backend: Backend, len: usize) {
    let key = key(backend);
    let mut sealed = vec![1; len];
    let tag = key.seal_in_place(&NONCE, b"aad", &mut sealed).unwrap();
    let mut tag = <[u8; TAG_LEN]>::from(tag);
    tracker::show(&mut sealed);
    tracker::show(&mut tag);

    let mut text = sealed.clone();
    let _ = black_box(key.open_in_place(&NONCE, b"aad", &mut text, &tag.into()));
    let mut out = vec![0; len];
    let _ = black_box(key.open_into(&NONCE, b"aad", &sealed, &tag.into(), &mut out));
    tag[3] ^= 1;
    let _ = black_box(key.open_into(&NONCE, b"aad", &sealed, &tag.into(), &mut out));
    text.copy_from_slice(&sealed);
    let _ = black_box(key.open_in_place(&NONCE, b"aad", &mut text, &tag.into()));
}

/// RFC 9001 section 9.5: neither the key nor the packet number and its length may show.
fn protect_header(backend: Backend) {
    let key = header_key(backend);
    for protect in [true, false] {
        let mut header = [0xc3, 1, 2, 3, 4];
        tracker::hide(&mut header);
        let [first, number @ ..] = &mut header;
        let done = match protect {
            true => key.encrypt_in_place(&[9; 16], first, number),
            false => key.decrypt_in_place(&[9; 16], first, number),
        };
        done.unwrap();
        black_box(&header);
    }
}

fn header_key(backend: Backend) -> Box<dyn HeaderProtectionKey> {
    let provider = over_with_backend(ring::default_provider(), backend);
    let mut suites = provider.cipher_suites.iter();
    let suite = suites.find(|s| s.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    let quic = suite.unwrap().tls13().unwrap().quic.unwrap();
    let mut key = [7; 32];
    tracker::hide(&mut key);
    quic.header_protection_key(AeadKey::from(key))
}

fn key(backend: Backend) -> ChaCha20Poly1305 {
    let mut key = [7; 32];
    tracker::hide(&mut key);
    ChaCha20Poly1305::with_backend(&key, backend)
}

#[inline(never)]
fn branch_on(secret: u8) {
    // a call in one arm only, so that no branchless form can stand for it
    if black_box(secret) & 1 == 0 {
        let _ = io::stdout().flush();
    }
}

const NONCE: [u8; 12] = *b"not a secret";

/// Every path of the kernels.
const LENS: [usize; 14] = [0, 1, 16, 63, 64, 65, 130, 200, 450, 1000, 1100, 1500, 3000, 9000];

/// Valgrind's client requests (valgrind.h, memcheck.h): code that does nothing elsewhere.
#[cfg(not(msan))]
mod tracker {
    use std::arch::asm;

    use rustls_chapoly::Backend;

    pub(crate) fn is_running() -> bool {
        request([0x1001, 0, 0]) != 0
    }

    pub(crate) fn follows(_: &Backend) -> bool {
        true
    }

    pub(crate) fn hide(bytes: &mut [u8]) {
        request([0x4d43_0001, bytes.as_ptr().addr(), bytes.len()]);
    }

    pub(crate) fn show(bytes: &mut [u8]) {
        request([0x4d43_0002, bytes.as_ptr().addr(), bytes.len()]);
    }

    fn request([code, address, len]: [usize; 3]) -> usize {
        let arguments = [code, address, len, 0, 0, 0];
        let mut answer = 0;
        // SAFETY: rotates a register by 128 bits in all and swaps another with itself: valgrind knows
        // the sequence, a CPU computes nothing by it
        unsafe {
            asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                inout("rdx") answer, in("rax") &raw const arguments, inout("rdi") 0 => _,
            );
        }
        answer
    }
}

/// MemorySanitizer's interface.
#[cfg(msan)]
mod tracker {
    use std::ffi::c_void;

    use rustls_chapoly::Backend;

    unsafe extern "C" {
        fn __msan_poison(address: *const c_void, len: usize);
        fn __msan_unpoison(address: *const c_void, len: usize);
    }

    pub(crate) fn is_running() -> bool {
        true
    }

    /// What assembly puts out counts as defined, so these are the backends without any.
    pub(crate) fn follows(backend: &Backend) -> bool {
        ["avx512", "portable"].contains(&backend.to_string().as_str())
    }

    pub(crate) fn hide(bytes: &mut [u8]) {
        // SAFETY: changes the shadow of these bytes only
        unsafe { __msan_poison(bytes.as_ptr().cast(), bytes.len()) };
    }

    pub(crate) fn show(bytes: &mut [u8]) {
        // SAFETY: changes the shadow of these bytes only
        unsafe { __msan_unpoison(bytes.as_ptr().cast(), bytes.len()) };
    }
}
