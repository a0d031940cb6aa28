//! What a hash is asked to do, and the key that it is given.

use super::integers::{U64, join};
use crate::isa::text::Source;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// A message being hashed: singly absorbed blocks, then whole steps, then the end.
///
/// How many blocks go singly is the hash's choice, so that the rest of the message with its length
/// block makes whole steps.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // AVX2 alone takes what is lent
pub(crate) trait Hash<I>: Sized {
    /// Blocks that one step absorbs.
    const STEP: usize;

    /// The blocks after the last step.
    type End: Copy;

    fn new(isa: I, key: Key) -> Self;

    /// Absorbs the blocks of `source`, the last one filled up with zeros, one by one; not after a step.
    fn absorb(&mut self, source: Source<'_>);

    /// Absorbs the first blocks of `text` singly and tells how many bytes that were.
    fn begin(&mut self, isa: I, text: Source<'_>) -> usize;

    /// The most steps that [`Self::steps`] takes at once, after [`Self::begin`].
    fn together(&self) -> usize;

    /// `h` and `r` to be worked on elsewhere, if steps absorb block by block in 64-bit limbs.
    fn lend(&self) -> Option<([U64; 3], [U64; 2])>;

    /// Takes back `h`.
    fn give_back(&mut self, h: [U64; 3]);

    /// Absorbs the blocks of one step or more, at most [`Self::together`].
    fn steps(&mut self, isa: I, blocks: Source<'_>);

    /// What remains after the steps, to be kept before it is overwritten.
    fn end(isa: I, rest: Source<'_>, lengths: [U64; 2]) -> Self::End;

    fn finish(self, isa: I, end: Self::End) -> [u8; 16];
}

/// The one-time key: `r` as it comes, and `s`.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) r: [U64; 2],
    pub(crate) s: [U64; 2],
}

impl Key {
    /// From the first two rows of the block whose counter is 0 (section 2.6).
    #[inline(always)]
    pub(crate) fn new([r, s]: [[U64; 2]; 2]) -> Self {
        // section 2.5: the clamp
        Self { r: [r[0] & 0x0fff_fffc_0fff_ffff, r[1] & 0x0fff_fffc_0fff_fffc], s }
    }
}

/// The last block: both lengths in bytes (section 2.8).
#[inline(always)]
pub(crate) fn length_block(lengths: [U64; 2]) -> [u8; 16] {
    join(lengths[0], lengths[1]).to_le_bytes()
}
