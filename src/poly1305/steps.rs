//! The hash of instruction sets whose integer units are the better multiplier.

use super::integers::U64;
use super::scalar::Scalar;
use super::{BLOCK, Hash, Key, length_block};
use crate::isa::text::Source;

/// A hash that absorbs everything block by block, `STEP` blocks at a step.
pub(crate) struct Steps<const STEP: usize>(Scalar);

impl<I, const STEP: usize> Hash<I> for Steps<STEP> {
    const STEP: usize = STEP;
    type End = End;

    #[inline(always)]
    fn new(_: I, key: Key) -> Self {
        Self(Scalar::new(key))
    }

    #[inline(always)]
    fn absorb(&mut self, source: Source<'_>) {
        self.0.absorb(source);
    }

    #[inline(always)]
    fn begin(&mut self, _: I, _: Source<'_>) -> usize {
        0
    }

    #[inline(always)]
    fn together(&self) -> usize {
        1
    }

    #[inline(always)]
    fn lend(&self) -> Option<([U64; 3], [U64; 2])> {
        self.0.lend()
    }

    #[inline(always)]
    fn give_back(&mut self, h: [U64; 3]) {
        self.0.give_back(h);
    }

    #[inline(always)]
    fn steps(&mut self, _: I, blocks: Source<'_>) {
        for i in 0..STEP {
            self.0.absorb_block(blocks.array(i * BLOCK));
        }
    }

    #[inline(always)]
    fn end(_: I, rest: Source<'_>, lengths: [u64; 2]) -> End {
        const { assert!(STEP < End::MOST) };
        debug_assert!(rest.len() < STEP * BLOCK);
        let mut end = End { blocks: [[0; BLOCK]; End::MOST], count: 0 };
        while end.count * BLOCK < rest.len() {
            end.blocks[end.count] = rest.padded_block(end.count * BLOCK);
            end.count += 1;
        }
        end.blocks[end.count] = length_block(lengths);
        end.count += 1;
        end
    }

    #[inline(always)]
    fn finish(mut self, _: I, end: End) -> [u8; 16] {
        for i in 0..end.count {
            self.0.absorb_block(end.blocks[i]);
        }
        self.0.tag()
    }
}

/// The blocks after the last step, the length block included.
#[derive(Clone, Copy)]
pub(crate) struct End {
    blocks: [[u8; BLOCK]; Self::MOST],
    count: usize,
}

impl End {
    /// Of a step of four blocks, and few enough to be moved in registers.
    const MOST: usize = 5;
}
