//! Seal and open of one message (RFC 8439 section 2.8): the AEAD's schedule, once for all
//! instruction sets and for both directions.
//!
//! ```text
//! short:  key block and keystream of the whole message from one batch of rows
//!         XOR; hash what is the ciphertext, block by block
//! long:   key block and first keystream from one batch
//!         for each further batch of keystream, the last one as small as it may be:
//!             its rounds, and in their gaps as many steps of hashing as there is ciphertext
//!             XOR
//!         hash the rest
//! ```
//!
//! Seal hashes what it has written, so it runs a batch behind; open hashes what it will overwrite, so
//! it must be ahead of the XOR.

use core::marker::PhantomData;

use crate::chacha20::{self, Alone, ChaCha20, State, Stitch};
use crate::isa::text::{Room, Source, Stream, Text};
use crate::isa::{Isa, Kernel};
use crate::poly1305::scalar::Scalar;
use crate::poly1305::{self, Hash, Poly1305};

/// Which way a message goes: a type, so that each way is compiled by itself.
pub(crate) trait Direction {
    const SEALS: bool;
}

pub(crate) struct Seal;
pub(crate) struct Open;

impl Direction for Seal {
    const SEALS: bool = true;
}
impl Direction for Open {
    const SEALS: bool = false;
}

/// One message to seal or to open. The output is the tag; whether it is the right one, the caller tells.
///
/// A text to open lies in one piece.
pub(crate) struct Message<'a, D> {
    pub(crate) state: State<'a>,
    pub(crate) aad: &'a [u8],
    pub(crate) text: Text<'a>,
    direction: PhantomData<D>,
}

impl<I: ChaCha20 + Poly1305, D: Direction> Kernel<I> for Message<'_, D> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run(self, isa: I) -> [u8; 16] {
        let blocks = 1 + self.text.len().div_ceil(chacha20::BLOCK);
        if blocks <= chacha20::widest_rows::<I>() {
            self.short(isa, blocks)
        } else {
            self.long(isa)
        }
    }
}

impl<'a, D: Direction> Message<'a, D> {
    #[inline(always)]
    pub(crate) fn new(state: State<'a>, aad: &'a [u8], text: Text<'a>) -> Self {
        Self { state, aad, text, direction: PhantomData }
    }

    #[inline(always)]
    fn short<I: Isa>(mut self, isa: I, blocks: usize) -> [u8; 16] {
        let mut room = Room::new();
        let mut stream = room.stream();
        chacha20::row_batch(isa, self.state, 0, blocks, &mut stream, &mut Alone);
        let mut hash = Scalar::new(poly1305::Key::new(stream.array(0)));
        hash.absorb(self.aad.into());
        let lengths = self.lengths();
        if !D::SEALS {
            hash.absorb(self.ciphertext());
        }
        xor(isa, &stream, chacha20::BLOCK, &mut self.text, usize::MAX);
        if D::SEALS {
            hash.absorb(self.ciphertext());
        }
        poly1305::finish_single(hash, lengths)
    }

    #[inline(always)]
    fn long<I: ChaCha20 + Poly1305>(mut self, isa: I) -> [u8; 16] {
        let len = self.text.len();
        let ciphertext = self.ciphertext();
        let lengths = self.lengths();
        let batch = chacha20::widest::<I>() * chacha20::BLOCK;
        let mut room = Room::new();
        let mut stream = room.stream();

        chacha20::batch(isa, self.state, 0, chacha20::widest::<I>(), &mut stream, &mut Alone);
        let mut hash = I::Hash::new(isa, poly1305::Key::new(stream.array(0)));
        hash.absorb(self.aad.into());
        let step = I::Hash::STEP * poly1305::BLOCK;
        let first = batch - chacha20::BLOCK;
        if D::SEALS {
            xor(isa, &stream, chacha20::BLOCK, &mut self.text, first);
        }
        let begun = hash.begin(isa, ciphertext);
        // the end of the last whole step
        let end = begun + (len - begun) / step * step;
        let mut backlog = Backlog { isa, hash, ciphertext, hashed: begun, to: 0 };
        let mut kept = None;
        if !D::SEALS {
            kept = Some(I::Hash::end(isa, ciphertext.range(end, len), lengths));
            backlog.catch_up(first.min(end));
            xor(isa, &stream, chacha20::BLOCK, &mut self.text, first);
        }

        let mut counter = chacha20::widest::<I>() as u32;
        while self.text.written() < len {
            let rest = len - self.text.written();
            backlog.to = if D::SEALS { self.text.written().min(end) } else { end };
            if rest >= batch
                && let Some(window) = self.text.whole(batch)
            {
                // hash before the tile overwrites
                chacha20::tile(isa, self.state, counter, &window, &mut backlog);
            } else {
                let blocks = rest.min(batch).div_ceil(chacha20::BLOCK);
                chacha20::batch(isa, self.state, counter, blocks, &mut stream, &mut backlog);
                if !D::SEALS {
                    backlog.catch_up(end);
                }
                xor(isa, &stream, 0, &mut self.text, batch);
            }
            counter = counter.wrapping_add(chacha20::widest::<I>() as u32);
        }
        backlog.catch_up(end);
        let kept = match kept {
            Some(kept) => kept,
            None => I::Hash::end(isa, ciphertext.range(end, len), lengths),
        };
        backlog.hash.finish(isa, kept)
    }

    /// Where the ciphertext lies: sealing writes it, opening reads it.
    #[inline(always)]
    fn ciphertext(&self) -> Source<'a> {
        if D::SEALS { self.text.output() } else { self.text.piece() }
    }

    #[inline(always)]
    fn lengths(&self) -> [u64; 2] {
        [self.aad.len() as u64, self.text.len() as u64]
    }
}

/// The first five bytes of one keystream block: a header protection mask (RFC 9001 section 5.4.4).
#[cfg(feature = "rustls")]
pub(crate) struct Block<'a> {
    pub(crate) state: State<'a>,
    pub(crate) counter: u32,
}

#[cfg(feature = "rustls")]
impl<I: Isa> Kernel<I> for Block<'_> {
    type Output = [u8; 5];

    #[inline(always)]
    fn run(self, isa: I) -> [u8; 5] {
        let mut room = Room::new();
        let mut stream = room.stream();
        chacha20::row_batch(isa, self.state, self.counter, 1, &mut stream, &mut Alone);
        stream.array(0)
    }
}

/// Ciphertext that waits to be hashed: `hashed..to`.
struct Backlog<'a, I, H> {
    isa: I,
    hash: H,
    ciphertext: Source<'a>,
    hashed: usize,
    to: usize,
}

impl<I: Isa, H: Hash<I>> Backlog<'_, I, H> {
    /// Hashes until at least `to`.
    #[inline(always)]
    fn catch_up(&mut self, to: usize) {
        while self.hashed < to {
            self.take();
        }
    }

    #[inline(always)]
    fn take(&mut self) {
        let next = self.hashed + H::STEP * poly1305::BLOCK;
        self.hash.step(self.isa, self.ciphertext.range(self.hashed, next));
        self.hashed = next;
    }
}

impl<I: Isa, H: Hash<I>> Stitch for Backlog<'_, I, H> {
    #[inline(always)]
    fn step(&mut self) {
        if self.hashed + H::STEP * poly1305::BLOCK <= self.to {
            self.take();
        }
    }

    #[inline(always)]
    fn steps(&mut self, most: usize) -> Option<(&mut Scalar, Source<'_>)> {
        let step = H::STEP * poly1305::BLOCK;
        let hash = self.hash.single()?;
        let next = self.hashed + step * most.min(self.to.saturating_sub(self.hashed) / step);
        let blocks = self.ciphertext.range(self.hashed, next);
        self.hashed = next;
        Some((hash, blocks))
    }
}

/// XORs the keystream from byte `at` of `stream` into the next `max` bytes of `text`, piece by piece.
#[inline(always)]
fn xor<I: Isa>(isa: I, stream: &Stream<'_>, at: usize, text: &mut Text<'_>, max: usize) {
    let mut done = 0;
    while let Some(window) = text.some(max - done) {
        isa.xor(stream, at + done, &window);
        done += window.len();
    }
}
