//! Any CPU: arrays of words, which the compiler turns into what the target's baseline has.

use super::text::{Stream, Window};
use super::{Features, Isa, Kernel, Word};
use crate::chacha20::ChaCha20;
use crate::poly1305::Poly1305;
use crate::poly1305::steps::Steps;

/// Needs no proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Portable;

impl Portable {
    pub(crate) fn new(_: Features) -> Option<Self> {
        Some(Self)
    }
}

impl Isa for Portable {
    type Word = Quad;

    #[inline(always)]
    fn enter<K: Kernel<Self>>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn splat(self, x: u32) -> Quad {
        Quad([x; 4])
    }

    #[inline(always)]
    fn splat_row(self, row: [u32; 4]) -> Quad {
        Quad(row)
    }

    #[inline(always)]
    fn lane_numbers(self) -> Quad {
        Quad([0, 1, 2, 3])
    }

    #[inline(always)]
    fn row_numbers(self) -> Quad {
        Quad([0; 4])
    }

    #[inline(always)]
    fn xor(self, stream: &Stream<'_>, at: usize, window: &Window<'_>) {
        let mut done = 0;
        while window.len() - done >= 16 {
            window.xor::<16>(done, stream.array(at + done));
            done += 16;
        }
        xor_below_16(stream, at, window, done);
    }
}

/// XORs the last bytes of `window`, fewer than sixteen, from byte `done` on.
#[inline(always)]
pub(super) fn xor_below_16(stream: &Stream<'_>, at: usize, window: &Window<'_>, mut done: usize) {
    let rest = window.len() - done;
    if rest & 8 != 0 {
        window.xor::<8>(done, stream.array(at + done));
        done += 8;
    }
    if rest & 4 != 0 {
        window.xor::<4>(done, stream.array(at + done));
        done += 4;
    }
    if rest & 2 != 0 {
        window.xor::<2>(done, stream.array(at + done));
        done += 2;
    }
    if rest & 1 != 0 {
        window.xor::<1>(done, stream.array(at + done));
    }
}

/// Four words.
#[derive(Clone, Copy)]
pub(crate) struct Quad([u32; 4]);

impl Quad {
    #[inline(always)]
    fn bytes(self) -> [u8; 16] {
        let [a, b, c, d] = self.0.map(u128::from);
        (a | b << 32 | c << 64 | d << 96).to_le_bytes()
    }
}

impl Word for Quad {
    const LANES: usize = 4;

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for i in 0..4 {
            self.0[i] = self.0[i].wrapping_add(other.0[i]);
        }
        self
    }

    #[inline(always)]
    fn xor(mut self, other: Self) -> Self {
        for i in 0..4 {
            self.0[i] ^= other.0[i];
        }
        self
    }

    #[inline(always)]
    fn rotate_left<const N: i32>(mut self) -> Self {
        for i in 0..4 {
            self.0[i] = self.0[i].rotate_left(N.unsigned_abs());
        }
        self
    }

    #[inline(always)]
    fn turn<const N: i32>(self) -> Self {
        let [a, b, c, d] = self.0;
        match N {
            1 => Self([b, c, d, a]),
            2 => Self([c, d, a, b]),
            _ => Self([d, a, b, c]),
        }
    }

    #[inline(always)]
    fn transpose(words: [Self; 16]) -> [Self; 16] {
        let mut blocks = words;
        for lane in 0..4 {
            for i in 0..4 {
                blocks[4 * lane + i] = Self([
                    words[4 * i].0[lane],
                    words[4 * i + 1].0[lane],
                    words[4 * i + 2].0[lane],
                    words[4 * i + 3].0[lane],
                ]);
            }
        }
        blocks
    }

    #[inline(always)]
    fn unzip(rows: [Self; 4]) -> [Self; 4] {
        rows
    }

    #[inline(always)]
    fn keep(self, stream: &mut Stream<'_>, at: usize) {
        stream.write(at, self.bytes());
    }

    #[inline(always)]
    fn xor_into(self, window: &Window<'_>, at: usize) {
        window.xor(at, self.bytes());
    }
}

impl ChaCha20 for Portable {}

impl Poly1305 for Portable {
    type Hash = Steps<2>;
}
