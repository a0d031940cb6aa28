//! One block at a time in 64-bit limbs, for targets whose registers have 64 bits.

use super::integers::{U64, U128, high_64, join, low_64};
use super::{BLOCK, Key};
use crate::isa::text::Source;

/// `h` of section 2.5.1 with its key.
pub(crate) struct Scalar {
    /// `h[0] + h[1] 2^64 + h[2] 2^128`; between blocks `h[2]` is at most 6.
    h: [U64; 3],
    r: [U64; 2],
    /// `r[1] * 5 / 4`: what `r[1]` counts for when its product passes 2^130.
    r1_folded: U64,
    s: [U64; 2],
}

impl Scalar {
    #[inline(always)]
    pub(crate) fn new(key: Key) -> Self {
        let Key { r, s } = key;
        Self { h: Default::default(), r, r1_folded: r[1] + (r[1] >> 2), s }
    }

    /// Absorbs the blocks of `source`, the last one filled up with zeros.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, source: Source<'_>) {
        let mut at = 0;
        while at < source.len() {
            self.absorb_block(source.padded_block(at));
            at += BLOCK;
        }
    }

    /// `h = (h + block + 2^128) * r mod 2^130 - 5`, partially reduced.
    ///
    /// With `h[2] <= 6` before, the sum's top limb is at most 8. `r` is clamped: both limbs are below
    /// 2^60 and `r[1]` is a multiple of 4, so `r1_folded < 2^61` is exact, no sum of two products
    /// reaches 2^126, and `h[2] * r`, what is added to it, and `d2 / 4 * 5` fit 64 bits.
    #[inline(always)]
    pub(crate) fn absorb_block(&mut self, block: [u8; 16]) {
        let m = U128::from_le_bytes(block);
        let (sum, carry) = join(self.h[0], self.h[1]).overflowing_add(m);
        let (h0, h1, h2) = (low_64(sum), high_64(sum), self.h[2] + 1 + U64::from(carry));
        debug_assert!(h2 <= 8);
        let [r0, r1] = self.r;
        let d0 = product(h0, r0) + product(h1, self.r1_folded);
        let (d1, e1) = (product(h0, r1), product(h1, r0));
        let d2 = h2 * r0 + high_64(d1) + high_64(e1);

        // 2^130 = 5: what lies above counts five times, d2 / 4 * 5 = (d2 & !3) + d2 / 4. The carries out
        // of `h1`, which come last, are not waited for; they stay in `h2`.
        let (h0, carry0) = low_64(d0).overflowing_add((d2 & !3) + (d2 >> 2));
        let (h1, carry1) = low_64(d1).overflowing_add(low_64(e1));
        let (h1, carry2) = h1.overflowing_add(high_64(d0) + h2 * self.r1_folded);
        let (h1, carry3) = h1.overflowing_add(U64::from(carry0));
        let carries = U64::from(carry1) + U64::from(carry2) + U64::from(carry3);
        self.h = [h0, h1, (d2 & 3) + carries];
        debug_assert!(self.h[2] <= 6);
    }

    /// `h` and `r`, for a hash that goes on in other limbs.
    #[inline(always)]
    pub(crate) fn state(&self) -> ([U64; 3], [U64; 2]) {
        (self.h, self.r)
    }

    /// Goes on from `h`, whose top limb is at most 6.
    #[inline(always)]
    pub(crate) fn resume(&mut self, h: [U64; 3]) {
        debug_assert!(h[2] <= 6);
        self.h = h;
    }

    /// As [`Self::state`], to be given back.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // AVX2 alone takes what is lent
    #[inline(always)]
    pub(crate) fn lend(&self) -> Option<([U64; 3], [U64; 2])> {
        Some(self.state())
    }

    /// As [`Self::resume`].
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    #[inline(always)]
    pub(crate) fn give_back(&mut self, h: [U64; 3]) {
        self.resume(h);
    }

    /// `h mod 2^130 - 5 + s mod 2^128`.
    #[inline(always)]
    pub(crate) fn tag(self) -> [u8; 16] {
        let [h0, h1, h2] = self.h;
        let low = join(h0, h1);
        // at most 6 * 2^128 + 2^128 - 1, less than twice the prime: subtract it once if it fits,
        // which is when adding 5 passes 2^130
        let (reduced, carry) = low.overflowing_add(U128::from(5u8));
        let passes = (h2 + U64::from(carry)) >> 2;
        debug_assert!(passes <= 1);
        let mask = U128::from(passes).wrapping_neg();
        let low = (low & !mask) | (reduced & mask);
        low.wrapping_add(join(self.s[0], self.s[1])).to_le_bytes()
    }
}

#[inline(always)]
fn product(x: U64, y: U64) -> U128 {
    U128::from(x) * U128::from(y)
}
