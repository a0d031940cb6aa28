//! Poly1305 inputs that random data never hits: every limb full, and accumulators that end just
//! beside 2^130 - 5, for one chain and for lanes that run side by side.
//!
//! They are built from the algebra, so they know nothing of any implementation's limbs.
#![allow(dead_code)]

use std::vec::Vec;

use num_bigint::BigUint;

use super::{accumulate, block_number, prime};

/// Values of `r` at the edges: zero, single bits, all that clamping leaves, one limb at a time full.
pub(crate) fn extreme_r() -> Vec<u128> {
    let mut all: Vec<u128> = (0..128).map(|bit| 1 << bit).collect();
    all.extend([0, 3, 5, u128::MAX, u128::MAX >> 1, u128::MAX << 32, u128::MAX << 64]);
    // the limbs of radix 2^26, 2^44 and 2^64
    for width in [26, 44, 64] {
        let limb = (1 << width) - 1;
        all.extend((0..128).step_by(width).flat_map(|at| [limb << at, !(limb << at)]));
    }
    for r in &mut all {
        let mut key = [0; 32];
        key[..16].copy_from_slice(&r.to_le_bytes());
        *r = super::r(&key);
    }
    all.sort();
    all.dedup();
    all
}

/// Distances from a multiple of 2^130 - 5: around the final subtraction, and to both sides of 2^128.
pub(crate) fn targets() -> Vec<BigUint> {
    let near_zero = (0..=8u32).flat_map(|k| [BigUint::from(k), prime() - 1u8 - k]);
    let near_128 = (0..=3u32).map(|k| (BigUint::from(1u8) << 128) - 2u8 + k);
    near_zero.chain(near_128).collect()
}

/// A message of `lanes * steps` blocks in which each lane's own accumulator, multiplied by `r^lanes`
/// per step, ends at `target`; one lane is Poly1305 as it is defined.
///
/// `None` where algebra forbids it: for `r = 0`.
pub(crate) fn forced(r: &BigUint, lanes: usize, steps: usize, target: &BigUint) -> Option<Vec<u8>> {
    let multiplier = r.modpow(&BigUint::from(lanes), &prime());
    // Fermat's inverse; zero has none
    let inverse = multiplier.modpow(&(prime() - 2u8), &prime());
    if inverse == BigUint::ZERO {
        return None;
    }
    let chains: Option<Vec<Vec<[u8; 16]>>> =
        (0..lanes).map(|lane| chain(&multiplier, &inverse, lane, steps, target)).collect();
    let chains = chains?;
    let blocks = (0..steps).flat_map(|step| chains.iter().map(move |chain| chain[step]));
    Some(blocks.flatten().collect())
}

/// The blocks of one lane: full ones, then one to make the next solvable, then the solution.
fn chain(
    multiplier: &BigUint,
    inverse: &BigUint,
    lane: usize,
    steps: usize,
    target: &BigUint,
) -> Option<Vec<[u8; 16]>> {
    let wanted = target * inverse % prime();
    let full = [0xff; 16];
    // a block is a number from 2^128 to 2^129 - 1: a quarter of all residues, so vary the one before
    (0..200u32).find_map(|attempt| {
        let mut blocks = vec_of(full, steps);
        if steps > 1 {
            let varied = u128::MAX - u128::from(attempt) - 1000 * lane as u128;
            blocks[steps - 2] = varied.to_le_bytes();
        }
        blocks.pop();
        let before = accumulate(multiplier, blocks.as_flattened());
        let last = (&wanted + prime() - before) % prime();
        let bytes = last.to_bytes_le();
        (bytes.len() == 17 && bytes[16] == 1).then(|| {
            blocks.push(*bytes.first_chunk().unwrap());
            blocks
        })
    })
}

/// Messages for one `r`: all-`ff` texts of 1 to 80 blocks, and forced accumulators.
pub(crate) fn messages(r: &BigUint) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (1..=80).map(|blocks| vec_of(0xff, 16 * blocks)).collect();
    for lanes in [1, 2, 4, 8, 16] {
        for steps in [1, 2, 3, 9] {
            all.extend(targets().iter().filter_map(|target| forced(r, lanes, steps, target)));
        }
    }
    all
}

/// The sum of all blocks: what `r = 1` makes of a message.
pub(crate) fn sum(message: &[u8]) -> BigUint {
    message.chunks(16).map(block_number).sum::<BigUint>() % prime()
}

fn vec_of<T: Clone>(value: T, len: usize) -> Vec<T> {
    core::iter::repeat_n(value, len).collect()
}
