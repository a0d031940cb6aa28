//! ChaCha20 (RFC 8439 section 2.3), over any vector of words.
#![doc = include_str!("../docs/chacha20.md")]

use crate::isa::text::{Source, Stream, Window};
use crate::isa::{Isa, Word};
use crate::poly1305::scalar::Scalar;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// "expand 32-byte k", as little-endian words.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The state of section 2.3 without its counter.
#[derive(Clone, Copy)]
pub(crate) struct State<'a> {
    pub(crate) key: &'a [u32; 8],
    pub(crate) nonce: [u32; 3],
}

/// Work that a batch of rounds hides: the rounds wait for one another, it runs in the gaps.
pub(crate) trait Stitch {
    /// Called once between any two double rounds.
    fn step(&mut self);

    /// Takes at most `most` steps to be done by the caller, who absorbs the blocks one by one.
    fn steps(&mut self, most: usize) -> Option<(&mut Scalar, Source<'_>)>;
}

/// Nothing to hide.
pub(crate) struct Alone;

impl Stitch for Alone {
    #[inline(always)]
    fn step(&mut self) {}

    #[inline(always)]
    fn steps(&mut self, _: usize) -> Option<(&mut Scalar, Source<'_>)> {
        None
    }
}

/// What an instruction set may do in a way of its own.
pub(crate) trait ChaCha20: Isa {
    /// Twenty rounds on the words of [`widest`] blocks.
    #[inline(always)]
    fn rounds(self, v: &mut [Self::Word; 16], stitch: &mut impl Stitch) {
        for _ in 0..9 {
            double_round(v);
            stitch.step();
        }
        double_round(v);
    }
}

/// Blocks that the widest batch makes.
pub(crate) const fn widest<I: Isa>() -> usize {
    I::Word::LANES
}

/// Blocks that the widest batch of rows makes.
pub(crate) const fn widest_rows<I: Isa>() -> usize {
    ROW_SETS * (I::Word::LANES / 4)
}

/// Writes at least `blocks` blocks of keystream, from block `counter` on, to the start of `stream`.
///
/// `blocks` is at most [`widest`].
#[inline(always)]
pub(crate) fn batch<I: ChaCha20>(
    isa: I,
    state: State<'_>,
    counter: u32,
    blocks: usize,
    stream: &mut Stream<'_>,
    stitch: &mut impl Stitch,
) {
    if blocks <= widest_rows::<I>() {
        row_batch(isa, state, counter, blocks, stream, stitch);
    } else {
        let words = columns(isa, state, counter, stitch);
        for i in 0..16 {
            words[i].keep(stream, i * I::Word::BYTES);
        }
    }
}

/// As [`batch`], for at most [`widest_rows`] blocks.
#[inline(always)]
pub(crate) fn row_batch<I: Isa>(
    isa: I,
    state: State<'_>,
    counter: u32,
    blocks: usize,
    stream: &mut Stream<'_>,
    stitch: &mut impl Stitch,
) {
    if blocks <= I::Word::LANES / 4 {
        rows::<I, 1>(isa, state, counter, stream, stitch);
    } else {
        rows::<I, ROW_SETS>(isa, state, counter, stream, stitch);
    }
}

/// XORs [`widest`] blocks of keystream, from block `counter` on, into `window`, which is as long.
#[inline(always)]
pub(crate) fn tile<I: ChaCha20>(
    isa: I,
    state: State<'_>,
    counter: u32,
    window: &Window<'_>,
    stitch: &mut impl Stitch,
) {
    let words = columns(isa, state, counter, stitch);
    for i in 0..16 {
        words[i].xor_into(window, i * I::Word::BYTES);
    }
}

/// One block in each lane: a vector holds one word of the state, and its lanes are the blocks.
#[inline(always)]
fn columns<I: ChaCha20>(
    isa: I,
    state: State<'_>,
    counter: u32,
    stitch: &mut impl Stitch,
) -> [I::Word; 16] {
    let [c0, c1, c2, c3] = CONSTANTS;
    let [k0, k1, k2, k3, k4, k5, k6, k7] = *state.key;
    let [n0, n1, n2] = state.nonce;
    let words = [c0, c1, c2, c3, k0, k1, k2, k3, k4, k5, k6, k7, counter, n0, n1, n2];
    let mut start = [isa.splat(0); 16];
    for i in 0..16 {
        start[i] = isa.splat(words[i]);
    }
    start[12] = start[12].add(isa.lane_numbers());

    let mut v = start;
    isa.rounds(&mut v, stitch);
    for i in 0..16 {
        v[i] = v[i].add(start[i]);
    }
    I::Word::transpose(v)
}

/// Column round, then diagonal round. (Written out: a loop over a table of indices would spill.)
#[inline(always)]
fn double_round<W: Word>(v: &mut [W; 16]) {
    quarter_rounds(v, [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]);
    quarter_rounds(v, [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]);
}

/// Four independent quarter rounds (section 2.1), line by line.
#[inline(always)]
fn quarter_rounds<W: Word>(
    v: &mut [W; 16],
    p: [usize; 4],
    q: [usize; 4],
    r: [usize; 4],
    s: [usize; 4],
) {
    macro_rules! line {
        ($a:literal, $b:literal, $d:literal, $n:literal) => {
            v[p[$a]] = v[p[$a]].add(v[p[$b]]);
            v[q[$a]] = v[q[$a]].add(v[q[$b]]);
            v[r[$a]] = v[r[$a]].add(v[r[$b]]);
            v[s[$a]] = v[s[$a]].add(v[s[$b]]);
            v[p[$d]] = v[p[$d]].xor(v[p[$a]]).rotate_left::<$n>();
            v[q[$d]] = v[q[$d]].xor(v[q[$a]]).rotate_left::<$n>();
            v[r[$d]] = v[r[$d]].xor(v[r[$a]]).rotate_left::<$n>();
            v[s[$d]] = v[s[$d]].xor(v[s[$a]]).rotate_left::<$n>();
        };
    }
    line!(0, 1, 3, 16);
    line!(2, 3, 1, 12);
    line!(0, 1, 3, 8);
    line!(2, 3, 1, 7);
}

/// Sets of rows in the wider batch of rows.
const ROW_SETS: usize = 2;

/// One row of the state in each group of four lanes: few blocks, but soon.
///
/// A set of four vectors holds `LANES / 4` blocks; all four columns are worked on at once, and the
/// rows are turned against one another to make the diagonals columns.
#[inline(always)]
fn rows<I: Isa, const SETS: usize>(
    isa: I,
    state: State<'_>,
    counter: u32,
    stream: &mut Stream<'_>,
    stitch: &mut impl Stitch,
) {
    let blocks = I::Word::LANES / 4;
    let [k0, k1, k2, k3, k4, k5, k6, k7] = *state.key;
    let [n0, n1, n2] = state.nonce;
    let a = isa.splat_row(CONSTANTS);
    let b = isa.splat_row([k0, k1, k2, k3]);
    let c = isa.splat_row([k4, k5, k6, k7]);
    let d = isa.splat_row([counter, n0, n1, n2]).add(isa.row_numbers());

    let mut start = [[a, b, c, d]; SETS];
    for i in 1..SETS {
        start[i][3] = start[i - 1][3].add(isa.splat_row([blocks as u32, 0, 0, 0]));
    }
    let mut v = start;
    for _ in 0..9 {
        double_row_round(&mut v);
        stitch.step();
    }
    double_row_round(&mut v);
    for i in 0..SETS {
        for j in 0..4 {
            v[i][j] = v[i][j].add(start[i][j]);
        }
        let out = I::Word::unzip(v[i]);
        for j in 0..4 {
            out[j].keep(stream, i * blocks * BLOCK + j * I::Word::BYTES);
        }
    }
}

/// Row `b` is ready last and needed first, so it stays and the other three are turned against it.
#[inline(always)]
fn double_row_round<W: Word, const SETS: usize>(v: &mut [[W; 4]; SETS]) {
    row_round(v);
    for i in 0..SETS {
        let [a, b, c, d] = v[i];
        v[i] = [a.turn::<3>(), b, c.turn::<1>(), d.turn::<2>()];
    }
    row_round(v);
    for i in 0..SETS {
        let [a, b, c, d] = v[i];
        v[i] = [a.turn::<1>(), b, c.turn::<3>(), d.turn::<2>()];
    }
}

#[inline(always)]
fn row_round<W: Word, const SETS: usize>(v: &mut [[W; 4]; SETS]) {
    macro_rules! line {
        ($a:literal, $b:literal, $d:literal, $n:literal) => {
            for i in 0..SETS {
                v[i][$a] = v[i][$a].add(v[i][$b]);
                v[i][$d] = v[i][$d].xor(v[i][$a]).rotate_left::<$n>();
            }
        };
    }
    line!(0, 1, 3, 16);
    line!(2, 3, 1, 12);
    line!(0, 1, 3, 8);
    line!(2, 3, 1, 7);
}
