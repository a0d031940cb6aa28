//! Whole messages whose keystream has what a random one has once in many thousand millions.
//!
//! Lengths, cuts and forgeries are tested through the public interface.

use std::vec::Vec;

use crate::Backend;
use crate::aead::{ChaCha20Poly1305, Tag};
use crate::chacha20::tests::carrying_blocks;
use crate::oracle;

/// K04: a block somewhere in the message at which the final addition of the counter carries.
#[test]
fn k04_final_additions_that_carry() {
    for (key, nonce, counter) in carrying_blocks() {
        // the block is the last one, within the message, and within a longer one
        for blocks in [counter as usize, counter as usize + 3, 70] {
            let plaintext: Vec<u8> = (0..blocks * 64).map(|i| i as u8).collect();
            let (ciphertext, tag) = oracle::seal(&key, &nonce, b"aad", &plaintext);
            for backend in Backend::available() {
                let key = ChaCha20Poly1305::with_backend(&key, backend);
                let mut text = plaintext.clone();
                let sealed = key.seal_in_place(&nonce, b"aad", &mut text).unwrap();
                assert!(text == ciphertext, "{backend}, block {counter} of {blocks}");
                assert_eq!(sealed, Tag::from(tag), "{backend}, block {counter} of {blocks}");
                key.open_in_place(&nonce, b"aad", &mut text, &sealed).unwrap();
                assert!(text == plaintext, "{backend}, block {counter} of {blocks}");
            }
        }
    }
}

/// K04: the counter of a header protection mask is any word (RFC 9001 section 5.4.4).
#[cfg(feature = "rustls")]
#[test]
fn k04_masks_of_any_counter() {
    let key = [0x5a; 32];
    for counter in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, u32::MAX] {
        let mut sample = [0xff; 16];
        sample[..4].copy_from_slice(&u32::to_le_bytes(counter));
        let block = oracle::chacha20_block(&key, counter, sample.last_chunk().unwrap());
        for backend in Backend::available() {
            let mask = crate::aead::HeaderKey::new(&key, backend).mask(&sample);
            assert_eq!(mask, block[..5], "{backend}, {counter:#x}");
        }
    }
}
