//! The choice of an instruction set, made once per key.

use core::fmt;
use core::str::FromStr;

use crate::isa::Features;
#[cfg(target_arch = "x86_64")]
use crate::isa::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use crate::isa::avx512::Avx512;
use crate::isa::portable::Portable;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use crate::isa::ssse3::Ssse3;
use crate::kernel::Operation;

/// The instruction set that runs a key's ChaCha20 and Poly1305.
///
/// A value exists only for what this CPU has, so whoever holds one can use it. Its name
/// ([`Display`](fmt::Display), [`FromStr`]) says what it needs: `avx512` (F, BW, VL, IFMA and VBMI2, with
/// BMI2), `avx2` (with BMI2), `ssse3`, or `portable`, which needs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backend(Arm);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Arm {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    Ssse3(Ssse3),
    Portable(Portable),
}

/// The names of all backends, on every target.
const NAMES: [&str; 5] = ["avx512", "avx2", "ssse3", "neon", "portable"];

impl Backend {
    /// The fastest backend that this CPU has.
    pub fn best() -> Self {
        Self::of(Features::detect()).next().unwrap_or(Self(Arm::Portable(Portable)))
    }

    /// Every backend that this CPU has, best first; `portable` is always the last.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::of(Features::detect())
    }

    fn of(features: Features) -> impl Iterator<Item = Self> {
        [
            #[cfg(target_arch = "x86_64")]
            Avx512::new(features).map(Arm::Avx512),
            #[cfg(target_arch = "x86_64")]
            Avx2::new(features).map(Arm::Avx2),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Ssse3::new(features).map(Arm::Ssse3),
            Portable::new(features).map(Arm::Portable),
        ]
        .into_iter()
        .flatten()
        .map(Self)
    }

    /// Runs `operation` on this backend.
    #[inline(always)]
    pub(crate) fn run<O: Operation>(self, operation: O) -> O::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512(isa) => operation.on(isa),
            #[cfg(target_arch = "x86_64")]
            Arm::Avx2(isa) => operation.on(isa),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Arm::Ssse3(isa) => operation.on(isa),
            Arm::Portable(isa) => operation.on(isa),
        }
    }

    fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Arm::Avx2(_) => "avx2",
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Arm::Ssse3(_) => "ssse3",
            Arm::Portable(_) => "portable",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backend({})", self.name())
    }
}

impl FromStr for Backend {
    type Err = BackendError;

    fn from_str(name: &str) -> Result<Self, BackendError> {
        if !NAMES.contains(&name) {
            return Err(BackendError::Unknown);
        }
        Self::available().find(|backend| backend.name() == name).ok_or(BackendError::Unavailable)
    }
}

/// Why a name gives no [`Backend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendError {
    /// No backend has this name.
    Unknown,
    /// A backend has this name, but this CPU or this build lacks it.
    Unavailable,
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no backend has this name",
            Self::Unavailable => "this CPU or this build lacks the backend",
        })
    }
}

impl core::error::Error for BackendError {}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::aead::{ChaCha20Poly1305, Tag};

    /// K27: a detector that finds any subset of what this CPU has. The choice can only go down, and what
    /// is chosen works.
    #[test]
    fn fewer_features_give_a_lower_backend() {
        let all: Vec<Backend> = Backend::available().collect();
        for mask in 0..1 << Features::COUNT {
            let some: Vec<Backend> = Backend::of(Features::detect().masked(mask)).collect();
            let mut rest = all.iter();
            assert!(some.iter().all(|backend| rest.any(|other| other == backend)));
            assert_eq!(some.last().unwrap().name(), "portable");
            for backend in some {
                seals_and_opens(backend);
            }
        }
        let none: Vec<Backend> = Backend::of(Features::detect().masked(0)).collect();
        assert_eq!(none, [Backend(Arm::Portable(Portable))]);
    }

    /// The example of RFC 8439 section 2.8.2.
    fn seals_and_opens(backend: Backend) {
        let key: [u8; 32] = core::array::from_fn(|i| 0x80 + i as u8);
        let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
        let aad = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let plaintext = b"Ladies and Gentlemen of the class of '99: If I could offer you \
            only one tip for the future, sunscreen would be it.";
        let tag = 0x1ae1_0b59_4f09_e26a_7e90_2ecb_d060_0691_u128.to_be_bytes();

        let key = ChaCha20Poly1305::with_backend(&key, backend);
        let mut text = *plaintext;
        assert_eq!(key.seal_in_place(&nonce, &aad, &mut text).unwrap(), Tag::from(tag));
        assert_eq!(text[..8], [0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb]);
        key.open_in_place(&nonce, &aad, &mut text, &tag.into()).unwrap();
        assert_eq!(text, *plaintext);
    }
}
