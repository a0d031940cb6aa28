//! Poly1305 (RFC 8439 section 2.5) as the AEAD of section 2.8 uses it.
#![doc = include_str!("../docs/poly1305.md")]

#[cfg(test)]
mod bounds;
mod hash;
mod integers;
#[cfg(any(target_pointer_width = "32", target_pointer_width = "16"))]
#[path = "poly1305/scalar32.rs"]
pub(crate) mod scalar;
#[cfg(target_pointer_width = "64")]
pub(crate) mod scalar;
pub(crate) mod steps;
#[cfg(test)]
mod tests;
#[cfg(any(target_arch = "x86_64", all(test, target_pointer_width = "64")))]
pub(crate) mod wide;

pub(crate) use self::hash::{BLOCK, Hash, Key, length_block};
use crate::isa::Isa;

/// An instruction set's way to hash a long message.
pub(crate) trait Poly1305: Isa {
    /// Bytes of text up to which it is best to absorb all blocks singly.
    const SINGLY: usize;

    /// For messages of one batch of rows.
    type Short: Hash<Self>;

    /// For messages of tiles.
    type Long: Hash<Self>;
}
