//! What the fuzz targets do with their input: the same code runs the committed corpus as a test
//! (`tests/fuzz_corpus.rs`).
//!
//! Inputs are decoded by hand, byte by byte, so that a seed is easy to write and a finding to read.
#![allow(dead_code)]

use std::sync::LazyLock;

use rustls::crypto::{CryptoProvider, ring};
use rustls_chapoly::{Backend, over_with_backend};

pub(crate) mod aead;
pub(crate) mod quic;
pub(crate) mod record;

/// The peer, and ours on each backend.
pub(crate) fn providers() -> (&'static CryptoProvider, &'static [(Backend, CryptoProvider)]) {
    static PEER: LazyLock<CryptoProvider> = LazyLock::new(ring::default_provider);
    static OURS: LazyLock<Vec<(Backend, CryptoProvider)>> = LazyLock::new(|| {
        let ours = |backend| (backend, over_with_backend(PEER.clone(), backend));
        Backend::available().map(ours).collect()
    });
    (&PEER, &OURS)
}

/// A fuzzer's input, read from the front; it ends in zeros without end.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u16(&mut self) -> usize {
        usize::from(u16::from_le_bytes(self.array()))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let (front, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut bytes = [0; N];
        bytes[..front.len()].copy_from_slice(front);
        bytes
    }

    /// All that is left, `times` over, cut to `max` bytes: short inputs reach long loops.
    pub(crate) fn rest(self, times: usize, max: usize) -> Vec<u8> {
        let mut rest = self.0.repeat(times);
        rest.truncate(max);
        rest
    }
}

/// Cuts `text` at offsets made from `cuts`, which may be equal: then a piece is empty.
pub(crate) fn pieces<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    at.sort();
    let mut from = 0;
    let mut pieces = Vec::new();
    for to in at.into_iter().chain([text.len()]) {
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces
}
