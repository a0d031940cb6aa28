//! The integers that the hash computes with.
//!
//! Its files name them by these names, because the proof of its bounds compiles the files once more
//! with intervals in their place; what a cast would do is a function for the same reason.

#[cfg(any(test, target_pointer_width = "32", target_pointer_width = "16"))]
pub(crate) type U32 = u32;
pub(crate) type U64 = u64;
pub(crate) type U128 = u128;

/// `x mod 2^32`.
#[cfg(any(test, target_pointer_width = "32", target_pointer_width = "16"))]
#[inline(always)]
pub(crate) fn low_32(x: U64) -> U32 {
    x as u32
}

/// `x mod 2^64`.
#[inline(always)]
pub(crate) fn low_64(x: U128) -> U64 {
    x as u64
}

/// `x / 2^64`.
#[inline(always)]
pub(crate) fn high_64(x: U128) -> U64 {
    (x >> 64) as u64
}

/// `low + high 2^64`.
#[inline(always)]
pub(crate) fn join(low: U64, high: U64) -> U128 {
    U128::from(low) | U128::from(high) << 64
}
