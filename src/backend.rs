//! The choice of an instruction set, made once per key.

use core::fmt;
use core::str::FromStr;

use crate::isa::Features;
#[cfg(target_arch = "x86_64")]
use crate::isa::avx512::Avx512;
use crate::isa::portable::Portable;
use crate::kernel::Operation;

/// The instruction set that runs a key's ChaCha20 and Poly1305.
///
/// A value exists only for what this CPU has, so whoever holds one can use it. Its name
/// ([`Display`](fmt::Display), [`FromStr`]) says what it needs: `avx512` (F, BW, VL and IFMA, with
/// BMI2), or `portable`, which needs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backend(Arm);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Arm {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
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
            Arm::Portable(isa) => operation.on(isa),
        }
    }

    fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512(_) => "avx512",
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
