//! ChaCha20-Poly1305 (RFC 8439).

use core::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::Backend;

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
        self.0.ct_eq(&other.0).into()
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

/// A nonce as the three little-endian words of the ChaCha20 state.
#[derive(Clone, Copy)]
pub(crate) struct Nonce(pub(crate) [u32; 3]);

impl From<&[u8; NONCE_LEN]> for Nonce {
    fn from(bytes: &[u8; NONCE_LEN]) -> Self {
        let word =
            |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        Self([word(0), word(4), word(8)])
    }
}

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
    pub fn seal_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<Tag, Error> {
        if in_out.len() as u64 > MAX_PLAINTEXT_LEN {
            return Err(Error::PlaintextTooLong);
        }
        let nonce = nonce.into();
        self.xor(nonce, in_out);
        Ok(self.tag(nonce, aad, in_out))
    }

    /// Encrypts the concatenation of `pieces` to `out`: ciphertext, then tag.
    pub fn seal_gather(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        pieces: &[&[u8]],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let total = pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.len() as u64));
        let total = total.filter(|&n| n <= MAX_PLAINTEXT_LEN).ok_or(Error::PlaintextTooLong)?;
        if out.len() as u64 != total + TAG_LEN as u64 {
            return Err(Error::OutputLength);
        }
        self.seal_pieces(
            nonce.into(),
            aad,
            Pieces { chunks: pieces, start: 0, end: total as usize, last: &[] },
            out,
        )
    }

    /// Decrypts `in_out` in place; after an error it is all zeros.
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Error> {
        self.open_words(nonce.into(), aad, in_out, tag)
    }

    /// Decrypts `ciphertext` to `out`; after an error `out` is all zeros.
    pub fn open_into(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        ciphertext: &[u8],
        tag: &Tag,
        out: &mut [u8],
    ) -> Result<(), Error> {
        if ciphertext.len() as u64 > MAX_PLAINTEXT_LEN {
            return Err(Error::PlaintextTooLong);
        }
        if ciphertext.len() != out.len() {
            return Err(Error::OutputLength);
        }
        out.copy_from_slice(ciphertext);
        self.open_words(nonce.into(), aad, out, tag)
    }

    /// As [`Self::seal_gather`]; `out` must be 16 bytes longer than the pieces together.
    pub(crate) fn seal_pieces(
        &self,
        nonce: Nonce,
        aad: &[u8],
        pieces: Pieces<'_>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let total = (pieces.end - pieces.start)
            .checked_add(pieces.last.len())
            .ok_or(Error::PlaintextTooLong)?;
        if out.len().checked_sub(TAG_LEN) != Some(total) {
            return Err(Error::OutputLength);
        }
        let (text, tag) = out.split_at_mut(total);
        let (mut skip, mut at) = (pieces.start, 0);
        for chunk in pieces.chunks {
            let piece = &chunk[skip.min(chunk.len())..];
            skip -= skip.min(chunk.len());
            let n = piece.len().min(pieces.end - pieces.start - at);
            text[at..at + n].copy_from_slice(&piece[..n]);
            at += n;
        }
        text[at..].copy_from_slice(pieces.last);
        self.xor(nonce, text);
        tag.copy_from_slice(&self.tag(nonce, aad, text).0);
        Ok(())
    }

    /// As [`Self::open_in_place`].
    pub(crate) fn open_words(
        &self,
        nonce: Nonce,
        aad: &[u8],
        in_out: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Error> {
        if in_out.len() as u64 > MAX_PLAINTEXT_LEN {
            return Err(Error::PlaintextTooLong);
        }
        if self.tag(nonce, aad, in_out) != *tag {
            in_out.fill(0);
            return Err(Error::InvalidTag);
        }
        self.xor(nonce, in_out);
        Ok(())
    }

    fn xor(&self, nonce: Nonce, text: &mut [u8]) {
        for (i, chunk) in text.chunks_mut(64).enumerate() {
            let stream = block(&self.key, i as u32 + 1, nonce);
            chunk.iter_mut().zip(stream).for_each(|(t, s)| *t ^= s);
        }
    }

    fn tag(&self, nonce: Nonce, aad: &[u8], text: &[u8]) -> Tag {
        let key = block(&self.key, 0, nonce);
        let limb = |bytes: &[u8], i: usize| {
            u64::from_le_bytes(*bytes[i..].first_chunk().unwrap_or(&[0; 8]))
        };
        let r = [limb(&key, 0) & 0x0fff_fffc_0fff_ffff, limb(&key, 8) & 0x0fff_fffc_0fff_fffc];
        let mut h = [0u64; 3];
        let mut lengths = [0; 16];
        lengths[..8].copy_from_slice(&(aad.len() as u64).to_le_bytes());
        lengths[8..].copy_from_slice(&(text.len() as u64).to_le_bytes());
        for chunk in aad.chunks(16).chain(text.chunks(16)).chain([&lengths[..]]) {
            let mut m = [0; 16];
            m[..chunk.len()].copy_from_slice(chunk);
            let (a, c) = h[0].overflowing_add(limb(&m, 0));
            let (b, c) = h[1].carrying_add_(limb(&m, 8), c);
            let h2 = h[2] + 1 + c;
            let p = |x: u64, y: u64| u128::from(x) * u128::from(y);
            let s1 = r[1] + (r[1] >> 2);
            let d0 = p(a, r[0]) + p(b, s1);
            let d1 = p(a, r[1]) + p(b, r[0]) + p(h2, s1) + (d0 >> 64);
            let d2 = h2 * r[0] + (d1 >> 64) as u64;
            let carry = (d2 >> 2) + (d2 & !3);
            let (x, c) = (d0 as u64).overflowing_add(carry);
            let (y, c) = (d1 as u64).carrying_add_(0, c);
            h = [x, y, (d2 & 3) + c];
        }
        for _ in 0..2 {
            let (a, c) = h[0].overflowing_add(5);
            let (b, c) = h[1].carrying_add_(0, c);
            if h[2] + c >= 4 {
                h = [a, b, h[2] + c - 4];
            }
        }
        let h = u128::from(h[0]) | u128::from(h[1]) << 64;
        let s = u128::from(limb(&key, 16)) | u128::from(limb(&key, 24)) << 64;
        Tag(h.wrapping_add(s).to_le_bytes())
    }
}

trait Carry {
    fn carrying_add_(self, y: u64, c: bool) -> (u64, u64);
}
impl Carry for u64 {
    fn carrying_add_(self, y: u64, c: bool) -> (u64, u64) {
        let sum = u128::from(self) + u128::from(y) + u128::from(c);
        (sum as u64, (sum >> 64) as u64)
    }
}

fn block(key: &[u32; 8], counter: u32, nonce: Nonce) -> [u8; 64] {
    let [k0, k1, k2, k3, k4, k5, k6, k7] = *key;
    let [n0, n1, n2] = nonce.0;
    let start = [
        0x6170_7865,
        0x3320_646e,
        0x7962_2d32,
        0x6b20_6574,
        k0,
        k1,
        k2,
        k3,
        k4,
        k5,
        k6,
        k7,
        counter,
        n0,
        n1,
        n2,
    ];
    let mut x = start;
    for _ in 0..10 {
        for [a, b, c, d] in [
            [0, 4, 8, 12],
            [1, 5, 9, 13],
            [2, 6, 10, 14],
            [3, 7, 11, 15],
            [0, 5, 10, 15],
            [1, 6, 11, 12],
            [2, 7, 8, 13],
            [3, 4, 9, 14],
        ] {
            for [a, b, d, n] in [[a, b, d, 16], [c, d, b, 12], [a, b, d, 8], [c, d, b, 7]] {
                x[a] = x[a].wrapping_add(x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(n as u32);
            }
        }
    }
    let mut out = [0; 64];
    for i in 0..16 {
        out[4 * i..4 * i + 4].copy_from_slice(&x[i].wrapping_add(start[i]).to_le_bytes());
    }
    out
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
        let word =
            |i: usize| u32::from_le_bytes([sample[i], sample[i + 1], sample[i + 2], sample[i + 3]]);
        let stream = block(&self.key.key, word(0), Nonce([word(4), word(8), word(12)]));
        [stream[0], stream[1], stream[2], stream[3], stream[4]]
    }
}
