//! The proof that no intermediate of the hash passes its word, whatever the key and the message.
//!
//! The files of the hash are compiled once more here, unchanged, over intervals in place of integers
//! and over an instruction set whose lanes are intervals. Every key and every block is the interval of
//! all keys and of all blocks. For any number of blocks: starting from what the accumulator is at
//! first, its interval is widened by what a further step can give, until a step gives nothing new.
//! That interval is the loop's invariant; `docs/poly1305.md` quotes it.
//!
//! This proves sizes, for the definitions in Rust. That they compute Poly1305, and that code written
//! for one instruction set computes the same, is shown by comparing them.

#![allow(dead_code, clippy::duplicate_mod, reason = "the files are here for what they compute")]

#[path = "hash.rs"]
mod hash;
mod integers;
#[path = "scalar.rs"]
mod scalar;
#[path = "scalar32.rs"]
mod scalar32;
#[path = "wide.rs"]
mod wide;

use std::string::String;

use self::hash::{BLOCK, Hash, Key};
use self::integers::{Interval, U32, U64, highest, peak};
use self::scalar::Scalar;
use self::wide::{Lanes, Multiply52, Wide};
use crate::isa::text::Source;

#[test]
fn limbs_of_64_bits() {
    let hash = settled(Scalar::new(any_key()));
    let ([h0, h1, h2], _) = hash.state();
    hash.tag();
    let report = std::format!(
        "64-bit limbs: h <= ({}, {}, {h2})\n    64-bit sums and products {}, 128-bit {}\n",
        bound(h0.high()),
        bound(h1.high()),
        below(highest("64-bit")),
        below(highest("128-bit")),
        h2 = bound(h2.high()),
    );
    assert_quoted(&report);
}

#[test]
fn limbs_of_26_bits() {
    let mut hash = scalar32::Scalar::new(any_key());
    settle(&mut hash, |hash| hash.h, |hash, h| hash.h = h, |hash| hash.absorb_block([0; BLOCK]));
    let h = hash.h.map(|limb| bound(limb.high())).join(", ");
    hash.tag();
    let report = std::format!(
        "26-bit limbs: h <= ({h})\n    32-bit sums and products {}, 64-bit {}\n",
        below(highest("32-bit")),
        below(highest("64-bit")),
    );
    assert_quoted(&report);
}

#[test]
fn limbs_of_44_bits() {
    assert_quoted(&eight_lanes::<false>());
}

#[test]
fn limbs_of_44_bits_in_eight_steps() {
    assert_quoted(&eight_lanes::<true>());
}

fn eight_lanes<const MANY: bool>() -> String {
    let mut hash = Wide::<Intervals, MANY>::new(Intervals, any_key());
    hash.single = settled(hash.single);
    // with the length block none goes singly
    let begun = hash.begin(Intervals, blocks(MOST - 1));
    assert_eq!(begun, 0);
    let most = hash.together();
    settle(
        &mut hash,
        |hash| hash.v.map(Octet::hull),
        |hash, v| hash.v = v.map(|limb| Octet([limb; 8])),
        |hash| {
            let v = hash.v;
            for steps in 1..=most {
                let so_far = core::mem::replace(&mut hash.v, v);
                hash.steps(Intervals, blocks(8 * steps));
                hash.v = core::array::from_fn(|i| hash.v[i].zip(so_far[i], U64::hull));
            }
        },
    );
    let v = hash.v.map(|limb| bound(limb.hull().high())).join(", ");
    hash.finish(Intervals, [Octet([U64::ANY; 8]); 2]);
    std::format!(
        "44-bit limbs, steps of eight blocks: {most}; V <= ({v})
    factors {}, lanes {}, 64-bit sums and products {}, 128-bit {}\n",
        below(highest("factor")),
        below(highest("lane")),
        below(highest("64-bit")),
        below(highest("128-bit")),
    )
}

/// As the clamp is left out, `r1_folded * h2` passes 64 bits.
#[test]
#[should_panic = "passes a word of 64 bits"]
fn an_unclamped_key_is_noticed() {
    let key = Key { r: [U64::ANY; 2], s: [U64::ANY; 2] };
    Scalar::new(key).absorb_block([0; BLOCK]);
}

/// (By a debug assertion, so there is nothing to notice it where they are off.)
#[cfg(debug_assertions)]
#[test]
#[should_panic = "h[2] <= 6"]
fn a_carry_too_many_is_noticed() {
    let mut hash = settled(Scalar::new(any_key()));
    let ([h0, h1, h2], _) = hash.state();
    hash.resume([h0, h1, h2 + U64::up_to(1)]);
}

#[test]
#[should_panic = "passes a word of 32 bits"]
fn a_long_limb_of_26_bits_is_noticed() {
    let mut hash = scalar32::Scalar::new(any_key());
    hash.h = [U32::up_to((1 << 32) - (1 << 25)); 5];
    hash.absorb_block([0; BLOCK]);
}

#[test]
#[should_panic = "passes the 52 bits of the multiplier"]
fn a_long_factor_is_noticed() {
    let x = Octet([U64::up_to(1 << 52); 8]);
    Octet::default().add_product_low(x, x);
}

#[test]
#[should_panic = "passes a word of 64 bits"]
fn a_long_lane_is_noticed() {
    let x = Octet([U64::ANY; 8]);
    let y = Octet([U64::up_to(1); 8]);
    Octet::default().add_product_low(y, y).add(x);
}

/// The intervals themselves: the ends of every result are those of the results of all operands.
#[test]
fn intervals_hold_what_they_stand_for() {
    let ends = [0u64, 1, 2, 3, 4, 6, 7, 8, 11, 12];
    for low in ends {
        for high in ends.into_iter().filter(|high| *high >= low) {
            let x = U64::from(low).hull(U64::from(high));
            for value in low..=high {
                for (interval, value) in [
                    (x + 5, value + 5),
                    (x * 3, value * 3),
                    (x & 3, value & 3),
                    (x & !3, value & !3),
                    (x & 5, value & 5),
                    (x | x << 2, value | value << 2),
                    (x >> 1, value >> 1),
                    (x << 62, value << 62),
                    (x.wrapping_neg(), value.wrapping_neg()),
                    (!x, !value),
                    (x.overflowing_add((u64::MAX - 5).into()).0, value.wrapping_add(u64::MAX - 5)),
                    (x.overflowing_add((u64::MAX - 5).into()).1.into(), u64::from(value > 5)),
                    (integers::low_64((x * 1).into()), value),
                ] {
                    assert_eq!(interval.hull(value.into()), interval, "{value:#x}");
                }
                assert!(!(x <= 6) || value <= 6);
                assert!(!(x < 6) || value < 6);
            }
            assert!((x <= high) && (x < high + 1) && !(x < high));
        }
    }
}

fn any_key() -> Key {
    Key::new([[U64::ANY; 2]; 2])
}

/// Enough for all powers.
const MOST: usize = 1024;

/// That many blocks, of whose bytes nothing is read.
fn blocks(count: usize) -> Source<'static> {
    const ANY: [u8; MOST * BLOCK] = [0; MOST * BLOCK];
    Source::from(ANY.as_slice()).range(0, count * BLOCK)
}

/// `hash` after any number of blocks.
fn settled(mut hash: Scalar) -> Scalar {
    settle(&mut hash, |hash| hash.state().0, Scalar::resume, |hash| hash.absorb_block([0; BLOCK]));
    hash
}

/// Widens the accumulator until `step` cannot leave it.
fn settle<H, const LIMBS: usize, const BITS: u32>(
    hash: &mut H,
    get: impl Fn(&H) -> [Interval<BITS>; LIMBS],
    set: impl Fn(&mut H, [Interval<BITS>; LIMBS]),
    step: impl Fn(&mut H),
) {
    for _ in 0..100 {
        let before = get(hash);
        step(hash);
        let after = get(hash);
        let hull = core::array::from_fn(|i| before[i].hull(after[i]));
        set(hash, hull);
        if hull == before {
            return;
        }
    }
    panic!("the accumulator grows from step to step");
}

/// The documentation must say what has been proven.
fn assert_quoted(report: &str) {
    std::print!("{report}");
    let doc = include_str!("../../docs/poly1305.md");
    assert!(doc.contains(report), "docs/poly1305.md does not quote:\n{report}");
}

/// `x` in the form 2^n + d, where d is small.
fn bound(x: u128) -> String {
    if x < 64 {
        return std::format!("{x}");
    }
    let n = (x + x / 2).ilog2();
    match x.cast_signed() - (1 << n) {
        0 => std::format!("2^{n}"),
        d if d < 0 => std::format!("2^{n} - {}", -d),
        d => std::format!("2^{n} + {d}"),
    }
}

/// The power of two that `x` is below, to a hundredth.
fn below(x: u128) -> String {
    assert!(!x.is_power_of_two());
    std::format!("< 2^{:.2}", ((x as f64).log2() * 100.0).ceil() / 100.0)
}

/// The instruction set.
#[derive(Clone, Copy)]
struct Intervals;

impl Multiply52 for Intervals {
    type Lanes = Octet;

    fn splat(self, x: u64) -> Octet {
        Octet([x.into(); 8])
    }

    fn first(self, x: U64) -> Octet {
        let mut first = Octet::default();
        first.0[0] = x;
        first
    }

    fn load(self, _: Source<'_>) -> [Octet; 2] {
        [Octet([U64::ANY; 8]); 2]
    }

    fn load_end(self, _: Source<'_>, _: [U64; 2]) -> [Octet; 2] {
        [Octet([U64::ANY; 8]); 2]
    }
}

#[derive(Clone, Copy, Default)]
struct Octet([U64; 8]);

impl Octet {
    fn hull(self) -> U64 {
        self.0.into_iter().reduce(U64::hull).unwrap()
    }

    fn map(self, f: impl Fn(U64) -> U64) -> Self {
        Self(self.0.map(f))
    }

    fn zip(self, other: Self, f: impl Fn(U64, U64) -> U64) -> Self {
        Self(core::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    /// `x * y` in each lane, in two halves.
    fn products(x: Self, y: Self) -> [Self; 2] {
        const WORD: u128 = 1 << 52;
        for factor in [x.hull().high(), y.hull().high()] {
            assert!(factor < WORD, "passes the 52 bits of the multiplier");
            peak("factor", factor);
        }
        let high = |x: U64, y: U64| x.high() * y.high();
        [
            x.zip(y, |x, y| U64::up_to(high(x, y).min(WORD - 1))),
            x.zip(y, |x, y| U64::up_to(high(x, y) / WORD)),
        ]
    }
}

impl Lanes for Octet {
    fn add(self, other: Self) -> Self {
        let sum = self.zip(other, |x, y| x + y);
        peak("lane", sum.hull().high());
        sum
    }

    fn and(self, other: Self) -> Self {
        self.zip(other, |x, y| x & y)
    }

    fn shift_left<const N: u32>(self) -> Self {
        self.map(|x| x << N)
    }

    fn shift_right<const N: u32>(self) -> Self {
        self.map(|x| x >> N)
    }

    fn bits_from<const N: u32>(low: Self, high: Self) -> Self {
        low.zip(high, |low, high| integers::low_64(integers::join(low, high) >> N))
    }

    fn add_product_low(self, x: Self, y: Self) -> Self {
        self.add(Self::products(x, y)[0])
    }

    fn add_product_high(self, x: Self, y: Self) -> Self {
        self.add(Self::products(x, y)[1])
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

    fn sum(self) -> U64 {
        self.0.into_iter().fold(U64::default(), |sum, x| sum + x)
    }
}
