//! ChaCha20, Poly1305 and their AEAD as RFC 8439 writes them down: one block at a time, with big
//! integers, and with nothing of this crate's own. Everything else is measured against it.
//!
//! Unit tests inside the crate include this file too (`#[path]`), so not every item is used by
//! everyone who includes it.
#![allow(dead_code)]

use std::vec::Vec;

use num_bigint::BigUint;

pub(crate) mod adversarial;

/// `AEAD_CHACHA20_POLY1305` (section 2.8): ciphertext and tag.
pub(crate) fn seal(
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    plaintext: &[u8],
) -> (Vec<u8>, [u8; 16]) {
    let ciphertext = chacha20(key, 1, nonce, plaintext);
    let tag = tag(key, nonce, aad, &ciphertext);
    (ciphertext, tag)
}

/// The tag that belongs to a ciphertext, whatever its plaintext may be.
pub(crate) fn tag(key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], ciphertext: &[u8]) -> [u8; 16] {
    poly1305(&one_time_key(key, nonce), &mac_data(aad, ciphertext))
}

/// What the AEAD authenticates: both texts padded to 16 bytes, then their lengths.
pub(crate) fn mac_data(aad: &[u8], ciphertext: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    for text in [aad, ciphertext] {
        data.extend_from_slice(text);
        data.resize(data.len().next_multiple_of(16), 0);
    }
    for text in [aad, ciphertext] {
        data.extend_from_slice(&(text.len() as u64).to_le_bytes());
    }
    data
}

/// The Poly1305 key of one message (section 2.6): `r`, then `s`.
pub(crate) fn one_time_key(key: &[u8; 32], nonce: &[u8; 12]) -> [u8; 32] {
    *chacha20_block(key, 0, nonce).first_chunk().unwrap()
}

/// Section 2.5.
pub(crate) fn poly1305(key: &[u8; 32], message: &[u8]) -> [u8; 16] {
    tag_of(&accumulate(&BigUint::from(r(key)), message), &key[16..])
}

/// The accumulator after all blocks of `message`, reduced modulo 2^130 - 5.
pub(crate) fn accumulate(r: &BigUint, message: &[u8]) -> BigUint {
    message.chunks(16).fold(BigUint::ZERO, |a, block| (a + block_number(block)) * r % prime())
}

/// `(accumulator + s) mod 2^128`.
pub(crate) fn tag_of(accumulator: &BigUint, s: &[u8]) -> [u8; 16] {
    let mut tag = (accumulator + BigUint::from_bytes_le(s)).to_bytes_le();
    tag.resize(16, 0);
    *tag.first_chunk().unwrap()
}

/// A block as the number that Poly1305 adds: little-endian, with a one above its last byte.
pub(crate) fn block_number(block: &[u8]) -> BigUint {
    BigUint::from_bytes_le(block) + (BigUint::from(1u8) << (8 * block.len()))
}

/// `r` of a one-time key, with the bits cleared that section 2.5 clears.
pub(crate) fn r(key: &[u8; 32]) -> u128 {
    u128::from_le_bytes(*key.first_chunk().unwrap()) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff
}

/// 2^130 - 5.
pub(crate) fn prime() -> BigUint {
    (BigUint::from(1u8) << 130) - 5u8
}

/// Section 2.4.
pub(crate) fn chacha20(key: &[u8; 32], counter: u32, nonce: &[u8; 12], text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (i, block) in text.chunks(64).enumerate() {
        let stream = chacha20_block(key, counter.wrapping_add(i as u32), nonce);
        out.extend(block.iter().zip(stream).map(|(text, stream)| text ^ stream));
    }
    out
}

/// Section 2.3.
pub(crate) fn chacha20_block(key: &[u8; 32], counter: u32, nonce: &[u8; 12]) -> [u8; 64] {
    let mut state = [0u32; 16];
    let bytes = [&b"expand 32-byte k"[..], key, &counter.to_le_bytes(), nonce].concat();
    for (word, bytes) in state.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }

    let mut x = state;
    for _ in 0..10 {
        quarter_round(&mut x, 0, 4, 8, 12);
        quarter_round(&mut x, 1, 5, 9, 13);
        quarter_round(&mut x, 2, 6, 10, 14);
        quarter_round(&mut x, 3, 7, 11, 15);
        quarter_round(&mut x, 0, 5, 10, 15);
        quarter_round(&mut x, 1, 6, 11, 12);
        quarter_round(&mut x, 2, 7, 8, 13);
        quarter_round(&mut x, 3, 4, 9, 14);
    }

    let mut out = [0; 64];
    for (i, bytes) in out.as_chunks_mut().0.iter_mut().enumerate() {
        *bytes = x[i].wrapping_add(state[i]).to_le_bytes();
    }
    out
}

/// Section 2.1.
fn quarter_round(x: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(16);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(12);
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(8);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(7);
}
