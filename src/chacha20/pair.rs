//! Two tiles at once, written as one tile of words that are two vectors.
//!
//! The quarter rounds of one tile wait for one another; with registers for two tiles there are twice as
//! many that do not.

use super::{ChaCha20, row_blocks};
use crate::isa::text::{Stream, Text, Window};
use crate::isa::{Isa, Kernel, Word};

/// An instruction set whose tiles are two tiles of `I`.
#[derive(Clone, Copy)]
pub(crate) struct Pair<I>(pub(crate) I);

/// Two vectors.
#[derive(Clone, Copy)]
pub(crate) struct Two<W>([W; 2]);

impl<I: ChaCha20> Isa for Pair<I> {
    type Word = Two<I::Word>;

    #[inline(always)]
    fn enter<K: Kernel<Self>>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn splat(self, x: u32) -> Self::Word {
        Two([self.0.splat(x); 2])
    }

    #[inline(always)]
    fn splat_row(self, row: [u32; 4]) -> Self::Word {
        Two([self.0.splat_row(row); 2])
    }

    #[inline(always)]
    fn lane_numbers(self) -> Self::Word {
        let first = self.0.lane_numbers();
        Two([first, first.add(self.0.splat(I::Word::LANES as u32))])
    }

    #[inline(always)]
    fn row_numbers(self) -> Self::Word {
        let first = self.0.row_numbers();
        Two([first, first.add(self.0.splat_row([row_blocks::<I>() as u32, 0, 0, 0]))])
    }

    #[inline(always)]
    fn xor<const KEEP: bool>(
        self,
        stream: &mut Stream<'_>,
        at: usize,
        text: &mut Text<'_>,
        max: usize,
    ) {
        self.0.xor::<KEEP>(stream, at, text, max);
    }
}

impl<I: ChaCha20> ChaCha20 for Pair<I> {
    const ROW_SETS: &'static [usize] = I::ROW_SETS;
    const HEAD_SETS: &'static [usize] = I::HEAD_SETS;
    const HEAD_START: bool = false;
    const FREE_SPLATS: bool = I::FREE_SPLATS;
    const PAIRS: bool = false;
    const TAIL_SETS: &'static [usize] = I::TAIL_SETS;
}

impl<W: Word> Word for Two<W> {
    const LANES: usize = 2 * W::LANES;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self([self.0[0].add(other.0[0]), self.0[1].add(other.0[1])])
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self([self.0[0].xor(other.0[0]), self.0[1].xor(other.0[1])])
    }

    #[inline(always)]
    fn rotate_left<const N: i32>(self) -> Self {
        Self([self.0[0].rotate_left::<N>(), self.0[1].rotate_left::<N>()])
    }

    #[inline(always)]
    fn turn<const N: i32>(self) -> Self {
        Self([self.0[0].turn::<N>(), self.0[1].turn::<N>()])
    }

    #[inline(always)]
    fn transpose(words: [Self; 16]) -> [Self; 16] {
        let mut first = [words[0].0[0]; 16];
        let mut second = first;
        for i in 0..16 {
            first[i] = words[i].0[0];
            second[i] = words[i].0[1];
        }
        let first = W::transpose(first);
        let second = W::transpose(second);
        let mut blocks = words;
        for i in 0..8 {
            blocks[i] = Self([first[2 * i], first[2 * i + 1]]);
            blocks[8 + i] = Self([second[2 * i], second[2 * i + 1]]);
        }
        blocks
    }

    #[inline(always)]
    fn transpose_groups([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let [a0, b0, c0, d0] = W::transpose_groups([a.0[0], b.0[0], c.0[0], d.0[0]]);
        let [a1, b1, c1, d1] = W::transpose_groups([a.0[1], b.0[1], c.0[1], d.0[1]]);
        [Self([a0, a1]), Self([b0, b1]), Self([c0, c1]), Self([d0, d1])]
    }

    #[inline(always)]
    fn unzip([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let [a0, b0, c0, d0] = W::unzip([a.0[0], b.0[0], c.0[0], d.0[0]]);
        let [a1, b1, c1, d1] = W::unzip([a.0[1], b.0[1], c.0[1], d.0[1]]);
        [Self([a0, b0]), Self([c0, d0]), Self([a1, b1]), Self([c1, d1])]
    }

    #[inline(always)]
    fn keep(self, stream: &mut Stream<'_>, at: usize) {
        self.0[0].keep(stream, at);
        self.0[1].keep(stream, at + W::BYTES);
    }

    #[inline(always)]
    fn first_row(self) -> [u64; 2] {
        self.0[0].first_row()
    }

    #[inline(always)]
    fn xor_into(self, window: &Window<'_>, at: usize) -> Self {
        Self([self.0[0].xor_into(window, at), self.0[1].xor_into(window, at + W::BYTES)])
    }
}
