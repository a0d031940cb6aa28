//! The SIMD backends and the choice among them.

use core::fmt;
use core::str::FromStr;

/// The implementation that runs a key's ChaCha20 and Poly1305.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backend(Arm);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Arm {
    Portable,
}

impl Backend {
    /// The fastest backend that this CPU has.
    pub fn best() -> Self {
        Self(Arm::Portable)
    }

    /// Every backend that this CPU has, best first; `portable` is always the last.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self(Arm::Portable)].into_iter()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("portable")
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Backend {
    type Err = BackendError;

    fn from_str(name: &str) -> Result<Self, BackendError> {
        match name {
            "portable" => Ok(Self(Arm::Portable)),
            "avx512" | "avx2" | "ssse3" | "neon" => Err(BackendError::Unavailable),
            _ => Err(BackendError::Unknown),
        }
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
