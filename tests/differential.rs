//! Against ring and aws-lc-rs, on every backend: every length, every way to cut a message into
//! pieces, every bit flipped, every buffer length that is wrong.

#![allow(unsafe_code)]

mod common;

use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Error, TAG_LEN, Tag};

use crate::common::{Message, emulated, paint, painted, refused};

/// K05, K06: with two peers at the lengths where both kernels and tails change, with one peer at every
/// other length up to 4 KiB and around a full TLS record.
#[test]
fn every_length() {
    let key = painted(1);
    // between: with AVX-512, heads of one set and of two before every number of steps that go together
    for len in (0..=4096).chain((4600..6700).step_by(7)).chain(16_383..=16_402) {
        let nonce = painted(len as u8);
        let (aad, plaintext) = (&paint(len % 14, 3), &paint(len, len as u8));
        let (ciphertext, tag) = ring_seal(&key, &nonce, aad, plaintext);
        if !(1101..16_383).contains(&len) {
            let aws_lc = aws_lc_seal(&key, &nonce, aad, plaintext);
            assert!(aws_lc == (ciphertext.clone(), tag), "the peers differ at {len} bytes");
        }
        let (key, nonce, ciphertext) = (&key, &nonce, &ciphertext);
        Message { key, nonce, aad, plaintext, ciphertext, tag }.check();
    }
}

#[test]
fn every_aad_length() {
    let (key, nonce) = (&painted(2), &painted(3));
    for aad_len in (0..=40).chain([63, 64, 65, 127, 128, 129, 255, 256, 1023, 4097, 65_536]) {
        for len in [0, 1, 15, 16, 17, 64, 200, 1024, 3000] {
            let (aad, plaintext) = (&paint(aad_len, 9), &paint(len, 5));
            let (ciphertext, tag) = ring_seal(key, nonce, aad, plaintext);
            Message { key, nonce, aad, plaintext, ciphertext: &ciphertext, tag }.check();
        }
    }
}

/// K09: a last piece of one byte behind every fill of the last block, at every size of the wide loops.
#[test]
fn one_byte_last_piece() {
    for tile in (0..=40).chain([63, 64, 255, 256]) {
        for rest in [0, 1, 47, 48, 49, 63] {
            let total = tile * 64 + rest;
            if total > 0 {
                gather(total, |text| vec![&text[..total - 1], &text[total - 1..]]);
            }
        }
    }
}

#[test]
fn every_cut_in_two_and_in_single_bytes() {
    for total in [1, 16, 17, 64, 65, 130, 300] {
        gather(total, |text| text.chunks(1).collect());
        for at in 0..=total {
            gather(total, |text| vec![&text[..at], &text[at..]]);
        }
    }
}

/// Pieces of random lengths, a third of them empty, over several tiles of every backend.
#[test]
fn random_cuts() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..2000 {
        let total = random.below(if round % 8 == 0 { 20_000 } else { 3_000 });
        let longest = [2, 17, 65, 600, 5000][random.below(5)];
        gather(total, |text| {
            let (mut rest, mut pieces) = (text, Vec::new());
            while !rest.is_empty() {
                let n = if random.below(3) == 0 { 0 } else { 1 + random.below(longest) };
                let (piece, behind) = rest.split_at(n.min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            pieces
        });
    }
}

/// K19, K20: whatever bit is flipped, both ways to open refuse and leave zeros.
#[test]
fn every_bit_flip_is_refused() {
    for len in [0, 1, 16, 64, 257, 1100, 16_385] {
        let (nonce, aad) = (painted(9), paint(13, 8));
        let (ciphertext, tag) = ring_seal(&painted(4), &nonce, &aad, &paint(len, 7));
        for backend in Backend::available() {
            let key = ChaCha20Poly1305::with_backend(&painted(4), backend);
            refused(&key, &nonce, &aad, &ciphertext, [0; 16]);
            refused(&key, &nonce, &aad[1..], &ciphertext, tag);
            for bit in 0..8 * TAG_LEN {
                refused(&key, &nonce, &aad, &ciphertext, flipped(tag, bit));
            }
            for bit in 0..8 * nonce.len() {
                refused(&key, &flipped(nonce, bit), &aad, &ciphertext, tag);
            }
            for bit in 0..8 * aad.len() {
                refused(&key, &nonce, &flipped(aad.clone(), bit), &ciphertext, tag);
            }
            // in a long text one bit of each byte, or of each ninth byte, and another one in the next
            let step = match (len > 2000, emulated()) {
                (false, _) => 1,
                (true, false) => 9,
                (true, true) => 73,
            };
            for bit in (0..8 * len).step_by(step) {
                refused(&key, &nonce, &aad, &flipped(ciphertext.clone(), bit), tag);
            }
        }
    }
}

/// K15: nothing is written where a length is wrong.
#[test]
fn wrong_output_lengths_are_refused() {
    for (backend, n) in all([0, 1, 16, 64, 100, 1024, 5000]) {
        let key = ChaCha20Poly1305::with_backend(&painted(5), backend);
        let text = paint(n, 1);
        let tag = Tag::from([0; TAG_LEN]);
        for wrong in [0, n.saturating_sub(1), n + 1, n + 15, n + 17, n + 64] {
            if wrong != n {
                let mut out = vec![0xa5; wrong];
                let verdict = key.open_into(&painted(6), b"", &text, &tag, &mut out);
                assert_eq!(verdict, Err(Error::OutputLength));
                assert!(out.iter().all(|&b| b == 0xa5));
            }
        }
        for wrong in [0, n, n + 15, n + 17, n + 80] {
            let mut out = vec![0xa5; wrong];
            for pieces in common::cuts(&text) {
                let verdict = key.seal_gather(&painted(6), b"", &pieces, &mut out);
                assert_eq!(verdict, Err(Error::OutputLength));
                assert!(out.iter().all(|&b| b == 0xa5));
            }
        }
    }
}

/// K14: in place at every alignment; from one buffer to another with every pair of offsets in 16 bytes.
#[test]
fn every_alignment() {
    #[repr(align(64))]
    struct Aligned([u8; 4096]);

    let (nonce, aad) = (painted(7), b"alignment");
    for (backend, len) in all([1, 16, 65, 300, 1025, 2100]) {
        let key = ChaCha20Poly1305::with_backend(&painted(6), backend);
        let plaintext = paint(len, 2);
        let (ciphertext, tag) = ring_seal(&painted(6), &nonce, aad, &plaintext);
        let mut buffer = Aligned([0; 4096]);
        for at in 0..64 {
            let text = &mut buffer.0[at..at + len];
            text.copy_from_slice(&plaintext);
            assert_eq!(key.seal_in_place(&nonce, aad, text), Ok(Tag::from(tag)));
            assert!(*text == *ciphertext, "{backend}, {len} bytes at {at}");
            key.open_in_place(&nonce, aad, text, &tag.into()).unwrap();
            assert!(*text == *plaintext, "{backend}, {len} bytes at {at}");
        }
        let (mut from, mut to) = (Aligned([0; 4096]), Aligned([0; 4096]));
        for (at, out_at) in (0..16).flat_map(|at| (0..16).map(move |out_at| (at, out_at))) {
            let text = &mut from.0[at..at + len];
            text.copy_from_slice(&plaintext);
            let out = &mut to.0[out_at..out_at + len + TAG_LEN];
            key.seal_gather(&nonce, aad, &[text], out).unwrap();
            assert!(out[..len] == *ciphertext && out[len..] == tag, "{backend}: {at} to {out_at}");
            text.copy_from_slice(&ciphertext);
            key.open_into(&nonce, aad, text, &tag.into(), &mut out[..len]).unwrap();
            assert!(out[..len] == *plaintext, "{backend}: {at} to {out_at}");
        }
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod too_long {
    use core::{ptr, slice};

    use rustls_chapoly::aead::MAX_PLAINTEXT_LEN;

    use super::*;

    /// K18: a message of more than 2^38 - 64 bytes would use a counter twice, and is refused before its
    /// output is looked at. 257 aliases of one GiB of address space are such a message.
    #[test]
    fn too_long_messages_are_refused() {
        const GIB: usize = 1 << 30;
        let zeros = &*map(GIB);
        for backend in Backend::available() {
            let key = ChaCha20Poly1305::with_backend(&painted(8), backend);
            let mut out = [0xa5; 256];
            let mut seal = |pieces: &[&[u8]]| {
                let verdicts = [0, 16, 256]
                    .map(|n| key.seal_gather(&painted(1), b"", pieces, &mut out[..n]).unwrap_err());
                assert_eq!(out, [0xa5; 256]);
                verdicts
            };
            assert_eq!(seal(&[zeros; 257]), [Error::PlaintextTooLong; 3]);
            let mut pieces = [zeros; 256];
            assert_eq!(seal(&pieces), [Error::PlaintextTooLong; 3]);
            pieces[0] = &zeros[..GIB - 63];
            assert_eq!(seal(&pieces), [Error::PlaintextTooLong; 3]);
            pieces[0] = &zeros[..GIB - 64];
            assert_eq!(seal(&pieces), [Error::OutputLength; 3]);
        }
    }

    /// K18, in place: the same lengths as one slice that must not be touched, which is read-only.
    #[test]
    fn too_long_slices_are_refused() {
        let text = map(MAX_PLAINTEXT_LEN as usize + 1);
        let tag = Tag::from([0; TAG_LEN]);
        for backend in Backend::available() {
            let key = ChaCha20Poly1305::with_backend(&painted(8), backend);
            assert_eq!(key.seal_in_place(&painted(1), b"", text), Err(Error::PlaintextTooLong));
            assert_eq!(
                key.open_in_place(&painted(1), b"", text, &tag),
                Err(Error::PlaintextTooLong)
            );
            let verdict = key.open_into(&painted(1), b"", text, &tag, &mut []);
            assert_eq!(verdict, Err(Error::PlaintextTooLong));
        }
    }

    /// Address space that reads as zeros, costs no memory and faults when it is written to.
    fn map(len: usize) -> &'static mut [u8] {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory
        let address = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_READ, flags, -1, 0) };
        assert_ne!(address, libc::MAP_FAILED);
        // SAFETY: it is `len` readable bytes, never unmapped, and nobody else knows it; no test writes to
        // it, and a function under test that does is stopped by the fault
        unsafe { slice::from_raw_parts_mut(address.cast(), len) }
    }
}

/// K18: a total of 2^32 + 65,536 bytes, which is 65,536 in 32 bits, does not fit such an output.
#[test]
fn totals_do_not_wrap_at_32_bits() {
    let piece = &paint(65_536, 0)[..];
    let pieces = vec![piece; 65_537];
    let mut out = vec![0xa5; 65_536 + TAG_LEN];
    for backend in Backend::available() {
        let key = ChaCha20Poly1305::with_backend(&painted(8), backend);
        let verdict = key.seal_gather(&painted(1), b"", &pieces, &mut out);
        assert_eq!(verdict, Err(Error::OutputLength));
        assert!(out.iter().all(|&b| b == 0xa5));
    }
}

#[test]
fn tags_compare_by_value() {
    let tag: [u8; TAG_LEN] = painted(1);
    assert_eq!(Tag::from(tag), Tag::from(tag));
    for bit in 0..8 * TAG_LEN {
        assert_ne!(Tag::from(flipped(tag, bit)), Tag::from(tag));
    }
}

/// Seals `total` bytes in the pieces that `cut` makes of them, on every backend.
fn gather(total: usize, mut cut: impl FnMut(&[u8]) -> Vec<&[u8]>) {
    let (key, nonce, aad) = (&painted(3), &painted(total as u8), &paint(total % 20, 1));
    let plaintext = &paint(total, total as u8);
    let (ciphertext, tag) = ring_seal(key, nonce, aad, plaintext);
    let message = Message { key, nonce, aad, plaintext, ciphertext: &ciphertext, tag };
    let pieces = cut(plaintext);
    for backend in Backend::available() {
        message.check_gather(&ChaCha20Poly1305::with_backend(key, backend), &pieces);
    }
}

fn all<const N: usize>(lens: [usize; N]) -> impl Iterator<Item = (Backend, usize)> {
    Backend::available().flat_map(move |backend| lens.map(|len| (backend, len)))
}

fn flipped<T: AsMut<[u8]>>(mut bytes: T, bit: usize) -> T {
    bytes.as_mut()[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// xorshift64: the cuts are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n as u64) as usize
    }
}

/// The peers, by a macro because aws-lc-rs took over ring's interface but not its types.
macro_rules! peer_seal {
    ($name:ident, $peer:ident) => {
        fn $name(
            key: &[u8; 32],
            nonce: &[u8; 12],
            aad: &[u8],
            plaintext: &[u8],
        ) -> (Vec<u8>, [u8; 16]) {
            use $peer::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

            let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).unwrap());
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut text = plaintext.to_vec();
            let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), &mut text).unwrap();
            (text, tag.as_ref().try_into().unwrap())
        }
    };
}

peer_seal!(ring_seal, ring);
peer_seal!(aws_lc_seal, aws_lc_rs);
