//! One block at a time in limbs of 26 bits, for targets whose registers have 32 bits.

use super::integers::{U32, U64, U128, high_64, join, low_32, low_64};
use super::{BLOCK, Key};
use crate::isa::text::Source;

/// `h` of RFC 8439 section 2.5.1 with its key.
pub(crate) struct Scalar {
    /// Limbs of 26 bits; between blocks `h[1]` may be a little longer.
    pub(super) h: [U32; 5],
    r: [U32; 5],
    s: [U64; 2],
}

const LOW_26: u32 = (1 << 26) - 1;

impl Scalar {
    #[inline(always)]
    pub(crate) fn new(key: Key) -> Self {
        Self { h: Default::default(), r: limbs(key.r[0], key.r[1]), s: key.s }
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
    /// A limb of the sum is below 2^27 + 2^10, one of `r` below 2^26, five times it below 2^29: the sum
    /// of five products stays below 2^59.
    #[inline(always)]
    pub(crate) fn absorb_block(&mut self, block: [u8; 16]) {
        let m = U128::from_le_bytes(block);
        let mut m = limbs(low_64(m), high_64(m));
        m[4] += 1 << 24;
        let mut h = self.h;
        for i in 0..5 {
            h[i] += m[i];
            debug_assert!(h[i] < (1 << 27) + (1 << 10));
        }
        let mut sum: [U64; 5] = Default::default();
        for i in 0..5 {
            for j in 0..5 {
                // what passes 2^130 counts five times
                let r = if i + j < 5 { self.r[j] } else { self.r[j] * 5 };
                sum[(i + j) % 5] += U64::from(h[i]) * U64::from(r);
            }
        }
        let mut carry = U64::default();
        for i in 0..5 {
            sum[i] += carry;
            debug_assert!(sum[i] < 1 << 59);
            self.h[i] = low_32(sum[i]) & LOW_26;
            carry = sum[i] >> 26;
        }
        let low = U64::from(self.h[0]) + carry * 5;
        self.h[0] = low_32(low) & LOW_26;
        self.h[1] += low_32(low >> 26);
    }

    /// Not in 64-bit limbs, so not to be lent.
    #[cfg(any(target_pointer_width = "32", target_pointer_width = "16"))]
    #[allow(dead_code)] // there is no AVX2 on 32 bit
    #[inline(always)]
    pub(crate) fn lend(&self) -> Option<([U64; 3], [U64; 2])> {
        None
    }

    /// Never lent.
    #[cfg(any(target_pointer_width = "32", target_pointer_width = "16"))]
    #[allow(dead_code)] // there is no AVX2 on 32 bit
    #[inline(always)]
    pub(crate) fn give_back(&mut self, _: [U64; 3]) {}

    /// `h mod 2^130 - 5 + s mod 2^128`.
    #[inline(always)]
    pub(crate) fn tag(self) -> [u8; 16] {
        let mut h = self.h;
        let mut carry = U32::default();
        for i in 1..5 {
            h[i] += carry;
            carry = h[i] >> 26;
            h[i] &= LOW_26;
        }
        h[0] += carry * 5;
        h[1] += h[0] >> 26;
        h[0] &= LOW_26;
        // below 2^130 + 2^26 now; adding 5 passes 2^130 exactly if the prime can be subtracted
        let mut reduced: [U32; 5] = Default::default();
        let mut carry = U32::from(5u8);
        for i in 0..5 {
            reduced[i] = h[i] + carry;
            carry = reduced[i] >> 26;
            reduced[i] &= LOW_26;
        }
        debug_assert!(carry <= 1);
        let mask = carry.wrapping_neg();
        let mut low = U128::default();
        for i in (0..5).rev() {
            low = (low << 26).wrapping_add(U128::from((h[i] & !mask) | (reduced[i] & mask)));
        }
        low.wrapping_add(join(self.s[0], self.s[1])).to_le_bytes()
    }
}

/// `low + high 2^64` in limbs of 26 bits.
#[inline(always)]
fn limbs(low: U64, high: U64) -> [U32; 5] {
    [
        low_32(low) & LOW_26,
        low_32(low >> 26) & LOW_26,
        low_32(low >> 52 | high << 12) & LOW_26,
        low_32(high >> 14) & LOW_26,
        low_32(high >> 40),
    ]
}
