//! The hash of every backend, and the scalar one in both its forms, against big integers: keys and
//! messages that are made to hit the carries, which random ones never do.

// what this target itself would leave out
#[cfg(not(target_pointer_width = "64"))]
#[path = "scalar.rs"]
mod scalar;
#[path = "scalar32.rs"]
mod scalar32;
#[cfg(not(target_pointer_width = "64"))]
#[path = "wide.rs"]
mod wide;

use std::vec::Vec;

use num_bigint::BigUint;

use self::scalar::Scalar;
use self::wide::{Lanes, Multiply52, Wide};
use super::{BLOCK, Hash, Key, Poly1305, integers, length_block};
#[cfg(target_pointer_width = "64")]
use super::{scalar, wide};
use crate::Backend;
use crate::chacha20::ChaCha20;
use crate::isa::Kernel;
use crate::isa::text::Source;
#[cfg(target_arch = "x86_64")]
use crate::isa::{Features, Isa, avx512::Avx512};
use crate::kernel::Operation;
use crate::oracle;

type Block = [u8; BLOCK];

/// K01, K02: the largest blocks under each extreme `r`, in every number that a kernel could take.
#[test]
fn k01_largest_blocks_under_extreme_keys() {
    let blocks = [[0xff; BLOCK]; 300];
    for r in extreme_keys() {
        for s in [0, u128::MAX] {
            // the largest r takes every count, the others each count of a few kernel widths
            let most = if r == CLAMP { blocks.len() } else { 80 };
            check_prefixes(r, s, &blocks[..most]);
        }
    }
}

/// K01: under `r = 1` the hash is the sum of the blocks, and two largest blocks are 3 modulo the prime.
#[test]
fn k01_two_largest_blocks_count_three() {
    let blocks = [[0xff; BLOCK]; 300];
    for s in [0, 7, u128::MAX - 1] {
        for k in 1..=blocks.len() / 2 {
            let expected = (s.wrapping_add(3 * k as u128)).to_le_bytes();
            for (name, tag) in tags(key(1, s), &blocks[..2 * k], 0) {
                assert_eq!(tag, expected, "{name}, {k}");
            }
        }
    }
}

/// Accumulators just below and just above the prime after every block, in every lane.
#[test]
fn accumulators_beside_the_prime() {
    let mut random = Random(1);
    // the last are texts of which up to eight steps of eight blocks are absorbed together
    for (lanes, least) in [(1, 2), (2, 4), (4, 8), (8, 16), (32, 64), (8, 290), (8, 330)] {
        for r in [CLAMP, random.key(), random.key()] {
            for count in least..least + 40 {
                let blocks = cornered(r, lanes, count);
                for singly in [0, 1, 3] {
                    check(r, 0, &blocks, singly);
                }
                check(r, u128::MAX, &blocks, 0);
            }
        }
    }
}

/// The last reduction, of accumulators that no message can be found for: all combinations of limbs at
/// both ends of their proven bounds and beside the prime.
#[test]
fn tags_of_extreme_accumulators() {
    let p = oracle::prime();
    let ends = |bits: u32, more: u64| {
        let full = 1u64 << (bits - 1) << 1;
        let below = (1..=6).map(move |i| full.wrapping_sub(i) & (u64::MAX >> (64 - bits)));
        below.chain([0, 1]).chain((more > 0).then_some(full.wrapping_add(more))).collect()
    };

    let limbs: Vec<u64> = ends(64, 0);
    for (h0, h1, h2) in triples(&limbs, &limbs, &[0, 1, 2, 3, 4, 5, 6]) {
        let mut scalar = Scalar::new(key(CLAMP, 7));
        scalar.resume([h0, h1, h2]);
        let h = BigUint::from(h0) + (BigUint::from(h1) << 64) + (BigUint::from(h2) << 128);
        assert_eq!(scalar.tag(), oracle::tag_of(&(h % &p), &[7]), "{h0:#x} {h1:#x} {h2:#x}");
    }

    let (limbs, upper): (Vec<u64>, _) = (ends(26, 0), [0, 1, (1 << 26) - 2, (1 << 26) - 1]);
    for (h0, h1, h2) in triples(&limbs, &ends(26, 37), &upper) {
        for (h3, h4, _) in triples(&upper, &upper, &[0]) {
            let h = [h0, h1, h2, h3, h4];
            let mut narrow = scalar32::Scalar::new(key(CLAMP, 7));
            narrow.h = h.map(|limb| limb as u32);
            let h = h.iter().rev().fold(BigUint::ZERO, |sum, limb| (sum << 26) + limb);
            assert_eq!(narrow.tag(), oracle::tag_of(&(&h % &p), &[7]), "{h:#x}");
        }
    }
}

fn triples(x: &[u64], y: &[u64], z: &[u64]) -> Vec<(u64, u64, u64)> {
    let pairs = x.iter().flat_map(|x| y.iter().map(move |y| (*x, *y)));
    pairs.flat_map(|(x, y)| z.iter().map(move |z| (x, y, *z))).collect()
}

/// Any key, any blocks.
#[test]
fn random_keys_and_blocks() {
    let mut random = Random(2);
    for count in 1..=200 {
        let blocks: Vec<Block> = (0..count).map(|_| random.next().to_le_bytes()).collect();
        check(random.key(), random.next(), &blocks, count % 5);
    }
}

/// K02: every power of `r` that the hash in eight lanes computes ahead, on this CPU's instructions if
/// it has them and on a model of them, for all extreme and for random `r`: a million
/// when `CHAPOLY_POWERS=1000000` asks for them.
#[test]
fn k02_powers_of_r() {
    let count = match std::env::var("CHAPOLY_POWERS") {
        Ok(count) => count.parse().unwrap(),
        Err(_) => 20_000,
    };
    let mut random = Random(3);
    for r in extreme_keys().into_iter().chain((0..count).map(|_| random.key())) {
        check_powers(r, PowersOf(r).run(Eight));
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = Avx512::new(Features::detect()) {
            check_powers(r, isa.enter(PowersOf(r)));
        }
    }
}

fn check_powers(r: u128, powers: Vec<Power>) {
    let p = oracle::prime();
    let mut expected = std::vec![BigUint::from(1u8)];
    for i in 0..64 {
        expected.push(&expected[i] * r % &p);
    }
    assert_eq!(powers.len(), 4 * 8);
    for (exponent, [l0, l1, l2], folded) in powers {
        let power = BigUint::from(l0) + (BigUint::from(l1) << 44) + (BigUint::from(l2) << 88);
        assert_eq!(power % &p, expected[exponent], "{r:#x} to the {exponent}");
        assert_eq!(folded, [20 * l1, 20 * l2], "{r:#x} to the {exponent}");
    }
}

/// The bits that section 2.5 leaves in `r`.
const CLAMP: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;

/// 0, every power of two (1, 2 and 4 among them), each half, and all bits.
fn extreme_keys() -> Vec<u128> {
    let powers = (0..128).map(|i| 1u128 << i).filter(|power| power & CLAMP != 0);
    let low = u128::from(u64::MAX);
    [0, CLAMP & low, CLAMP & !low, CLAMP].into_iter().chain(powers).collect()
}

fn key(r: u128, s: u128) -> Key {
    Key { r: halves(r), s: halves(s) }
}

fn halves(x: u128) -> [u64; 2] {
    [x as u64, (x >> 64) as u64]
}

/// Compares the tags of all prefixes of `blocks` with the big integers' tags.
fn check_prefixes(r: u128, s: u128, blocks: &[Block]) {
    let mut hash = BigUint::ZERO;
    for (i, block) in blocks.iter().enumerate() {
        hash = (hash + oracle::block_number(block)) * r % oracle::prime();
        let expected = oracle::tag_of(&hash, &s.to_le_bytes());
        for (name, tag) in tags(key(r, s), &blocks[..=i], 0) {
            assert_eq!(tag, expected, "{name}, r {r:#x}, s {s:#x}, {} blocks", i + 1);
        }
    }
}

fn check(r: u128, s: u128, blocks: &[Block], singly: usize) {
    let hash = oracle::accumulate(&r.into(), blocks.as_flattened());
    let expected = oracle::tag_of(&hash, &s.to_le_bytes());
    for (name, tag) in tags(key(r, s), blocks, singly) {
        assert_eq!(tag, expected, "{name}, r {r:#x}, s {s:#x}, {} blocks", blocks.len());
    }
}

/// The tag of `blocks` from everything that can compute it, `singly` blocks absorbed as AAD.
fn tags(key: Key, blocks: &[Block], singly: usize) -> Vec<(std::string::String, [u8; 16])> {
    let mut narrow = scalar32::Scalar::new(key);
    narrow.absorb(blocks.as_flattened().into());
    let mut scalar = Scalar::new(key);
    scalar.absorb(blocks.as_flattened().into());
    let mut tags = std::vec![("scalar32".into(), narrow.tag()), ("scalar".into(), scalar.tag())];
    let Some((last, blocks)) = blocks.split_last() else { return tags };
    // fewer than the widest step and its length block are not given to such a hash
    if blocks.len() < singly + 8 {
        return tags;
    }
    let (aad, text) = blocks.split_at(singly);
    let (aad, text) = (aad.as_flattened(), text.as_flattened());
    // any block can be the length block
    let lengths = halves(u128::from_le_bytes(*last));
    assert_eq!(length_block(lengths), *last);
    for many in [false, true] {
        let tag =
            TagOf { key, aad, text, lengths, long: true, many }.hash::<_, Wide<_, true>>(Eight);
        tags.push((std::format!("model, many {many}"), tag));
    }
    for backend in Backend::available() {
        for long in [false, true] {
            for many in [false, true] {
                let tag = backend.run(TagOf { key, aad, text, lengths, long, many });
                tags.push((std::format!("{backend}, long {long}, many {many}"), tag));
            }
        }
    }
    tags
}

/// A message after whose every block the accumulator of each of `lanes` interleaved polynomials, and
/// in the end their sum, is congruent to a number within a few of zero, from either side.
fn cornered(r: u128, lanes: usize, count: usize) -> Vec<Block> {
    let powers: Vec<Factor> = (0..=lanes).map(|exponent| Factor::new(r, exponent)).collect();
    let mut blocks = Vec::new();
    let mut v = std::vec![BigUint::ZERO; lanes];
    for _ in 0..count % lanes {
        blocks.push(corner(&mut v[0], &powers[1], &BigUint::ZERO));
    }
    for _ in 1..count / lanes {
        for v in &mut v {
            blocks.push(corner(v, &powers[lanes], &BigUint::ZERO));
        }
    }
    let mut sum = BigUint::ZERO;
    for (i, v) in v.iter_mut().enumerate() {
        // beside the sum of the others in the last lane
        let others = if i + 1 == lanes { sum.clone() } else { BigUint::ZERO };
        blocks.push(corner(v, &powers[lanes - i], &others));
        sum += &*v;
    }
    blocks
}

/// The block `m` that brings `others + (v + m) * factor` closest to a multiple of the prime.
fn corner(v: &mut BigUint, factor: &Factor, others: &BigUint) -> Block {
    let p = oracle::prime();
    let mark = BigUint::from(1u8) << 128;
    for k in 0u32.. {
        for target in [BigUint::from(k), &p - 1u8 - k] {
            let sum = (&target + &p - others % &p) * &factor.inverse;
            let block: BigUint = (sum + &p + &p - &*v - &mark) % &p;
            if block < mark {
                let mut bytes = block.to_bytes_le();
                bytes.resize(BLOCK, 0);
                *v = (&*v + block + mark) * &factor.power % &p;
                return *bytes.first_chunk().unwrap();
            }
        }
    }
    unreachable!("a quarter of all targets has a block")
}

struct Factor {
    power: BigUint,
    inverse: BigUint,
}

impl Factor {
    fn new(r: u128, exponent: usize) -> Self {
        let p = oracle::prime();
        let power = BigUint::from(r).modpow(&exponent.into(), &p);
        // Fermat
        let inverse = power.modpow(&(&p - 2u8), &p);
        Self { power, inverse }
    }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u128 {
        let mut half = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            u128::from(x ^ x >> 31)
        };
        half() << 64 | half()
    }

    fn key(&mut self) -> u128 {
        self.next() & CLAMP
    }
}

/// The tag of whole blocks, hashed as a kernel does it.
struct TagOf<'a> {
    key: Key,
    aad: &'a [u8],
    text: &'a [u8],
    lengths: [u64; 2],
    /// With the hash for long messages.
    long: bool,
    /// As many steps together as possible.
    many: bool,
}

impl Operation for TagOf<'_> {
    type Output = [u8; 16];

    fn on<I: ChaCha20 + Poly1305>(self, isa: I) -> [u8; 16] {
        isa.enter(self)
    }
}

impl<I: Poly1305> Kernel<I> for TagOf<'_> {
    type Output = [u8; 16];

    fn run(self, isa: I) -> [u8; 16] {
        if self.long { self.hash::<_, I::Long>(isa) } else { self.hash::<_, I::Short>(isa) }
    }
}

impl TagOf<'_> {
    fn hash<I: Copy, H: Hash<I>>(self, isa: I) -> [u8; 16] {
        let mut hash = H::new(isa, self.key);
        hash.absorb(self.aad.into());
        let text = Source::from(self.text);
        let mut at = hash.begin(isa, text);
        let step = H::STEP * BLOCK;
        while text.len() - at >= step {
            let most = if self.many { hash.together() } else { 1 };
            let count = most.min((text.len() - at) / step);
            let blocks = text.range(at, at + count * step);
            hash.steps(isa, blocks);
            at += count * step;
        }
        let end = H::end(isa, text.range(at, text.len()), self.lengths);
        hash.finish(isa, end)
    }
}

/// An exponent, the limbs of 44 bits of that power of `r`, and the two upper ones times 20.
type Power = (usize, [u64; 3], [u64; 2]);

/// The powers that are computed for this `r`: those of each lane, then those of the steps.
struct PowersOf(u128);

impl<I: Multiply52> Kernel<I> for PowersOf {
    type Output = Vec<Power>;

    fn run(self, isa: I) -> Vec<Power> {
        let mut powers = Vec::new();
        // texts of a few steps and of many
        for (blocks, of_steps) in
            [(7, [32, 32, 24, 24, 16, 16, 8, 8]), (1023, [64, 32, 56, 24, 48, 16, 40, 8])]
        {
            let mut hash = Wide::<I, true>::new(isa, key(self.0, 0));
            hash.begin(isa, Source::from(&[0; 1023 * BLOCK][..blocks * BLOCK]));
            let steps = hash.powers.unwrap().all;
            for (exponents, factor) in [([8, 4, 7, 3, 6, 2, 5, 1], hash.lanes), (of_steps, steps)] {
                for (lane, exponent) in exponents.into_iter().enumerate() {
                    let at = |x: I::Lanes| lane_of(isa, x, lane);
                    powers.push((exponent, factor.r.map(at), factor.folded.map(at)));
                }
            }
        }
        powers
    }
}

fn lane_of<I: Multiply52>(isa: I, x: I::Lanes, lane: usize) -> u64 {
    let zero = isa.splat(0);
    let only = match lane {
        0 => x.select::<0x01>(zero),
        1 => x.select::<0x02>(zero),
        2 => x.select::<0x04>(zero),
        3 => x.select::<0x08>(zero),
        4 => x.select::<0x10>(zero),
        5 => x.select::<0x20>(zero),
        6 => x.select::<0x40>(zero),
        _ => x.select::<0x80>(zero),
    };
    only.sum()
}

/// A model of the instructions that [`Wide`] needs.
#[derive(Clone, Copy)]
struct Eight;

impl Multiply52 for Eight {
    type Lanes = Octet;

    fn splat(self, x: u64) -> Octet {
        Octet([x; 8])
    }

    fn first(self, x: u64) -> Octet {
        Octet([x, 0, 0, 0, 0, 0, 0, 0])
    }

    fn load(self, blocks: Source<'_>) -> [Octet; 2] {
        [0, 8].map(|at| {
            Octet([0, 4, 1, 5, 2, 6, 3, 7].map(|i| {
                let half: [u8; 8] = blocks.array(i * BLOCK + at);
                u64::from_le_bytes(half)
            }))
        })
    }

    fn load_end(self, rest: Source<'_>, lengths: [u64; 2]) -> [Octet; 2] {
        let mut blocks = [[0; BLOCK]; 8];
        for (i, block) in blocks.iter_mut().take(rest.len().div_ceil(BLOCK)).enumerate() {
            *block = rest.padded_block(i * BLOCK);
        }
        blocks[7] = length_block(lengths);
        self.load(blocks.as_flattened().into())
    }
}

#[derive(Clone, Copy)]
struct Octet([u64; 8]);

impl Octet {
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(core::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    fn product(x: u64, y: u64) -> u128 {
        const LOW_52: u64 = (1 << 52) - 1;
        u128::from(x & LOW_52) * u128::from(y & LOW_52)
    }
}

impl Lanes for Octet {
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }

    fn and(self, other: Self) -> Self {
        self.zip(other, |x, y| x & y)
    }

    fn shift_left<const N: u32>(self) -> Self {
        Self(self.0.map(|x| x << N))
    }

    fn shift_right<const N: u32>(self) -> Self {
        Self(self.0.map(|x| x >> N))
    }

    fn bits_from<const N: u32>(low: Self, high: Self) -> Self {
        low.zip(high, |low, high| ((u128::from(low) | u128::from(high) << 64) >> N) as u64)
    }

    fn add_product_low(self, x: Self, y: Self) -> Self {
        self.add(x.zip(y, |x, y| Self::product(x, y) as u64 & ((1 << 52) - 1)))
    }

    fn add_product_high(self, x: Self, y: Self) -> Self {
        self.add(x.zip(y, |x, y| (Self::product(x, y) >> 52) as u64))
    }

    fn select<const MASK: u8>(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| if MASK >> i & 1 != 0 { self.0[i] } else { other.0[i] }))
    }

    fn spread(self) -> Self {
        Self([self.0[0]; 8])
    }

    fn spread_lane(&self, n: usize) -> Self {
        Self([self.0[n]; 8])
    }

    fn sum(self) -> u64 {
        self.0.into_iter().fold(0, u64::wrapping_add)
    }
}
