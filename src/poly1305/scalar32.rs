//! One block at a time in limbs of 26 bits, for targets whose registers have 32 bits.

use super::{BLOCK, Key};
use crate::isa::text::Source;

/// `h` of RFC 8439 section 2.5.1 with its key.
pub(crate) struct Scalar {
    /// Limbs of 26 bits; between blocks `h[1]` may be a little longer.
    h: [u32; 5],
    r: [u32; 5],
    s: [u64; 2],
}

const LOW_26: u32 = (1 << 26) - 1;

impl Scalar {
    #[inline(always)]
    pub(crate) fn new(key: Key) -> Self {
        Self { h: [0; 5], r: limbs(key.r[0], key.r[1], 0), s: key.s }
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
        let m = u128::from_le_bytes(block);
        let m = limbs(m as u64, (m >> 64) as u64, 1);
        let mut h = self.h;
        for i in 0..5 {
            h[i] += m[i];
            debug_assert!(h[i] < (1 << 27) + (1 << 10));
        }
        let mut sum = [0u64; 5];
        for i in 0..5 {
            for j in 0..5 {
                // what passes 2^130 counts five times
                let r = if i + j < 5 { self.r[j] } else { self.r[j] * 5 };
                sum[(i + j) % 5] += u64::from(h[i]) * u64::from(r);
            }
        }
        let mut carry = 0;
        for i in 0..5 {
            sum[i] += carry;
            self.h[i] = sum[i] as u32 & LOW_26;
            carry = sum[i] >> 26;
        }
        let low = u64::from(self.h[0]) + carry * 5;
        self.h[0] = low as u32 & LOW_26;
        self.h[1] += (low >> 26) as u32;
    }

    /// `h mod 2^130 - 5 + s mod 2^128`.
    #[inline(always)]
    pub(crate) fn tag(self) -> [u8; 16] {
        let mut h = self.h;
        let mut carry = 0;
        for i in 1..5 {
            h[i] += carry;
            carry = h[i] >> 26;
            h[i] &= LOW_26;
        }
        h[0] += carry * 5;
        h[1] += h[0] >> 26;
        h[0] &= LOW_26;
        // below 2^130 + 2^26 now; adding 5 passes 2^130 exactly if the prime can be subtracted
        let mut reduced = [0; 5];
        let mut carry = 5;
        for i in 0..5 {
            reduced[i] = h[i] + carry;
            carry = reduced[i] >> 26;
            reduced[i] &= LOW_26;
        }
        let mask = carry.wrapping_neg();
        let mut low = 0u128;
        for i in (0..5).rev() {
            low = (low << 26).wrapping_add(u128::from((h[i] & !mask) | (reduced[i] & mask)));
        }
        let s = u128::from(self.s[0]) | u128::from(self.s[1]) << 64;
        low.wrapping_add(s).to_le_bytes()
    }
}

/// `low + high 2^64 + top 2^128` in limbs of 26 bits.
#[inline(always)]
fn limbs(low: u64, high: u64, top: u32) -> [u32; 5] {
    [
        low as u32 & LOW_26,
        (low >> 26) as u32 & LOW_26,
        (low >> 52 | high << 12) as u32 & LOW_26,
        (high >> 14) as u32 & LOW_26,
        (high >> 40) as u32 | top << 24,
    ]
}
