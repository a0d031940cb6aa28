//! Eight blocks at a time in limbs of 44 bits, for instruction sets that multiply 52-bit integers.
//!
//! ```text
//! V = 0 in every lane; lane 0 += what the singly absorbed blocks gave
//! for each step of eight blocks, one in each lane:  V = (V + blocks) * r^8
//! at the end:                                       V = (V + blocks) * (r^8, r^7, ..., r^1)
//! tag = the sum of the lanes + s
//! ```

use core::hint::black_box;

use super::integers::{U64, U128, high_64, low_64};
use super::scalar::Scalar;
use super::{BLOCK, Hash, Key};
use crate::isa::text::Source;

/// An instruction set with eight lanes of 64 bits and a multiplier of 52 bits.
pub(crate) trait Multiply52: Copy {
    type Lanes: Lanes;

    /// `x` in every lane.
    fn splat(self, x: u64) -> Self::Lanes;

    /// `x` in lane 0, zero in the others.
    fn first(self, x: U64) -> Self::Lanes;

    /// The low and the high halves of eight blocks, both in the order 0 4 1 5 2 6 3 7.
    fn load(self, blocks: Source<'_>) -> [Self::Lanes; 2];

    /// As [`Self::load`], of at most seven blocks filled up with zeros, and of `length` as the eighth.
    fn load_end(self, rest: Source<'_>, lengths: [U64; 2]) -> [Self::Lanes; 2];
}

/// Eight unsigned integers of 64 bits.
pub(crate) trait Lanes: Copy {
    fn add(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn shift_left<const N: u32>(self) -> Self;
    fn shift_right<const N: u32>(self) -> Self;

    /// The 64 bits from bit `N` on of `low + high 2^64`.
    fn bits_from<const N: u32>(low: Self, high: Self) -> Self;

    /// `self + (x * y mod 2^52)`, of the low 52 bits of `x` and `y`.
    fn add_product_low(self, x: Self, y: Self) -> Self;

    /// `self + (x * y / 2^52)`, likewise.
    fn add_product_high(self, x: Self, y: Self) -> Self;

    /// The lanes of `self` whose bit in `MASK` is set, the others of `other`.
    fn select<const MASK: u8>(self, other: Self) -> Self;

    /// Lane 0 in every lane.
    fn spread(self) -> Self;

    /// Lane `n` in every lane, from memory.
    fn spread_lane(&self, n: usize) -> Self;

    /// The sum of all lanes.
    fn sum(self) -> U64;
}

const LOW_40: u64 = (1 << 40) - 1;
const LOW_42: u64 = (1 << 42) - 1;
const LOW_44: u64 = (1 << 44) - 1;

/// A number modulo 2^130 - 5 in each lane: `l[0] + l[1] 2^44 + l[2] 2^88`.
pub(super) type Number<L> = [L; 3];

/// A factor: a number, and its two upper limbs times 20 for products that pass 2^132 = 4 * 2^130.
#[derive(Clone, Copy)]
pub(super) struct Factor<L> {
    pub(super) r: Number<L>,
    pub(super) folded: [L; 2],
}

impl<L: Lanes> Factor<L> {
    #[inline(always)]
    fn new<I: Multiply52<Lanes = L>>(isa: I, r: Number<L>) -> Self {
        debug_assert!(r.into_iter().all(fits::<47, L>), "times 20 it must fit 52 bits");
        // by the multiplier: the compiler would undo shifts and adds, and do worse
        let times_20 = [
            isa.splat(0).add_product_low(r[1], isa.splat(20)),
            isa.splat(0).add_product_low(r[2], isa.splat(20)),
        ];
        Self { r, folded: times_20 }
    }
}

/// Sums of products: for each limb the low 52 bits, and what lies above.
#[derive(Clone, Copy)]
struct Products<L> {
    low: [L; 3],
    high: [L; 3],
}

impl<L: Lanes> Products<L> {
    #[inline(always)]
    fn zero<I: Multiply52<Lanes = L>>(isa: I) -> Self {
        Self { low: [isa.splat(0); 3], high: [isa.splat(0); 3] }
    }

    /// Adds `x * y`.
    #[inline(always)]
    fn add(&mut self, x: Number<L>, y: &Factor<L>) {
        debug_assert!(x.into_iter().chain(y.r).chain(y.folded).all(fits::<52, L>));
        let ([r0, r1, r2], [f1, f2]) = (y.r, y.folded);
        self.add_limb(x[0], [r0, r1, r2]);
        self.add_limb(x[1], [f2, r0, r1]);
        self.add_limb(x[2], [f1, f2, r0]);
    }

    #[inline(always)]
    fn add_limb(&mut self, x: L, y: Number<L>) {
        self.low[0] = self.low[0].add_product_low(x, y[0]);
        self.low[1] = self.low[1].add_product_low(x, y[1]);
        self.low[2] = self.low[2].add_product_low(x, y[2]);
        self.high[0] = self.high[0].add_product_high(x, y[0]);
        self.high[1] = self.high[1].add_product_high(x, y[1]);
        self.high[2] = self.high[2].add_product_high(x, y[2]);
    }

    /// The sum modulo 2^130 - 5, with limbs of 44, 44 and 42 bits but for a last carry into the second.
    #[inline(always)]
    fn reduce<I: Multiply52<Lanes = L>>(self, isa: I) -> Number<L> {
        let (low, high) = (self.low, self.high);
        // 2^52 of one limb is 2^8 of the next; of the last, which ends at 42 bits, 2^10 of 2^130
        let l1 = low[1].add(high[0].shift_left::<8>()).add(low[0].shift_right::<44>());
        let l2 = low[2].add(high[1].shift_left::<8>()).add(l1.shift_right::<44>());
        let over = high[2].shift_left::<10>().add(l2.shift_right::<42>());
        let l0 = low[0].and(isa.splat(LOW_44)).add(over).add(over.shift_left::<2>());
        let sum = [
            l0.and(isa.splat(LOW_44)),
            l1.and(isa.splat(LOW_44)).add(l0.shift_right::<44>()),
            l2.and(isa.splat(LOW_42)),
        ];
        debug_assert!(fits::<45, L>(sum[1]));
        sum
    }
}

/// Whether every lane of `x` is below 2^BITS.
#[inline(always)]
fn fits<const BITS: u32, L: Lanes>(x: L) -> bool {
    x.shift_right::<BITS>().sum() == 0
}

#[inline(always)]
fn multiply<I: Multiply52>(isa: I, x: Number<I::Lanes>, y: &Factor<I::Lanes>) -> Number<I::Lanes> {
    let mut products = Products::zero(isa);
    products.add(x, y);
    products.reduce(isa)
}

/// The blocks as numbers, each with the bit that marks a whole block.
#[inline(always)]
fn number<I: Multiply52>(isa: I, [low, high]: [I::Lanes; 2]) -> Number<I::Lanes> {
    [
        low.and(isa.splat(LOW_44)),
        I::Lanes::bits_from::<44>(low, high).and(isa.splat(LOW_44)),
        I::Lanes::bits_from::<24>(high, isa.splat(1)),
    ]
}

#[inline(always)]
fn add<L: Lanes>(x: Number<L>, y: Number<L>) -> Number<L> {
    [x[0].add(y[0]), x[1].add(y[1]), x[2].add(y[2])]
}

/// Numbers of 130 bits and a little, from 64-bit limbs.
#[inline(always)]
fn limbs_of_44(h: [U64; 3]) -> [U64; 3] {
    [h[0] & LOW_44, (h[0] >> 44 | h[1] << 20) & LOW_44, h[1] >> 24 | h[2] << 40]
}

/// r^8n for n from 1 to 4, each in two lanes, or from 1 to 8.
#[derive(Clone, Copy)]
pub(super) struct StepPowers<L> {
    pub(super) all: Factor<L>,
    count: usize,
}

impl<L: Lanes> StepPowers<L> {
    /// r^8n is in lane `LANES[n - 1]`.
    const LANES: [usize; 8] = [7, 5, 3, 1, 6, 4, 2, 0];

    #[inline(always)]
    fn new<I: Multiply52<Lanes = L>>(isa: I, r8: &Factor<L>, eight: bool) -> Self {
        let r16 = multiply(isa, r8.r, r8);
        let p16 = select::<_, 0b0011_0011>(r16, r8.r); // 16 16 8 8 16 16 8 8
        let p32 = multiply(isa, p16, &Factor::new(isa, r16)); // 32 32 24 24 32 32 24 24
        let mut powers = select::<_, 0b0000_1111>(p32, p16); // 32 32 24 24 16 16 8 8
        if eight {
            let p64 = multiply(isa, powers, &Factor::new(isa, spread(p32)));
            powers = select::<_, 0b0101_0101>(p64, powers); // 64 32 56 24 48 16 40 8
        }
        Self { all: Factor::new(isa, powers), count: if eight { 8 } else { 4 } }
    }

    /// r^8n in every lane.
    #[inline(always)]
    fn power(&self, n: usize) -> Factor<L> {
        let Factor { r: [r0, r1, r2], folded: [f1, f2] } = &self.all;
        let lane = Self::LANES[n - 1];
        Factor {
            r: [r0.spread_lane(lane), r1.spread_lane(lane), r2.spread_lane(lane)],
            folded: [f1.spread_lane(lane), f2.spread_lane(lane)],
        }
    }
}

/// The hash; with `MANY` it absorbs several steps before it reduces.
pub(crate) struct Wide<I: Multiply52, const MANY: bool> {
    pub(super) single: Scalar,
    pub(super) v: Number<I::Lanes>,
    /// r^8 in every lane.
    step: Factor<I::Lanes>,
    /// From [`Hash::begin`] on, with `MANY`.
    pub(super) powers: Option<StepPowers<I::Lanes>>,
    /// r^8, r^4, r^7, r^3, r^6, r^2, r^5, r^1: what each block of a step lacks at the end.
    pub(super) lanes: Factor<I::Lanes>,
}

/// Bytes of text from which on the powers for eight steps together pay.
const EIGHT_FROM: usize = 4608;

/// Bytes of a step.
const BYTES: usize = 8 * BLOCK;

impl<I: Multiply52, const MANY: bool> Hash<I> for Wide<I, MANY> {
    const STEP: usize = BYTES / BLOCK;
    type End = [I::Lanes; 2];

    #[inline(always)]
    fn new(isa: I, key: Key) -> Self {
        let single = Scalar::new(key);
        let (_, [r0, r1]) = single.state();
        let r = limbs_of_44([r0, r1, U64::default()]);
        let r = spread([isa.first(r[0]), isa.first(r[1]), isa.first(r[2])]);
        // the exponents in the lanes, each step filling in what `lanes` wants modulo 2, 4 and 8
        let r2 = multiply(isa, r, &Factor::new(isa, r));
        let p2 = select::<_, 0b0011_0011>(r2, r); // 2 2 1 1 2 2 1 1
        let p4 = multiply(isa, p2, &Factor::new(isa, r2)); // 4 4 3 3 4 4 3 3
        let r4 = spread(p4);
        let p4 = select::<_, 0b0000_1111>(p4, p2); // 4 4 3 3 2 2 1 1
        let p8 = multiply(isa, p4, &Factor::new(isa, r4)); // 8 8 7 7 6 6 5 5
        let lanes = Factor::new(isa, select::<_, 0b0101_0101>(p8, p4));
        let step = Factor::new(isa, spread(p8));
        Self { single, v: [isa.splat(0); 3], step, powers: None, lanes }
    }

    #[inline(always)]
    fn absorb(&mut self, source: Source<'_>) {
        self.single.absorb(source);
    }

    #[inline(always)]
    fn begin(&mut self, isa: I, text: Source<'_>) -> usize {
        let blocks = text.len().div_ceil(BLOCK) + 1;
        // at most seven blocks, fewer than any text that is not absorbed singly as a whole
        let singly = blocks % <Self as Hash<I>>::STEP * BLOCK;
        self.single.absorb(text.range(0, singly));
        let (h, _) = self.single.state();
        let h = limbs_of_44(h);
        self.v = [isa.first(h[0]), isa.first(h[1]), isa.first(h[2])];
        if MANY {
            self.powers = Some(StepPowers::new(isa, &self.step, text.len() >= EIGHT_FROM));
        }
        singly
    }

    #[inline(always)]
    fn together(&self) -> usize {
        self.powers().map_or(1, |powers| powers.count)
    }

    #[inline(always)]
    fn lend(&self) -> Option<([U64; 3], [U64; 2])> {
        None
    }

    #[inline(always)]
    fn give_back(&mut self, _: [U64; 3]) {}

    #[inline(always)]
    fn steps(&mut self, isa: I, blocks: Source<'_>) {
        let count = blocks.len() / BYTES;
        debug_assert!((1..=self.together()).contains(&count));
        self.v = match self.powers() {
            Some(powers) if count > 1 => {
                // unseen by the compiler, which would spread all lanes ahead, and spill them
                let powers = black_box(powers);
                let mut products = Products::zero(isa);
                for i in 1..count {
                    let group = isa.load(blocks.range(i * BYTES, i * BYTES + BYTES));
                    products.add(number(isa, group), &powers.power(count - i));
                }
                products.add(self.first(isa, blocks), &powers.power(count));
                products.reduce(isa)
            }
            _ => multiply(isa, self.first(isa, blocks), &self.step),
        };
    }

    #[inline(always)]
    fn end(isa: I, rest: Source<'_>, lengths: [U64; 2]) -> Self::End {
        isa.load_end(rest, lengths)
    }

    #[inline(always)]
    fn finish(mut self, isa: I, end: Self::End) -> [u8; 16] {
        let sum = add(self.v, number(isa, end));
        let [l0, l1, l2] = multiply(isa, sum, &self.lanes);
        let (l0, l1, l2) = (l0.sum(), l1.sum(), l2.sum());
        let l1 = l1 + (l0 >> 44);
        let l2 = l2 + (l1 >> 44);
        let over = l2 >> 42;
        // eight lanes leave a few bits above 2^130
        let low = U128::from(l0 & LOW_44) + (U128::from(l1 & LOW_44) << 44);
        let high = l2 & LOW_42;
        let low = low + (U128::from(high & LOW_40) << 88);
        let (low, carry) = low.overflowing_add(U128::from(over * 5));
        let top = (high >> 40) + U64::from(carry);
        self.single.resume([low_64(low), high_64(low), top]);
        self.single.tag()
    }
}

impl<I: Multiply52, const MANY: bool> Wide<I, MANY> {
    /// None without `MANY`, as the compiler should know.
    #[inline(always)]
    fn powers(&self) -> Option<&StepPowers<I::Lanes>> {
        if MANY { self.powers.as_ref() } else { None }
    }

    /// The first of the steps, the only one that waits for what came before.
    #[inline(always)]
    fn first(&self, isa: I, blocks: Source<'_>) -> Number<I::Lanes> {
        add(self.v, number(isa, isa.load(blocks.range(0, BYTES))))
    }
}

#[inline(always)]
fn select<L: Lanes, const MASK: u8>(x: Number<L>, y: Number<L>) -> Number<L> {
    [x[0].select::<MASK>(y[0]), x[1].select::<MASK>(y[1]), x[2].select::<MASK>(y[2])]
}

#[inline(always)]
fn spread<L: Lanes>(x: Number<L>) -> Number<L> {
    [x[0].spread(), x[1].spread(), x[2].spread()]
}
