//! The messages that a comparison runs on: the same buffers for every implementation.

use core::hint::black_box;

use super::{Nonce, Peer};
use crate::harness::{Entry, sample};

/// A TLS 1.3 record's additional data is this long.
pub(crate) const AAD: [u8; 5] = [23, 3, 3, 0, 0];
pub(crate) const KEY: [u8; 32] = [0x42; 32];

/// As many messages of one length as stay in the first-level cache together, up to 128.
///
/// An open destroys its input, so each batch opens messages that were copied in before it,
/// untimed; a seal runs on the same buffers, so that the two compare.
pub(crate) struct Slots {
    len: usize,
    pub(crate) calls: usize,
    stride: usize,
    start: usize,
    /// The in-place buffers, each with 16 bytes for a tag behind it; outputs of a gather.
    text: Vec<u8>,
    /// The plaintexts that a gather reads, half a page away from its outputs modulo 4096.
    source: Vec<u8>,
    source_start: usize,
    sealed: Vec<u8>,
    tags: Vec<[u8; 16]>,
}

impl Slots {
    /// Messages of `len` bytes, sealed by `peer`.
    pub(crate) fn new<P: Peer>(len: usize, peer: &mut P) -> Self {
        const CACHED: usize = 8192;
        let calls = (CACHED / len.max(1)).clamp(1, 128);
        let stride = (len + 16).next_multiple_of(64);
        let text = vec![0; calls * stride + 4096];
        let source: Vec<u8> = (0..calls * stride + 8192).map(|i| (i % 251) as u8).collect();
        let start = text.as_ptr().align_offset(4096);
        let source_start = source.as_ptr().align_offset(4096) + 2048;
        let mut sealed = source[source_start..source_start + calls * stride].to_vec();
        let mut nonces = Nonces::default();
        let tags = (0..calls).map(|i| {
            let slot = &mut sealed[i * stride..i * stride + len];
            peer.seal(nonces.next(), &AAD, slot)
        });
        let tags = tags.collect();
        Self { len, calls, stride, start, text, source, source_start, sealed, tags }
    }

    /// `peer` sealing in place, once it has passed [`Self::check`].
    pub(crate) fn seal_entry<P: Peer>(&mut self, name: &str, mut peer: P) -> Entry<Self> {
        self.check(name, &mut peer);
        let run = move |slots: &mut Self| {
            sample(
                slots,
                slots.calls,
                |_| (),
                |slots| {
                    slots.each(|nonce, text, _| black_box(peer.seal(nonce, &AAD, text)));
                },
            )
        };
        Entry { name: name.into(), run: Box::new(run) }
    }

    /// `peer` opening in place, once it has passed [`Self::check`].
    pub(crate) fn open_entry<P: Peer>(&mut self, name: &str, mut peer: P) -> Entry<Self> {
        self.check(name, &mut peer);
        let run = move |slots: &mut Self| {
            sample(slots, slots.calls, Self::refresh, |slots| {
                slots.each(|nonce, text, tag| assert!(peer.open(nonce, &AAD, text, tag)));
            })
        };
        Entry { name: name.into(), run: Box::new(run) }
    }

    /// `peer` setting up a key and sealing once with it.
    pub(crate) fn new_entry<P: Peer>(&mut self, name: &str, mut peer: P) -> Entry<Self> {
        self.check(name, &mut peer);
        let run = move |slots: &mut Self| {
            sample(
                slots,
                slots.calls,
                |_| (),
                |slots| {
                    slots.each(|nonce, text, _| {
                        peer.rekey(black_box(&KEY));
                        black_box(peer.seal(nonce, &AAD, text))
                    });
                },
            )
        };
        Entry { name: name.into(), run: Box::new(run) }
    }

    /// Puts the sealed messages back.
    fn refresh(&mut self) {
        self.text[self.start..self.start + self.sealed.len()].copy_from_slice(&self.sealed);
    }

    /// Calls `f` with nonce, in-place buffer and tag of every message.
    #[inline]
    fn each<T>(&mut self, mut f: impl FnMut(&Nonce, &mut [u8], &[u8; 16]) -> T) {
        let mut nonces = Nonces::default();
        let slots = self.text[self.start..].chunks_exact_mut(self.stride);
        for (slot, tag) in slots.zip(&self.tags) {
            f(nonces.next(), &mut slot[..self.len], tag);
        }
    }

    /// Calls `seal` with nonce, plaintext and output (16 bytes longer) of every message.
    #[inline]
    pub(crate) fn gather(&mut self, mut seal: impl FnMut(&Nonce, &[u8], &mut [u8])) {
        let mut nonces = Nonces::default();
        let sources = self.source[self.source_start..].chunks_exact(self.stride);
        let outs = self.text[self.start..].chunks_exact_mut(self.stride).take(self.calls);
        for (out, source) in outs.zip(sources) {
            seal(nonces.next(), &source[..self.len], &mut out[..self.len + 16]);
        }
    }

    /// Panics unless `peer` seals and opens these messages as the peer that made them did.
    fn check<P: Peer>(&mut self, name: &str, peer: &mut P) {
        self.gather(|nonce, source, out| {
            let (text, out_tag) = out.split_at_mut(source.len());
            text.copy_from_slice(source);
            out_tag.copy_from_slice(&peer.seal(nonce, &AAD, text));
        });
        let mut nonces = Nonces::default();
        for (i, tag) in self.tags.iter().enumerate() {
            let slot = &mut self.text[self.start + i * self.stride..][..self.len + 16];
            let sealed = &self.sealed[i * self.stride..][..self.len];
            assert!(slot[..self.len] == *sealed, "{name}: other ciphertext");
            assert!(slot[self.len..] == *tag, "{name}: other tag");
            let nonce = nonces.next();
            let slot = &mut slot[..self.len];
            assert!(peer.open(nonce, &AAD, slot, tag), "{name}: refuses its own message");
            let source = &self.source[self.source_start + i * self.stride..][..self.len];
            assert!(slot == source, "{name}: other plaintext");
            let mut forged = *tag;
            forged[15] ^= 0x80;
            assert!(!peer.open(nonce, &AAD, slot, &forged), "{name}: accepts a forged message");
        }
    }
}

/// The nonces of a connection: IV xor sequence number (RFC 9846 section 5.3).
#[derive(Default)]
struct Nonces {
    sequence: u64,
    nonce: Nonce,
}

impl Nonces {
    /// Written as a record layer does, with one 4-byte and one 8-byte store just before the call:
    /// code that then loads it in one piece waits for both stores.
    #[inline]
    fn next(&mut self) -> &Nonce {
        const IV: (u32, u64) = (0x0403_0201, 0x0c0b_0a09_0807_0605);
        self.nonce[..4].copy_from_slice(&black_box(IV.0).to_ne_bytes());
        self.nonce[4..].copy_from_slice(&(black_box(IV.1) ^ self.sequence.to_be()).to_ne_bytes());
        self.sequence += 1;
        black_box(&self.nonce)
    }
}
