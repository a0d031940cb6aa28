//! Seal and open of one message (RFC 8439 section 2.8): the AEAD's schedule, once for all
//! instruction sets and for both directions.
//!
//! ```text
//! single: key block and keystream of the whole message from one set of rows
//!         XOR; hash what is the ciphertext, block by block
//! short:  the same from up to four sets of rows, hashed in steps
//! long:   key block and first keystream from rows, beside the first rounds of the first tile where
//!         there are registers for both
//!         for each tile, and for the rows of the end: its rounds, and in their gaps the steps of
//!             hashing that there are; XOR
//!         hash the rest
//! ```
//!
//! Seal hashes what it has written, so it runs a tile behind; open hashes what it will overwrite, and
//! one tile more.

use crate::chacha20::{self, Alone, ChaCha20, Lent, Pair, State, Stitch, Tile, Tiles};
use crate::isa::text::{Room, Source, Stream, Text};
use crate::isa::{Isa, Kernel};
use crate::poly1305::scalar::Scalar;
use crate::poly1305::{self, Hash, Poly1305};

/// What can be done on any instruction set.
pub(crate) trait Operation {
    type Output;

    fn on<I: ChaCha20 + Poly1305>(self, isa: I) -> Self::Output;
}

/// Which way a message goes.
///
/// Of a short message the way is a type, so that each way is compiled by itself. A long message is one
/// body of code for both, half as large: it asks a few times in a thousand bytes.
pub(crate) trait Direction: Copy {
    fn seals(self) -> bool;
}

#[derive(Clone, Copy)]
pub(crate) struct Seal;
#[derive(Clone, Copy)]
pub(crate) struct Open;
#[derive(Clone, Copy)]
struct Either {
    seals: bool,
}

impl Direction for Seal {
    #[inline(always)]
    fn seals(self) -> bool {
        true
    }
}

impl Direction for Open {
    #[inline(always)]
    fn seals(self) -> bool {
        false
    }
}

impl Direction for Either {
    #[inline(always)]
    fn seals(self) -> bool {
        self.seals
    }
}

/// One message to seal or to open. The output is the tag; whether it is the right one, the caller tells.
///
/// A text to open lies in one piece.
pub(crate) struct Message<'a, D> {
    pub(crate) state: State<'a>,
    pub(crate) aad: &'a [u8],
    pub(crate) text: Text<'a>,
    pub(crate) direction: D,
}

impl<D: Direction> Operation for Message<'_, D> {
    type Output = [u8; 16];

    /// Each length class is a function of its own, with no more stack than it needs.
    #[inline(always)]
    fn on<I: ChaCha20 + Poly1305>(self, isa: I) -> [u8; 16] {
        let blocks = 1 + self.text.len().div_ceil(chacha20::BLOCK);
        if self.text.len() <= I::SINGLY {
            isa.enter(Single(self))
        } else if blocks <= chacha20::few_blocks::<I>() {
            isa.enter(Short(self))
        } else {
            let Self { state, aad, text, direction } = self;
            let direction = Either { seals: direction.seals() };
            isa.enter(Long(Message { state, aad, text, direction }))
        }
    }
}

struct Single<'a, D>(Message<'a, D>);
struct Short<'a, D>(Message<'a, D>);
struct Long<'a>(Message<'a, Either>);

impl<I: ChaCha20, D: Direction> Kernel<I> for Single<'_, D> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run(self, isa: I) -> [u8; 16] {
        self.0.single(isa)
    }
}

impl<I: ChaCha20 + Poly1305, D: Direction> Kernel<I> for Short<'_, D> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run(self, isa: I) -> [u8; 16] {
        self.0.short(isa)
    }
}

impl<I: ChaCha20 + Poly1305> Kernel<I> for Long<'_> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run(self, isa: I) -> [u8; 16] {
        self.0.long(isa)
    }
}

impl<'a, D: Direction> Message<'a, D> {
    /// One batch of rows; all blocks hashed singly.
    #[inline(always)]
    fn single<I: ChaCha20>(mut self, isa: I) -> [u8; 16] {
        let len = self.text.len();
        let mut room = Room::<I::Word, 4>::new();
        let mut stream = room.stream();
        let key = chacha20::few(isa, self.state, 0, 1, &[1], &mut stream, &mut Alone);
        let mut hash = Scalar::new(poly1305::Key::new(key));
        hash.absorb(self.aad.into());
        let lengths = self.lengths();
        if self.direction.seals() {
            isa.xor::<true>(&mut stream, chacha20::BLOCK, &mut self.text, len);
            let to = chacha20::BLOCK + len.next_multiple_of(poly1305::BLOCK);
            hash.absorb(stream.source().range(chacha20::BLOCK, to));
        } else {
            hash.absorb(self.ciphertext());
            isa.xor::<false>(&mut stream, chacha20::BLOCK, &mut self.text, len);
        }
        hash.absorb_block(poly1305::length_block(lengths));
        hash.tag()
    }

    /// One batch of rows.
    #[inline(always)]
    fn short<I: ChaCha20 + Poly1305>(mut self, isa: I) -> [u8; 16] {
        let len = self.text.len();
        let blocks = 1 + len.div_ceil(chacha20::BLOCK);
        let mut room = Room::<I::Word, 16>::new();
        let mut stream = room.stream();
        let key = chacha20::few(isa, self.state, 0, blocks, I::ROW_SETS, &mut stream, &mut Alone);
        let mut hash = I::Short::new(isa, poly1305::Key::new(key));
        hash.absorb(self.aad.into());
        if self.direction.seals() {
            isa.xor::<false>(&mut stream, chacha20::BLOCK, &mut self.text, len);
        }
        let mut backlog = Backlog::begin(isa, hash, self.ciphertext());
        backlog.catch_up(backlog.end);
        if !self.direction.seals() {
            let kept = backlog.kept(self.lengths());
            isa.xor::<false>(&mut stream, chacha20::BLOCK, &mut self.text, len);
            return backlog.hash.finish(isa, kept);
        }
        backlog.finish(self.lengths())
    }

    /// The first blocks from rows, the last ones too, those between from tiles.
    #[inline(always)]
    fn long<I: ChaCha20 + Poly1305>(mut self, isa: I) -> [u8; 16] {
        let len = self.text.len();
        let tile_len = chacha20::tile_blocks::<I>() * chacha20::BLOCK;
        let head_sets = chacha20::head_sets::<I>(len);
        let head_len = chacha20::head_len::<I>(head_sets);
        let mut counter = (head_sets * chacha20::row_blocks::<I>()) as u32;
        // of the two, the one that is not used takes no place
        let (mut two_sets, mut four_sets) = (Room::<I::Word, 8>::new(), Room::<I::Word, 16>::new());
        let mut head = if I::HEAD_START { two_sets.stream() } else { four_sets.stream() };
        let mut room = Room::<I::Word, 16>::new();
        let mut stream = room.stream();

        let tiles = Tiles::new(self.state);
        let (key, mut first) = chacha20::head(isa, self.state, &tiles, head_sets, &mut head);
        let mut hash = I::Long::new(isa, poly1305::Key::new(key));
        hash.absorb(self.aad.into());
        if self.direction.seals() {
            isa.xor::<false>(&mut head, chacha20::BLOCK, &mut self.text, head_len);
        }
        let mut backlog = Backlog::begin(isa, hash, self.ciphertext());
        let mut kept = None;
        if !self.direction.seals() {
            kept = Some(backlog.kept(self.lengths()));
        }

        let mut rest = len - head_len;
        while rest > chacha20::tail_len::<I>() {
            let mut tile = first.take().unwrap_or_else(|| tiles.begin(isa, counter));
            self.rounds(&mut tile, counter, &mut backlog);
            if !self.direction.seals() && self.text.written() == 0 {
                isa.xor::<false>(&mut head, chacha20::BLOCK, &mut self.text, head_len);
            }
            self.apply(isa, tile, &mut stream);
            counter = counter.wrapping_add(chacha20::tile_blocks::<I>() as u32);
            if I::PAIRS {
                while let Some(window) = self.text.whole(2 * tile_len) {
                    let mut pair = tiles.begin(Pair(isa), counter);
                    self.rounds(&mut pair, counter, &mut backlog);
                    pair.xor(&window);
                    counter = counter.wrapping_add(2 * chacha20::tile_blocks::<I>() as u32);
                }
            }
            rest = len - self.text.written();
        }
        if rest != 0 {
            backlog.to = if self.direction.seals() {
                self.text.written().min(backlog.end)
            } else {
                backlog.end
            };
            let blocks = rest.div_ceil(chacha20::BLOCK);
            chacha20::few(
                isa,
                self.state,
                counter,
                blocks,
                I::TAIL_SETS,
                &mut stream,
                &mut backlog,
            );
            if !self.direction.seals() {
                backlog.catch_up(backlog.end);
                if !I::HEAD_START && self.text.written() == 0 {
                    isa.xor::<false>(&mut head, chacha20::BLOCK, &mut self.text, head_len);
                }
            }
            isa.xor::<false>(&mut stream, 0, &mut self.text, rest);
        }
        if self.direction.seals() {
            backlog.catch_up(backlog.end);
        }
        match kept {
            Some(kept) => backlog.hash.finish(isa, kept),
            None => backlog.finish(self.lengths()),
        }
    }

    /// The rounds of the tile whose first block is `counter`, and in their gaps what can be hashed.
    ///
    /// Sealing has written all before the tile. Opening must hash what the tile will overwrite, and
    /// hashes one tile further but no more: the first tiles would wait for the hash, and the last would
    /// have nothing to hide.
    #[inline(always)]
    fn rounds<I: ChaCha20, J: Isa, H: Hash<J>>(
        &self,
        tile: &mut Tile<'_, I>,
        counter: u32,
        backlog: &mut Backlog<'_, J, H>,
    ) {
        let len = chacha20::tile_blocks::<I>() * chacha20::BLOCK;
        // block 0 is not for the text
        let start = counter as usize * chacha20::BLOCK - chacha20::BLOCK;
        let to = if self.direction.seals() { start } else { start + 2 * len };
        backlog.to = to.min(backlog.end);
        tile.rounds(backlog);
        if !self.direction.seals() {
            backlog.catch_up((start + len).min(backlog.end));
        }
    }

    /// XORs a tile into the next bytes of the text: at once if they are as many and in one piece.
    #[inline(always)]
    fn apply<I: ChaCha20>(&mut self, isa: I, tile: Tile<'_, I>, stream: &mut Stream<'_>) {
        let len = chacha20::tile_blocks::<I>() * chacha20::BLOCK;
        if let Some(window) = self.text.whole(len) {
            tile.xor(&window);
        } else {
            tile.keep(stream);
            isa.xor::<false>(stream, 0, &mut self.text, len);
        }
    }

    /// Where the ciphertext lies: sealing writes it, opening reads it.
    #[inline(always)]
    fn ciphertext(&self) -> Source<'a> {
        if self.direction.seals() { self.text.output() } else { self.text.piece() }
    }

    #[inline(always)]
    fn lengths(&self) -> [u64; 2] {
        [self.aad.len() as u64, self.text.len() as u64]
    }
}

/// The first five bytes of one keystream block, little-endian: a header protection mask (RFC 9001 section
/// 5.4.4). An array of five would be returned with what follows it in its register.
#[cfg(feature = "rustls")]
pub(crate) struct Block<'a> {
    pub(crate) state: State<'a>,
    pub(crate) counter: u32,
}

#[cfg(feature = "rustls")]
impl Operation for Block<'_> {
    type Output = u64;

    #[inline(always)]
    fn on<I: ChaCha20 + Poly1305>(self, isa: I) -> u64 {
        isa.enter(self)
    }
}

#[cfg(feature = "rustls")]
impl<I: ChaCha20> Kernel<I> for Block<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, isa: I) -> u64 {
        let mut room = Room::<I::Word, 4>::new();
        let mut stream = room.stream();
        chacha20::few(isa, self.state, self.counter, 1, &[1], &mut stream, &mut Alone);
        u64::from_le_bytes(stream.array(0)) & 0xff_ffff_ffff
    }
}

/// Ciphertext that waits to be hashed: `hashed..to`.
struct Backlog<'a, I, H> {
    isa: I,
    hash: H,
    ciphertext: Source<'a>,
    hashed: usize,
    to: usize,
    /// Where the last whole step ends.
    end: usize,
}

impl<'a, I: Isa, H: Hash<I>> Backlog<'a, I, H> {
    const STEP: usize = H::STEP * poly1305::BLOCK;

    /// Hashes what goes singly, which must be there already.
    #[inline(always)]
    fn begin(isa: I, mut hash: H, ciphertext: Source<'a>) -> Self {
        let hashed = hash.begin(isa, ciphertext);
        let end = hashed + (ciphertext.len() - hashed) / Self::STEP * Self::STEP;
        Self { isa, hash, ciphertext, hashed, to: hashed, end }
    }

    /// Hashes until at least `to`.
    #[inline(always)]
    fn catch_up(&mut self, to: usize) {
        while self.hashed < to {
            self.take((to - self.hashed).div_ceil(Self::STEP));
        }
    }

    /// Absorbs `most` steps, or as many as the hash takes together if that is fewer.
    #[inline(always)]
    fn take(&mut self, most: usize) {
        let count = most.min(self.hash.together());
        let next = self.hashed + count * Self::STEP;
        let blocks = self.ciphertext.range(self.hashed, next);
        self.hash.steps(self.isa, blocks);
        self.hashed = next;
    }

    /// What is left after the last step.
    #[inline(always)]
    fn kept(&self, lengths: [u64; 2]) -> H::End {
        let rest = self.ciphertext.range(self.end, self.ciphertext.len());
        H::end(self.isa, rest, lengths)
    }

    #[inline(always)]
    fn finish(self, lengths: [u64; 2]) -> [u8; 16] {
        let kept = self.kept(lengths);
        self.hash.finish(self.isa, kept)
    }
}

impl<I: Isa, H: Hash<I>> Stitch for Backlog<'_, I, H> {
    #[inline(always)]
    fn step(&mut self) {
        // (`to` may lie before what has been hashed)
        let steps = self.to.saturating_sub(self.hashed) / Self::STEP;
        if steps != 0 {
            self.take(steps);
        }
    }

    #[inline(always)]
    fn lend(&mut self, most: usize, blocks: usize) -> Option<Lent<'_>> {
        debug_assert!(blocks.is_multiple_of(H::STEP));
        let (h, r) = self.hash.lend()?;
        let len = blocks * poly1305::BLOCK;
        let next = self.hashed + len * most.min(self.to.saturating_sub(self.hashed) / len);
        let blocks = self.ciphertext.range(self.hashed, next);
        self.hashed = next;
        Some(Lent { h, r, blocks })
    }

    #[inline(always)]
    fn give_back(&mut self, h: [u64; 3]) {
        self.hash.give_back(h);
    }
}

#[cfg(test)]
mod tests;
