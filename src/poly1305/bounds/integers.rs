//! Intervals that compute like the integers they stand for: every result holds all that an operation
//! can give on any values of its operands.
//!
//! A sum or product that can pass its word panics. Where the hash means to lose bits it says so with
//! a function that does (`overflowing_add`, `low_64`, ...); of a shift that loses bits nothing is known
//! any more but the word's size, so that what relies on such a value panics a little later. A
//! comparison holds when it holds for all values: the debug assertions of the hash are proven too.

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, BitAnd, BitAndAssign, BitOr, Mul, Not, Shl, Shr};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub(crate) type U32 = Interval<32>;
pub(crate) type U64 = Interval<64>;
pub(crate) type U128 = Interval<128>;

pub(crate) fn low_32(x: U64) -> U32 {
    x.modulo_word()
}

pub(crate) fn low_64(x: U128) -> U64 {
    x.modulo_word()
}

pub(crate) fn high_64(x: U128) -> U64 {
    (x >> 64).modulo_word()
}

pub(crate) fn join(low: U64, high: U64) -> U128 {
    U128::from(low) | U128::from(high) << 64
}

/// The unsigned integers of `BITS` bits from `low` to `high`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Interval<const BITS: u32> {
    low: u128,
    high: u128,
}

impl<const BITS: u32> Interval<BITS> {
    const MAX: u128 = u128::MAX >> (128 - BITS);

    /// Any value of the word.
    pub(super) const ANY: Self = Self { low: 0, high: Self::MAX };

    /// What is in the one or in the other.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub(super) fn high(self) -> u128 {
        self.high
    }

    /// From zero to `high`.
    pub(super) fn up_to(high: u128) -> Self {
        assert!(high <= Self::MAX);
        Self { low: 0, high }
    }

    fn exactly(x: u128) -> Self {
        Self { low: x, high: x }
    }

    /// A result that must fit into the word.
    fn checked(low: u128, high: Option<u128>) -> Self {
        match high {
            Some(high) if high <= Self::MAX => {
                peak(Self::NAME, high);
                Self { low, high }
            }
            _ => panic!("passes a word of {BITS} bits"),
        }
    }

    const NAME: &'static str = match BITS {
        32 => "32-bit",
        64 => "64-bit",
        _ => "128-bit",
    };

    fn modulo_word<const TO: u32>(self) -> Interval<TO> {
        let word = Interval::<TO>::MAX;
        if self.low & !word == self.high & !word {
            return Interval { low: self.low & word, high: self.high & word };
        }
        Interval::ANY
    }

    pub(crate) fn overflowing_add(self, other: Self) -> (Self, Interval<1>) {
        let sum = |x: u128, y: u128| {
            let (sum, carry) = x.overflowing_add(y);
            (sum & Self::MAX, carry || sum > Self::MAX)
        };
        let (low, low_carries) = sum(self.low, other.low);
        let (high, high_carries) = sum(self.high, other.high);
        let carry = Interval { low: low_carries.into(), high: high_carries.into() };
        let sum = if low_carries == high_carries { Self { low, high } } else { Self::ANY };
        (sum, carry)
    }

    pub(crate) fn wrapping_add(self, other: Self) -> Self {
        self.overflowing_add(other).0
    }

    pub(crate) fn wrapping_neg(self) -> Self {
        match self {
            Self { high: 0, .. } => self,
            Self { low: 0, .. } => Self::ANY,
            Self { low, high } => Self { low: Self::MAX - high + 1, high: Self::MAX - low + 1 },
        }
    }

    /// Whatever the bytes, any value: the proof is for all messages.
    pub(crate) fn from_le_bytes<const N: usize>(_: [u8; N]) -> Self {
        assert_eq!(8 * N, BITS as usize);
        Self::ANY
    }

    /// Bytes that nobody looks at.
    pub(crate) fn to_le_bytes(self) -> [u8; 16] {
        [0; 16]
    }
}

impl<const BITS: u32> Add for Interval<BITS> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::checked(self.low.saturating_add(other.low), self.high.checked_add(other.high))
    }
}

impl<const BITS: u32> Mul for Interval<BITS> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::checked(self.low.saturating_mul(other.low), self.high.checked_mul(other.high))
    }
}

impl<const BITS: u32> BitAnd for Interval<BITS> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        let mask = other.high;
        if other.low == mask && mask & mask.wrapping_add(1) == 0 {
            // the low bits
            let known = self.low & !mask == self.high & !mask;
            return if known {
                Self { low: self.low & mask, high: self.high & mask }
            } else {
                Self::up_to(mask)
            };
        }
        Self::up_to(self.high.min(other.high))
    }
}

impl<const BITS: u32> BitOr for Interval<BITS> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        let highest = self.high | other.high;
        let high = u128::MAX.checked_shr(highest.leading_zeros()).unwrap_or(0);
        Self { low: self.low.max(other.low), high }
    }
}

impl<const BITS: u32> Not for Interval<BITS> {
    type Output = Self;

    fn not(self) -> Self {
        Self { low: Self::MAX - self.high, high: Self::MAX - self.low }
    }
}

impl<const BITS: u32> Shl<u32> for Interval<BITS> {
    type Output = Self;

    fn shl(self, n: u32) -> Self {
        if self.high > Self::MAX >> n {
            return Self::ANY;
        }
        Self { low: self.low << n, high: self.high << n }
    }
}

impl<const BITS: u32> Shr<u32> for Interval<BITS> {
    type Output = Self;

    fn shr(self, n: u32) -> Self {
        Self { low: self.low >> n, high: self.high >> n }
    }
}

impl<const BITS: u32> fmt::Debug for Interval<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..={:#x}", self.low, self.high)
    }
}

/// From a shorter word.
macro_rules! widen {
    ($($from:literal => $to:literal)+) => {
        $(impl From<Interval<$from>> for Interval<$to> {
            fn from(x: Interval<$from>) -> Self {
                Self { low: x.low, high: x.high }
            }
        })+
    };
}
widen!(1 => 64 32 => 64 32 => 128 64 => 128);

impl<const BITS: u32> From<u8> for Interval<BITS> {
    fn from(x: u8) -> Self {
        Self::exactly(x.into())
    }
}

/// With constants.
macro_rules! constants {
    ($($word:ty, $constant:ty;)+) => {
        $(impl From<$constant> for $word {
            fn from(x: $constant) -> Self {
                Self::exactly(x.into())
            }
        }

        impl Add<$constant> for $word {
            type Output = Self;

            fn add(self, x: $constant) -> Self {
                self + Self::from(x)
            }
        }

        impl Mul<$constant> for $word {
            type Output = Self;

            fn mul(self, x: $constant) -> Self {
                self * Self::from(x)
            }
        }

        impl BitAnd<$constant> for $word {
            type Output = Self;

            fn bitand(self, x: $constant) -> Self {
                self & Self::from(x)
            }
        }

        impl PartialEq<$constant> for $word {
            fn eq(&self, x: &$constant) -> bool {
                *self == Self::from(*x)
            }
        }

        impl PartialOrd<$constant> for $word {
            fn partial_cmp(&self, x: &$constant) -> Option<Ordering> {
                let x = u128::from(*x);
                if self.high < x {
                    return Some(Ordering::Less);
                }
                if self.low > x {
                    return Some(Ordering::Greater);
                }
                (*self == Self::exactly(x)).then_some(Ordering::Equal)
            }

            fn le(&self, x: &$constant) -> bool {
                self.high <= u128::from(*x)
            }
        })+
    };
}
constants! {
    U32, u32;
    U64, u64;
    U128, u128;
}

impl<const BITS: u32, T> AddAssign<T> for Interval<BITS>
where
    Self: Add<T, Output = Self>,
{
    fn add_assign(&mut self, x: T) {
        *self = *self + x;
    }
}

impl<const BITS: u32, T> BitAndAssign<T> for Interval<BITS>
where
    Self: BitAnd<T, Output = Self>,
{
    fn bitand_assign(&mut self, x: T) {
        *self = *self & x;
    }
}

std::thread_local! {
    static PEAKS: RefCell<BTreeMap<&'static str, u128>> = const { RefCell::new(BTreeMap::new()) };
}

/// Notes that `what` can reach `value`.
pub(super) fn peak(what: &'static str, value: u128) {
    PEAKS.with_borrow_mut(|peaks| {
        let highest = peaks.entry(what).or_default();
        *highest = value.max(*highest);
    });
}

/// The highest value that `what` can reach in this thread's computations so far.
pub(super) fn highest(what: &str) -> u128 {
    PEAKS.with_borrow(|peaks| peaks[what])
}
