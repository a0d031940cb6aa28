//! Any CPU: arrays of words, which the compiler turns into what the target's baseline has.

use super::clear::{clear, stack_pointer};
use super::text::{Stream, Text, Window};
use super::{Features, Isa, Kernel, Word};
use crate::chacha20::{ChaCha20, Stitch, scalar_double_round};
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
        #[inline(never)]
        fn run<K: Kernel<Portable>>(isa: Portable, kernel: K, end: &mut usize) -> K::Output {
            *end = stack_pointer();
            kernel.run(isa)
        }
        let mut end = 0;
        let output = run(self, kernel, &mut end);
        // SAFETY: the kernel was called here, and its frame ended there.
        unsafe { clear(end) };
        output
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
    fn xor<const KEEP: bool>(
        self,
        stream: &mut Stream<'_>,
        at: usize,
        text: &mut Text<'_>,
        max: usize,
    ) {
        let mut done = 0;
        while let Some(window) = text.some(max - done) {
            xor_window::<KEEP>(stream, at + done, &window, 0);
            done += window.len();
        }
        if KEEP {
            fill_up(stream, at, done);
        }
    }
}

/// Zeroes from `at + done` up to a multiple of sixteen bytes after `at`.
#[inline(always)]
pub(super) fn fill_up(stream: &mut Stream<'_>, at: usize, mut done: usize) {
    while !done.is_multiple_of(16) {
        stream.write(at + done, [0]);
        done += 1;
    }
}

/// XORs keystream into `window` from byte `done` on; its first byte gets byte `at` of `stream`.
#[inline(always)]
pub(super) fn xor_window<const KEEP: bool>(
    stream: &mut Stream<'_>,
    at: usize,
    window: &Window<'_>,
    mut done: usize,
) {
    macro_rules! piece {
        ($n:literal) => {
            let bytes = window.xor::<$n>(done, stream.array(at + done));
            if KEEP {
                stream.write(at + done, bytes);
            }
            done += $n;
        };
    }
    while window.len() - done >= 16 {
        piece!(16);
    }
    let rest = window.len() - done;
    if rest & 8 != 0 {
        piece!(8);
    }
    if rest & 4 != 0 {
        piece!(4);
    }
    if rest & 2 != 0 {
        piece!(2);
    }
    if rest & 1 != 0 {
        piece!(1);
    }
    debug_assert_eq!(done, window.len());
}

/// Four words.
#[derive(Clone, Copy)]
pub(crate) struct Quad([u32; 4]);

impl Quad {
    #[inline(always)]
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for i in 0..4 {
            bytes[4 * i..4 * i + 4].copy_from_slice(&self.0[i].to_le_bytes());
        }
        bytes
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
    fn transpose_groups([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let mut columns = [a; 4];
        for i in 0..4 {
            columns[i] = Self([a.0[i], b.0[i], c.0[i], d.0[i]]);
        }
        columns
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
    fn first_row(self) -> [u64; 2] {
        let [a, b, c, d] = self.0.map(u64::from);
        [a | b << 32, c | d << 32]
    }

    #[inline(always)]
    fn xor_into(self, window: &Window<'_>, at: usize) -> Self {
        let bytes = window.xor(at, self.bytes());
        let (words, _) = bytes.as_chunks();
        Self([0, 1, 2, 3].map(|i| u32::from_le_bytes(words[i])))
    }
}

impl ChaCha20 for Portable {
    const ROW_SETS: &'static [usize] = &[1, 4];
    const HEAD_SETS: &'static [usize] = &[4];
    const HEAD_START: bool = false;
    const FREE_SPLATS: bool = false;
    const PAIRS: bool = false;
    const TAIL_SETS: &'static [usize] = &[1, 4];

    /// A loop over lanes is what the compiler makes vectors of; words that are vectors already it
    /// takes apart.
    #[inline(always)]
    fn tile_rounds(self, v: &mut [Quad; 16], count: usize, stitch: &mut impl Stitch) {
        let mut rest = count;
        loop {
            stitch.step();
            if rest == 0 {
                return;
            }
            for lane in 0..4 {
                let mut x = [0; 16];
                for i in 0..16 {
                    x[i] = v[i].0[lane];
                }
                scalar_double_round(&mut x);
                for i in 0..16 {
                    v[i].0[lane] = x[i];
                }
            }
            rest -= 1;
        }
    }

    /// Block by block: turning rows would be work.
    #[inline(always)]
    fn rows_double_round<const SETS: usize>(self, v: &mut [[Quad; 4]; SETS]) {
        for i in 0..SETS {
            let mut x = [0; 16];
            for j in 0..16 {
                x[j] = v[i][j / 4].0[j % 4];
            }
            scalar_double_round(&mut x);
            for j in 0..16 {
                v[i][j / 4].0[j % 4] = x[j];
            }
        }
    }
}

impl Poly1305 for Portable {
    const SINGLY: usize = 0;
    type Short = Steps<2>;
    type Long = Steps<2>;
}
