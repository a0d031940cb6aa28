//! ChaCha20 (RFC 8439 section 2.3), over any vector of words.
#![doc = include_str!("../docs/chacha20.md")]

mod pair;

use core::hint::black_box;

pub(crate) use self::pair::Pair;
use crate::isa::text::{Source, Stream, Window};
use crate::isa::{Isa, Word};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// "expand 32-byte k", as little-endian words.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The state of section 2.3 without its counter.
#[derive(Clone, Copy)]
pub(crate) struct State<'a> {
    pub(crate) key: &'a [u32; 8],
    pub(crate) nonce: Nonce,
}

/// A nonce, little-endian, in two registers.
///
/// In TLS and QUIC the sequence number enters `rest` alone. Who has just written a nonce to memory
/// wrote it in these widths, most likely; read as one vector it would not be there yet.
#[derive(Clone, Copy)]
pub(crate) struct Nonce {
    pub(crate) first: u32,
    pub(crate) rest: u64,
}

impl Nonce {
    #[inline(always)]
    fn words(self) -> [u32; 3] {
        [self.first, self.rest as u32, (self.rest >> 32) as u32]
    }
}

impl From<&[u8; 12]> for Nonce {
    #[inline(always)]
    fn from(bytes: &[u8; 12]) -> Self {
        let [a, b, c, d, rest @ ..] = *bytes;
        Self { first: u32::from_le_bytes([a, b, c, d]), rest: u64::from_le_bytes(rest) }
    }
}

/// Work that a batch of rounds hides: the rounds wait for one another, it runs in the gaps.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // AVX2 alone takes what is lent
pub(crate) trait Stitch {
    /// Called once between any two double rounds.
    fn step(&mut self);

    /// Hands out at most `most` times `blocks` blocks of a hash that absorbs block by block in steps of
    /// which `blocks` is a multiple.
    fn lend(&mut self, most: usize, blocks: usize) -> Option<Lent<'_>>;

    /// Takes back the state of a hash whose blocks were lent.
    fn give_back(&mut self, h: [u64; 3]);
}

/// The state of a hash in 64-bit limbs, its `r`, and the blocks to be absorbed.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // AVX2 alone takes what is lent
pub(crate) struct Lent<'a> {
    pub(crate) h: [u64; 3],
    pub(crate) r: [u64; 2],
    pub(crate) blocks: Source<'a>,
}

/// Nothing to hide.
pub(crate) struct Alone;

impl Stitch for Alone {
    #[inline(always)]
    fn step(&mut self) {}

    #[inline(always)]
    fn lend(&mut self, _: usize, _: usize) -> Option<Lent<'_>> {
        None
    }

    #[inline(always)]
    fn give_back(&mut self, _: [u64; 3]) {}
}

/// Blocks of keystream in a tile: one for each lane.
pub(crate) const fn tile_blocks<I: Isa>() -> usize {
    I::Word::LANES
}

/// Blocks in a set of rows: one for each group of four lanes.
pub(crate) const fn row_blocks<I: Isa>() -> usize {
    I::Word::LANES / 4
}

/// Blocks that [`few`] can make of a whole message.
pub(crate) const fn few_blocks<I: ChaCha20>() -> usize {
    most(I::ROW_SETS) * row_blocks::<I>()
}

/// With how many sets of rows to begin a message of `len` bytes.
///
/// The most, where tiles are then enough for the rest and no rows end the message.
#[inline(always)]
pub(crate) fn head_sets<I: ChaCha20>(len: usize) -> usize {
    // what rows could not make alone is longer than any head, so nothing below passes zero
    const { assert!(most(I::HEAD_SETS) <= most(I::ROW_SETS)) };
    let (least, most) = (I::HEAD_SETS[0], most(I::HEAD_SETS));
    let more = (most - least) * row_blocks::<I>() * BLOCK;
    let over = (len - head_len::<I>(least)) % (tile_blocks::<I>() * BLOCK);
    if over != 0 && over <= more { most } else { least }
}

/// Bytes of text that `sets` sets of rows are keystream for, when they begin a message.
#[inline(always)]
pub(crate) const fn head_len<I: ChaCha20>(sets: usize) -> usize {
    (sets * row_blocks::<I>() - 1) * BLOCK
}

/// The most bytes that end a message of tiles as rows.
pub(crate) const fn tail_len<I: ChaCha20>() -> usize {
    most(I::TAIL_SETS) * row_blocks::<I>() * BLOCK
}

const fn most(sets: &[usize]) -> usize {
    sets[sets.len() - 1]
}

/// What is best for an instruction set.
///
/// Numbers of sets of rows are in rising order and at most four. Four sets are as many blocks as a tile,
/// and are made as one.
pub(crate) trait ChaCha20: Isa {
    /// How many sets of rows may make a whole message.
    const ROW_SETS: &'static [usize];

    /// How many sets of rows may begin a message of tiles, the key block among them.
    const HEAD_SETS: &'static [usize];

    /// Whether the first tile has registers to run its first rounds beside them.
    const HEAD_START: bool;

    /// Whether operations splat a word of memory as they go. Splats that are made ahead are then no gain,
    /// and would be spilled, for there are more of them than registers.
    const FREE_SPLATS: bool;

    /// Whether there are registers for two tiles at once.
    const PAIRS: bool;

    /// How many sets of rows may end a message of tiles.
    const TAIL_SETS: &'static [usize];

    /// `count` double rounds of a tile.
    #[inline(always)]
    fn tile_rounds(self, v: &mut [Self::Word; 16], count: usize, stitch: &mut impl Stitch) {
        let mut rest = count;
        loop {
            stitch.step();
            if rest == 0 {
                return;
            }
            double_round(v);
            rest -= 1;
        }
    }

    /// A double round of sets of rows.
    ///
    /// Row `b` is ready last and needed first, so it stays and the other three are turned against it.
    #[inline(always)]
    fn rows_double_round<const SETS: usize>(self, v: &mut [[Self::Word; 4]; SETS]) {
        rows_round(v);
        for i in 0..SETS {
            let [a, b, c, d] = v[i];
            v[i] = [a.turn::<3>(), b, c.turn::<1>(), d.turn::<2>()];
        }
        rows_round(v);
        for i in 0..SETS {
            let [a, b, c, d] = v[i];
            v[i] = [a.turn::<1>(), b, c.turn::<3>(), d.turn::<2>()];
        }
    }
}

/// Writes at least `blocks` blocks of keystream to the start of `stream`, in the least of `sets` that is
/// enough or else in the most.
///
/// Returns the first two rows of the first block. (What `sets` does not name is left out, because it is
/// a constant.)
#[inline(always)]
pub(crate) fn few<I: ChaCha20>(
    isa: I,
    state: State<'_>,
    counter: u32,
    blocks: usize,
    sets: &'static [usize],
    stream: &mut Stream<'_>,
    stitch: &mut impl Stitch,
) -> [[u64; 2]; 2] {
    for &n in sets {
        if n != most(sets) && blocks > n * row_blocks::<I>() {
            continue;
        }
        return match n {
            1 => Rows::<I, 1>::new(isa, state, counter).finish(stream, stitch),
            2 => Rows::<I, 2>::new(isa, state, counter).finish(stream, stitch),
            3 => Rows::<I, 3>::new(isa, state, counter).finish(stream, stitch),
            _ => {
                let tiles = Tiles::new(state);
                let mut tile = tiles.begin(isa, counter);
                tile.rounds(stitch);
                tile.keep(stream)
            }
        };
    }
    unreachable!("the last of `sets`, which are never none, is the most")
}

/// The tiles of one message.
pub(crate) struct Tiles {
    start: [u32; 16],
    /// The state after the part of the first round that does not see the counter: columns 1 to 3.
    begun: [u32; 16],
}

impl Tiles {
    #[inline(always)]
    pub(crate) fn new(state: State<'_>) -> Self {
        let [c0, c1, c2, c3] = CONSTANTS;
        let [k0, k1, k2, k3, k4, k5, k6, k7] = *state.key;
        let [n0, n1, n2] = state.nonce.words();
        let start = [c0, c1, c2, c3, k0, k1, k2, k3, k4, k5, k6, k7, 0, n0, n1, n2];
        let mut begun = start;
        for i in 1..4 {
            let column = [start[i], start[4 + i], start[8 + i], start[12 + i]];
            let [a, b, c, d] = scalar_quarter_round(column);
            begun[i] = a;
            begun[4 + i] = b;
            begun[8 + i] = c;
            begun[12 + i] = d;
        }
        Self { start, begun }
    }

    /// Begins the tile whose first block is `counter`.
    #[inline(always)]
    pub(crate) fn begin<I: ChaCha20>(&self, isa: I, counter: u32) -> Tile<'_, I> {
        let begun = words_to_splat::<I>(&self.begun);
        let mut v = [isa.splat(0); 16];
        for i in 0..16 {
            v[i] = isa.splat(begun[i]);
        }
        let counters = isa.splat(counter).add(isa.lane_numbers());
        v[12] = counters;
        quarter_round(&mut v, 0, 4, 8, 12);
        diagonal_round(&mut v);
        Tile { isa, start: &self.start, counters, v, done: 1 }
    }
}

/// `words`, so that the compiler does not know them from one tile to the next if their splats are free.
#[inline(always)]
fn words_to_splat<I: ChaCha20>(words: &[u32; 16]) -> &[u32; 16] {
    if I::FREE_SPLATS { black_box(words) } else { words }
}

/// As many blocks as a vector has lanes: a vector holds one word of the state, a lane one block.
pub(crate) struct Tile<'a, I: ChaCha20> {
    isa: I,
    start: &'a [u32; 16],
    counters: I::Word,
    v: [I::Word; 16],
    /// Double rounds.
    done: usize,
}

impl<I: ChaCha20> Tile<'_, I> {
    /// The double rounds that are not yet done.
    #[inline(always)]
    pub(crate) fn rounds(&mut self, stitch: &mut impl Stitch) {
        self.isa.tile_rounds(&mut self.v, 10 - self.done, stitch);
    }

    #[inline(always)]
    fn keystream(self) -> [I::Word; 16] {
        let start = words_to_splat::<I>(self.start);
        let mut v = self.v;
        for i in 0..12 {
            v[i] = v[i].add(self.isa.splat(start[i]));
        }
        v[12] = v[12].add(self.counters);
        for i in 13..16 {
            v[i] = v[i].add(self.isa.splat(start[i]));
        }
        I::Word::transpose(v)
    }

    /// XORs the keystream into `window`, which is as long.
    #[inline(always)]
    pub(crate) fn xor(self, window: &Window<'_>) {
        let words = self.keystream();
        for i in 0..16 {
            words[i].xor_into(window, i * I::Word::BYTES);
        }
    }

    /// Writes the keystream to the start of `stream`, and tells the first two rows of the first block.
    #[inline(always)]
    pub(crate) fn keep(self, stream: &mut Stream<'_>) -> [[u64; 2]; 2] {
        let words = self.keystream();
        for i in 0..16 {
            words[i].keep(stream, i * I::Word::BYTES);
        }
        let word = |at| u64::from_le_bytes(stream.array(at));
        [[word(0), word(8)], [word(16), word(24)]]
    }
}

/// The first blocks as `sets` sets of rows, and beside them the first double rounds of the first tile.
///
/// Rows wait for themselves; rounds of the tile fill that time, and the one-time key comes out while the
/// tile has yet some rounds to go, in which to work on what depends on the key. Returns the first two
/// rows of the first block, and the tile, whose first block comes after the rows.
#[inline(always)]
pub(crate) fn head<'a, I: ChaCha20>(
    isa: I,
    state: State<'_>,
    tiles: &'a Tiles,
    sets: usize,
    stream: &mut Stream<'_>,
) -> ([[u64; 2]; 2], Option<Tile<'a, I>>) {
    if !I::HEAD_START {
        let blocks = sets * row_blocks::<I>();
        return (few(isa, state, 0, blocks, I::HEAD_SETS, stream, &mut Alone), None);
    }
    const {
        // every long message has a tile to begin
        let sets = most(I::HEAD_SETS) + most(I::TAIL_SETS);
        assert!(!I::HEAD_START || most(I::HEAD_SETS) <= 2 && sets <= most(I::ROW_SETS));
    };
    let mut tile = tiles.begin(isa, (sets * row_blocks::<I>()) as u32);
    let key = if sets == 1 {
        beside(Rows::<I, 1>::new(isa, state, 0), &mut tile, stream)
    } else {
        beside(Rows::<I, 2>::new(isa, state, 0), &mut tile, stream)
    };
    (key, Some(tile))
}

/// The first double rounds of `tile` beside all those of `rows`.
#[inline(always)]
fn beside<I: ChaCha20, const SETS: usize>(
    mut rows: Rows<I, SETS>,
    tile: &mut Tile<'_, I>,
    stream: &mut Stream<'_>,
) -> [[u64; 2]; 2] {
    for _ in 0..black_box(5) {
        rows.isa.rows_double_round(&mut rows.v);
        rows.isa.rows_double_round(&mut rows.v);
        double_round(&mut tile.v);
    }
    tile.done += 5;
    rows.keep(stream)
}

#[inline(always)]
pub(crate) fn double_round<W: Word>(v: &mut [W; 16]) {
    column_round(v);
    diagonal_round(v);
}

/// (Written out line by line: a loop over a table of indices would spill.)
#[inline(always)]
fn column_round<W: Word>(v: &mut [W; 16]) {
    quarter_rounds(v, [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]);
}

#[inline(always)]
fn diagonal_round<W: Word>(v: &mut [W; 16]) {
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

/// The quarter round of section 2.1.
#[inline(always)]
fn quarter_round<W: Word>(v: &mut [W; 16], a: usize, b: usize, c: usize, d: usize) {
    v[a] = v[a].add(v[b]);
    v[d] = v[d].xor(v[a]).rotate_left::<16>();
    v[c] = v[c].add(v[d]);
    v[b] = v[b].xor(v[c]).rotate_left::<12>();
    v[a] = v[a].add(v[b]);
    v[d] = v[d].xor(v[a]).rotate_left::<8>();
    v[c] = v[c].add(v[d]);
    v[b] = v[b].xor(v[c]).rotate_left::<7>();
}

/// A double round of one block.
#[inline(always)]
pub(crate) fn scalar_double_round(x: &mut [u32; 16]) {
    macro_rules! quarter_round {
        ($a:literal $b:literal $c:literal $d:literal) => {
            [x[$a], x[$b], x[$c], x[$d]] = scalar_quarter_round([x[$a], x[$b], x[$c], x[$d]]);
        };
    }
    quarter_round!(0 4 8 12);
    quarter_round!(1 5 9 13);
    quarter_round!(2 6 10 14);
    quarter_round!(3 7 11 15);
    quarter_round!(0 5 10 15);
    quarter_round!(1 6 11 12);
    quarter_round!(2 7 8 13);
    quarter_round!(3 4 9 14);
}

#[inline(always)]
fn scalar_quarter_round([mut a, mut b, mut c, mut d]: [u32; 4]) -> [u32; 4] {
    a = a.wrapping_add(b);
    d = (d ^ a).rotate_left(16);
    c = c.wrapping_add(d);
    b = (b ^ c).rotate_left(12);
    a = a.wrapping_add(b);
    d = (d ^ a).rotate_left(8);
    c = c.wrapping_add(d);
    b = (b ^ c).rotate_left(7);
    [a, b, c, d]
}

/// One row of the state in each group of four lanes: few blocks, but soon.
///
/// A set of four vectors holds [`row_blocks`] blocks; all four columns are worked on at once, and the
/// rows are turned against one another to make the diagonals columns.
struct Rows<I: Isa, const SETS: usize> {
    isa: I,
    start: [[I::Word; 4]; SETS],
    v: [[I::Word; 4]; SETS],
}

impl<I: ChaCha20, const SETS: usize> Rows<I, SETS> {
    #[inline(always)]
    fn new(isa: I, state: State<'_>, counter: u32) -> Self {
        let [k0, k1, k2, k3, k4, k5, k6, k7] = *state.key;
        let [n0, n1, n2] = state.nonce.words();
        let a = isa.splat_row(CONSTANTS);
        let b = isa.splat_row([k0, k1, k2, k3]);
        let c = isa.splat_row([k4, k5, k6, k7]);
        let d = isa.splat_row([counter, n0, n1, n2]).add(isa.row_numbers());
        let mut start = [[a, b, c, d]; SETS];
        for i in 1..SETS {
            start[i][3] = start[i - 1][3].add(isa.splat_row([row_blocks::<I>() as u32, 0, 0, 0]));
        }
        Self { isa, start, v: start }
    }

    /// All rounds, then [`Self::keep`].
    #[inline(always)]
    fn finish(mut self, stream: &mut Stream<'_>, stitch: &mut impl Stitch) -> [[u64; 2]; 2] {
        // unseen by the compiler, which would write all rounds out: three times as much code, no faster
        for _ in 0..black_box(10) {
            self.isa.rows_double_round(&mut self.v);
            stitch.step();
        }
        self.keep(stream)
    }

    /// Writes the keystream to the start of `stream`, and tells the first two rows of the first block.
    #[inline(always)]
    fn keep(mut self, stream: &mut Stream<'_>) -> [[u64; 2]; 2] {
        for i in 0..SETS {
            for j in 0..4 {
                self.v[i][j] = self.v[i][j].add(self.start[i][j]);
            }
        }
        let first_rows = [self.v[0][0].first_row(), self.v[0][1].first_row()];
        for i in 0..SETS {
            let blocks = I::Word::unzip(self.v[i]);
            for j in 0..4 {
                blocks[j].keep(stream, (4 * i + j) * I::Word::BYTES);
            }
        }
        first_rows
    }
}

#[inline(always)]
fn rows_round<W: Word, const SETS: usize>(v: &mut [[W; 4]; SETS]) {
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

#[cfg(test)]
pub(crate) mod tests;
