//! Chosen ciphertexts: whoever knows the key chooses what Poly1305 hashes, so its limbs can be driven
//! to their bounds through the AEAD (K01, K02). Random data does not find a carry that is lost there.
//!
//! `r` itself comes from ChaCha20, so here it is only as extreme as a search makes it; the unit tests
//! of the hash run the same inputs with every `r`.

mod common;
mod oracle;

use num_bigint::BigUint;
use rustls_chapoly::Backend;
use rustls_chapoly::aead::ChaCha20Poly1305;

use crate::common::{Message, emulated, painted, refused};
use crate::oracle::adversarial::{extreme_r, forced, messages, sum, targets};

/// Every count of full blocks, and one byte less.
#[test]
fn all_ones_ciphertexts() {
    for nonce in extreme_nonces() {
        for blocks in 1..=300 {
            check(&nonce, &[], &vec![0xff; 16 * blocks]);
            check(&nonce, &[], &vec![0xff; 16 * blocks - 1]);
        }
        for blocks in 301..=1100 {
            if blocks % 61 == 0 {
                check(&nonce, &[], &vec![0xff; 16 * blocks]);
            }
        }
    }
}

#[test]
fn all_ones_aad() {
    for nonce in extreme_nonces() {
        for blocks in (0..=40).chain([63, 64, 65, 127, 128, 129, 300]) {
            check(&nonce, &vec![0xff; 16 * blocks], &[0xff; 16]);
            check(&nonce, &vec![0xff; 16 * blocks], &[0xff; 2048]);
        }
    }
}

/// The accumulator, or the one of each of 2 to 32 lanes, ends beside 2^130 - 5 before the lengths.
#[test]
fn forced_accumulators() {
    for nonce in extreme_nonces() {
        let r = BigUint::from(r_of(&nonce));
        for lanes in [1, 2, 4, 8, 16, 32] {
            for steps in [1, 2, 3, 4, 5, 9, 17] {
                for target in targets() {
                    let Some(text) = forced(&r, lanes, steps, &target) else { continue };
                    check(&nonce, &[], &text);
                }
            }
        }
    }
}

/// The tag itself: the accumulator after the lengths ends beside 2^130 - 5, and beside 2^128.
#[test]
fn forced_final_accumulators() {
    let mut solved = 0;
    let nonces = extreme_nonces();
    for nonce in &nonces {
        let r = BigUint::from(r_of(nonce));
        let inverse = r.modpow(&(oracle::prime() - 2u8), &oracle::prime());
        for blocks in [1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 128, 256, 1024] {
            let lengths = oracle::block_number(&[0; 16]);
            let lengths = lengths + (BigUint::from(16 * blocks) << 64);
            for target in targets() {
                // what the accumulator must be before the lengths are added
                let before = target * &inverse + oracle::prime() - &lengths % oracle::prime();
                let Some(text) = forced(&r, 1, blocks, &(before % oracle::prime())) else {
                    continue;
                };
                check(nonce, &[], &text);
                solved += 1;
            }
        }
    }
    assert!(solved > 160 * nonces.len(), "only {solved} inputs");
}

/// The inputs are what they claim to be.
#[test]
fn oracle_adversarial_inputs() {
    let maximal = extreme_r().into_iter().max().unwrap();
    assert_eq!(maximal, 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff);
    for r in [1u128, 2, 4, maximal] {
        let r = BigUint::from(r);
        let mut solved = 0;
        for target in targets() {
            for steps in [2, 3, 9] {
                if let Some(message) = forced(&r, 1, steps, &target) {
                    assert_eq!(message.len(), 16 * steps);
                    assert_eq!(oracle::accumulate(&r, &message), target);
                    solved += 1;
                }
            }
        }
        assert!(solved > 0, "no target is reachable with r = {r}");
    }
    // K01: with r = 1, two blocks of ones are 3 modulo 2^130 - 5
    let one = BigUint::from(1u8);
    for message in messages(&one) {
        assert_eq!(oracle::accumulate(&one, &message), sum(&message));
    }
    for k in 1..=40u32 {
        assert_eq!(sum(&vec![0xff; 32 * k as usize]), BigUint::from(3 * k));
    }
}

/// Opens and seals a chosen ciphertext with the oracle's tag on every backend.
fn check(nonce: &[u8; 12], aad: &[u8], ciphertext: &[u8]) {
    let key = &painted(KEY);
    let plaintext = &oracle::chacha20(key, 1, nonce, ciphertext);
    let tag = oracle::tag(key, nonce, aad, ciphertext);
    Message { key, nonce, aad, plaintext, ciphertext, tag }.check();

    // the tag that a lost or a doubled carry of the accumulator gives
    let [up, down] = [1, u128::MAX].map(|d| u128::from_le_bytes(tag).wrapping_add(d).to_le_bytes());
    for backend in Backend::available() {
        let key = ChaCha20Poly1305::with_backend(key, backend);
        refused(&key, nonce, aad, ciphertext, up);
        refused(&key, nonce, aad, ciphertext, down);
    }
}

/// Of 2^18 nonces, those with the largest r, the smallest, and the one with the most bits set; on an
/// emulated CPU the first alone.
fn extreme_nonces() -> Vec<[u8; 12]> {
    let of = |i: u32| {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&i.to_le_bytes());
        (r_of(&nonce), nonce)
    };
    let all: Vec<_> = (0..1 << 18).map(of).collect();
    let largest = all.iter().max_by_key(|(r, _)| *r).unwrap();
    let smallest = all.iter().min_by_key(|(r, _)| *r).unwrap();
    let fullest = all.iter().max_by_key(|(r, _)| r.count_ones()).unwrap();
    let nonces = [largest.1, smallest.1, fullest.1];
    nonces[..if emulated() { 1 } else { 3 }].to_vec()
}

fn r_of(nonce: &[u8; 12]) -> u128 {
    oracle::r(&oracle::one_time_key(&painted(KEY), nonce))
}

const KEY: u8 = 0x40;
