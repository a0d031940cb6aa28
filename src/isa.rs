//! What an instruction set offers to the algorithms: a vocabulary, no cryptography.
//!
//! An [`Isa`] is a token. It exists only where the CPU has been found to have every instruction that
//! the token's operations use, so whoever holds one may call them. Vectors come out of the token's
//! constructors alone; holding a vector is then as good a proof, and its operations need no token.
//!
//! A [`Kernel`] is a whole operation (seal one message). [`Isa::enter`] runs it inside a function that
//! is compiled for the instruction set; everything below is inlined into that function, or the
//! vectors would pass through memory at each call.
//!
//! One file per instruction set implements this, and is the only place that may override an operation
//! of [`chacha20`](crate::chacha20) or [`poly1305`](crate::poly1305) for its own good. `unsafe` lives
//! here and in those files, nowhere else.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod clear;
pub(crate) mod portable;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(crate) mod ssse3;
pub(crate) mod text;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod x86;

use self::text::{Stream, Text, Window};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(crate) use self::x86::Features;

/// On this target there is nothing to detect.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(crate) struct Features;

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
impl Features {
    pub(crate) fn detect() -> Self {
        Self
    }
}

/// An operation to run on one instruction set.
pub(crate) trait Kernel<I> {
    type Output;

    /// To be inlined into [`Isa::enter`].
    fn run(self, isa: I) -> Self::Output;
}

/// The proof that this CPU has an instruction set.
pub(crate) trait Isa: Copy {
    /// Vectors of 32-bit words.
    type Word: Word;

    /// Runs `kernel` in a function compiled for this instruction set, then zeroes the stack and the
    /// registers that it has left: keystream, keys, and whatever the compiler spilled.
    fn enter<K: Kernel<Self>>(self, kernel: K) -> K::Output;

    /// `x` in every lane.
    fn splat(self, x: u32) -> Self::Word;

    /// `row` in every group of four lanes.
    fn splat_row(self, row: [u32; 4]) -> Self::Word;

    /// The number of its lane in every lane.
    fn lane_numbers(self) -> Self::Word;

    /// The number of its group of four in the first lane of every group, zero in the others.
    fn row_numbers(self) -> Self::Word;

    /// XORs the keystream from byte `at` of `stream` into the next bytes of `text`, at most `max`.
    ///
    /// With `KEEP` the result also takes the place of the keystream, filled up with zeros to a multiple
    /// of sixteen bytes.
    fn xor<const KEEP: bool>(
        self,
        stream: &mut Stream<'_>,
        at: usize,
        text: &mut Text<'_>,
        max: usize,
    );
}

/// A vector of 32-bit words.
pub(crate) trait Word: Copy {
    const LANES: usize;
    const BYTES: usize = 4 * Self::LANES;

    /// Lane-wise sum modulo 2^32.
    fn add(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn rotate_left<const N: i32>(self) -> Self;

    /// In each group of four lanes, lane `i` takes the value of lane `(i + N) % 4`.
    fn turn<const N: i32>(self) -> Self;

    /// In each group of four lanes the four vectors are a square, whose columns become the vectors.
    fn transpose_groups(rows: [Self; 4]) -> [Self; 4];

    /// Four vectors, each with one row of `LANES / 4` blocks, become the blocks in memory order.
    fn unzip(rows: [Self; 4]) -> [Self; 4];

    /// Sixteen vectors, each with one word of `LANES` blocks, become the blocks in memory order.
    #[inline(always)]
    fn transpose(words: [Self; 16]) -> [Self; 16] {
        // each of `rows[4 * k..4 * k + 4]` is a row of blocks k, k + 4, ... (not begun as a copy of `words`,
        // which might be made by memcpy, in registers that nobody clears)
        let mut rows = [words[0]; 16];
        for i in 0..4 {
            let [a, b, c, d] = [words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]];
            [rows[i], rows[4 + i], rows[8 + i], rows[12 + i]] =
                Self::transpose_groups([a, b, c, d]);
        }
        let of_block = 64 / Self::BYTES;
        let mut blocks = [words[0]; 16];
        for k in 0..4 {
            let [a, b, c, d] = [rows[4 * k], rows[4 * k + 1], rows[4 * k + 2], rows[4 * k + 3]];
            let vectors = Self::unzip([a, b, c, d]);
            for j in 0..4 {
                let block = k + 4 * (j / of_block);
                blocks[block * of_block + j % of_block] = vectors[j];
            }
        }
        blocks
    }

    /// Writes the vector to byte `at` of `stream`.
    fn keep(self, stream: &mut Stream<'_>, at: usize);

    /// The first four lanes.
    fn first_row(self) -> [u64; 2];

    /// XORs the vector into the bytes of `window` from `at` on, and tells what was written.
    fn xor_into(self, window: &Window<'_>, at: usize) -> Self;
}
