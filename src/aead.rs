//! ChaCha20-Poly1305 (RFC 8439).

use core::fmt;
use core::hint::black_box;

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::Backend;
pub(crate) use crate::chacha20::Nonce;
use crate::chacha20::State;
use crate::isa::text::Text;
#[cfg(feature = "rustls")]
use crate::kernel::Block;
use crate::kernel::{Message, Open, Seal};

/// Bytes of a key.
pub const KEY_LEN: usize = 32;
/// Bytes of a nonce.
pub const NONCE_LEN: usize = 12;
/// Bytes of a tag.
pub const TAG_LEN: usize = 16;
/// The longest plaintext of one message in bytes: `P_MAX` of RFC 8439 section 2.8.
pub const MAX_PLAINTEXT_LEN: u64 = (1 << 38) - 64;

/// An authentication tag.
#[derive(Clone, Copy)]
pub struct Tag([u8; TAG_LEN]);

impl From<[u8; TAG_LEN]> for Tag {
    fn from(bytes: [u8; TAG_LEN]) -> Self {
        Self(bytes)
    }
}
impl From<Tag> for [u8; TAG_LEN] {
    fn from(tag: Tag) -> Self {
        tag.0
    }
}
impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        let difference = u128::from_le_bytes(self.0) ^ u128::from_le_bytes(other.0);
        let folded = difference as u64 | (difference >> 64) as u64;
        folded.ct_eq(&0).into()
    }
}
impl Eq for Tag {}
impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({:02x?})", self.0)
    }
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tag does not belong to this key, nonce, AAD and ciphertext.
    InvalidTag,
    /// The message is longer than [`MAX_PLAINTEXT_LEN`].
    PlaintextTooLong,
    /// The output has another length than the message needs.
    OutputLength,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidTag => "invalid tag",
            Self::PlaintextTooLong => "plaintext too long",
            Self::OutputLength => "output has the wrong length",
        })
    }
}

impl core::error::Error for Error {}

/// A message in pieces: bytes `start..end` of the concatenated `chunks`, then `last`.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    pub(crate) chunks: &'a [&'a [u8]],
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) last: &'a [u8],
}

/// A ChaCha20-Poly1305 key.
pub struct ChaCha20Poly1305 {
    key: [u32; 8],
    backend: Backend,
}

impl ChaCha20Poly1305 {
    /// A key for the best backend of this CPU.
    pub fn new(key: &[u8; KEY_LEN]) -> Self {
        Self::with_backend(key, Backend::best())
    }

    /// A key for `backend`.
    pub fn with_backend(key: &[u8; KEY_LEN], backend: Backend) -> Self {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Self { key: words, backend }
    }

    /// The backend that runs this key.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Encrypts `in_out` in place and gives its tag.
    ///
    /// # Errors
    /// [`Error::PlaintextTooLong`]; `in_out` is then unchanged.
    pub fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<Tag, Error> {
        self.seal_words(nonce.into(), aad, in_out)
    }

    /// Encrypts the concatenation of `pieces` to `out`: ciphertext, then tag.
    ///
    /// `out` must be [`TAG_LEN`] bytes longer than the pieces together. Each piece is read where it
    /// lies; pieces may be empty, and many.
    ///
    /// # Errors
    /// [`Error::PlaintextTooLong`], or else [`Error::OutputLength`]; `out` is then unchanged.
    pub fn seal_gather(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        pieces: &[&[u8]],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let total = pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.len() as u64));
        let total = checked_len(total.unwrap_or(u64::MAX))?;
        let pieces = Pieces { chunks: pieces, start: 0, end: total, last: &[] };
        self.seal_pieces(nonce.into(), aad, pieces, out)
    }

    /// Decrypts `in_out` in place.
    ///
    /// # Errors
    /// [`Error::InvalidTag`]; `in_out` is then all zeros. [`Error::PlaintextTooLong`]; `in_out` is
    /// then unchanged.
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Error> {
        self.open_words(nonce.into(), aad, in_out, tag)
    }

    /// Decrypts `ciphertext` to `out`, which must be as long.
    ///
    /// # Errors
    /// [`Error::InvalidTag`]; `out` is then all zeros. [`Error::PlaintextTooLong`], or else
    /// [`Error::OutputLength`]; `out` is then unchanged.
    pub fn open_into(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        ciphertext: &[u8],
        tag: &Tag,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let len = checked_len(ciphertext.len() as u64)?;
        if out.len() != len {
            return Err(Error::OutputLength);
        }
        let text = Text::apart(ciphertext, out);
        let computed = self.open(nonce.into(), aad, text);
        verdict(computed, tag, out)
    }

    /// As [`Self::seal_gather`].
    #[inline]
    pub(crate) fn seal_pieces(
        &self,
        nonce: Nonce,
        aad: &[u8],
        pieces: Pieces<'_>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let Pieces { chunks, start, end, last } = pieces;
        let len = checked_len(end.saturating_sub(start) as u64 + last.len() as u64)?;
        let Some((text, tag)) = out.split_last_chunk_mut() else {
            return Err(Error::OutputLength);
        };
        if text.len() != len {
            return Err(Error::OutputLength);
        }
        *tag = self.seal(nonce, aad, Text::gather(chunks, start, end, last, text)).0;
        Ok(())
    }

    /// As [`Self::seal_in_place`].
    #[inline]
    pub(crate) fn seal_words(
        &self,
        nonce: Nonce,
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<Tag, Error> {
        checked_len(in_out.len() as u64)?;
        Ok(self.seal(nonce, aad, Text::in_place(in_out)))
    }

    /// As [`Self::open_in_place`].
    #[inline]
    pub(crate) fn open_words(
        &self,
        nonce: Nonce,
        aad: &[u8],
        in_out: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Error> {
        checked_len(in_out.len() as u64)?;
        let computed = self.open(nonce, aad, Text::in_place(in_out));
        verdict(computed, tag, in_out)
    }

    #[inline]
    fn seal(&self, nonce: Nonce, aad: &[u8], text: Text<'_>) -> Tag {
        let state = State { key: &self.key, nonce };
        Tag(self.backend.run(Message { state, aad, text, direction: Seal }))
    }

    #[inline]
    fn open(&self, nonce: Nonce, aad: &[u8], text: Text<'_>) -> Tag {
        let state = State { key: &self.key, nonce };
        Tag(self.backend.run(Message { state, aad, text, direction: Open }))
    }
}

/// `len`, if a message may be so long.
#[inline]
fn checked_len(len: u64) -> Result<usize, Error> {
    if len > MAX_PLAINTEXT_LEN {
        return Err(Error::PlaintextTooLong);
    }
    // no output is as long as a total that passes the address space
    usize::try_from(len).map_err(|_| Error::OutputLength)
}

/// Accepts what has been decrypted to `out`, or clears it.
#[inline]
fn verdict(computed: Tag, tag: &Tag, out: &mut [u8]) -> Result<(), Error> {
    if computed != *tag {
        clear(out);
        return Err(Error::InvalidTag);
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn clear(rejected: &mut [u8]) {
    rejected.fill(0);
    black_box(rejected);
}

impl Drop for ChaCha20Poly1305 {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for ChaCha20Poly1305 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChaCha20Poly1305").field("backend", &self.backend).finish_non_exhaustive()
    }
}

/// A QUIC header protection key (RFC 9001 section 5.4.4).
#[cfg(feature = "rustls")]
pub(crate) struct HeaderKey {
    key: ChaCha20Poly1305,
}

#[cfg(feature = "rustls")]
impl HeaderKey {
    pub(crate) fn new(key: &[u8; KEY_LEN], backend: Backend) -> Self {
        Self { key: ChaCha20Poly1305::with_backend(key, backend) }
    }

    /// The first bytes of the ChaCha20 block whose counter and nonce are the sample.
    pub(crate) fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        let [a, b, c, d, nonce @ ..] = sample;
        let state = State { key: &self.key.key, nonce: nonce.into() };
        let block = Block { state, counter: u32::from_le_bytes([*a, *b, *c, *d]) };
        let [mask @ .., _, _, _] = self.key.backend.run(block).to_le_bytes();
        mask
    }
}
