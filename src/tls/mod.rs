//! Everything that names a rustls type, one file per role: TLS 1.3 and TLS 1.2 records, QUIC
//! packets. What the roles share is here: a key with its IV, and the refusal of a malformed one.
//!
//! Sending costs one allocation: the record's buffer is appended once as zeros (a memset), and the
//! payload's chunks are encrypted into it from where they lie. Receiving works in place. A record
//! is authenticated before anything else about it is believed.

use core::{iter, slice};

use rustls::Error;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, MessageDecrypter, MessageEncrypter,
    OutboundChunks, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload,
};
use zeroize::Zeroize;

use crate::Backend;
use crate::aead::{ChaCha20Poly1305, Nonce, Pieces, TAG_LEN, Tag};

mod quic;
#[cfg(feature = "tls12")]
mod tls12;
mod tls13;

/// Our ChaCha20-Poly1305 as rustls sees it: in TLS 1.3, TLS 1.2 and QUIC.
///
/// `None` stands for the best backend at the time a key is made; a `static` cannot name it.
pub(crate) struct Algorithm(pub(crate) Option<Backend>);

impl Algorithm {
    fn backend(&self) -> Backend {
        self.0.unwrap_or_else(Backend::best)
    }

    /// A key and its IV, unless one of them has the wrong length.
    fn traffic_key(&self, key: &AeadKey, iv: &[u8]) -> Option<TrafficKey> {
        let iv: [u8; IV_LEN] = iv.try_into().ok()?;
        Some(TrafficKey {
            aead: ChaCha20Poly1305::with_backend(key.as_ref().try_into().ok()?, self.backend()),
            iv: Nonce::from(&iv),
        })
    }
}

/// The key and IV of one direction of a connection.
struct TrafficKey {
    aead: ChaCha20Poly1305,
    /// As words: the nonce is made in registers, and the kernel takes it from there.
    iv: Nonce,
}

impl TrafficKey {
    /// The nonce of a record (RFC 9846 section 5.3, RFC 7905 section 2).
    fn nonce(&self, seq: u64) -> Nonce {
        self.path_nonce(0, seq)
    }

    /// The nonce of a packet: the IV XORed with path id and packet number, both big-endian
    /// (RFC 9001 section 5.3; the path id is that of draft-ietf-quic-multipath).
    fn path_nonce(&self, path_id: u32, number: u64) -> Nonce {
        let Nonce { first, rest } = self.iv;
        Nonce { first: first ^ path_id.swap_bytes(), rest: rest ^ number.swap_bytes() }
    }

    /// Encrypts a record's `pieces` to a payload of ciphertext and tag.
    fn seal(&self, nonce: Nonce, aad: &[u8], pieces: Pieces<'_>) -> Result<PrefixedPayload, Error> {
        let len = pieces.end - pieces.start + pieces.last.len() + TAG_LEN;
        let mut payload = PrefixedPayload::with_capacity(len);
        payload.extend(iter::repeat_n(&0, len));
        self.aead
            .seal_pieces(nonce, aad, pieces, payload.as_mut())
            .map_err(|_| Error::EncryptError)?;
        if cfg!(chapoly_fault = "tag") {
            payload.as_mut()[len - 1] ^= 1;
        }
        Ok(payload)
    }

    /// Decrypts `payload`, ciphertext and tag, in place; gives the length of the plaintext.
    ///
    /// After an error no plaintext is left in `payload`.
    fn open(&self, nonce: Nonce, aad: &[u8], payload: &mut [u8]) -> Result<usize, Error> {
        let (text, tag) = payload.split_last_chunk_mut::<TAG_LEN>().ok_or(Error::DecryptError)?;
        self.aead
            .open_words(nonce, aad, text, &Tag::from(*tag))
            .map_err(|_| Error::DecryptError)?;
        Ok(text.len())
    }
}

impl Drop for TrafficKey {
    fn drop(&mut self) {
        self.iv.first.zeroize();
        self.iv.rest.zeroize();
    }
}

/// The chunks of an outgoing fragment, then `last`.
///
/// rustls never exceeds [`MAX_FRAGMENT_LEN`] nor the chunks, but the type can express both.
fn pieces<'a>(payload: &'a OutboundChunks<'a>, last: &'a [u8]) -> Result<Pieces<'a>, Error> {
    let (chunks, start, end) = match payload {
        OutboundChunks::Single(chunk) => (slice::from_ref(chunk), 0, chunk.len()),
        OutboundChunks::Multiple { chunks, start, end } => (*chunks, *start, *end),
    };
    let held = chunks.iter().fold(0usize, |sum, chunk| sum.saturating_add(chunk.len()));
    if start > end || end > held || end - start > MAX_FRAGMENT_LEN {
        return Err(Error::EncryptError);
    }
    Ok(Pieces { chunks, start, end, last })
}

/// Stands in for a key or IV of the wrong length, where rustls leaves no way to report one.
struct Refuse;

impl MessageEncrypter for Refuse {
    fn encrypt(
        &mut self,
        _msg: OutboundPlainMessage<'_>,
        _seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len
    }
}

impl MessageDecrypter for Refuse {
    fn decrypt<'a>(
        &mut self,
        _msg: InboundOpaqueMessage<'a>,
        _seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}

/// Bytes of a write IV (RFC 9846 section 5.3, RFC 7905 section 2, RFC 9001 section 5.1).
const IV_LEN: usize = 12;

/// The longest plaintext of one record (RFC 9846 section 5.1, RFC 5246 section 6.2.1).
const MAX_FRAGMENT_LEN: usize = 1 << 14;
