//! What several of the AEAD's tests need: painted inputs, and one message sent through every
//! function of the API.
#![allow(dead_code)]

use std::env;

use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Error, Tag};

/// Whether the CPU is emulated, which `CHAPOLY_EMULATED` tells: the longest tests then take only a part
/// of their inputs, spread over all of them.
pub(crate) fn emulated() -> bool {
    env::var_os("CHAPOLY_EMULATED").is_some()
}

/// `len` bytes that repeat only after 251, a prime: blocks that are swapped or used twice show.
pub(crate) fn paint(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| ((i + usize::from(seed)) % 251) as u8).collect()
}

/// `N` painted bytes: a key or a nonce.
pub(crate) fn painted<const N: usize>(seed: u8) -> [u8; N] {
    *paint(N, seed).first_chunk().unwrap()
}

/// Every cut of `total` bytes that a list of pieces is likely to get wrong: one piece, n - 1 and 1
/// bytes, empty pieces at both ends and between, pieces around 64 bytes.
pub(crate) fn cuts(text: &[u8]) -> Vec<Vec<&[u8]>> {
    let n = text.len();
    let (front, back) = text.split_at(n - n.min(1));
    let (left, right) = text.split_at(n / 2);
    let mut cuts = vec![
        vec![text],
        vec![front, back],
        vec![&[], left, &[], &[], right, &[]],
        text.chunks(63).collect(),
        text.chunks(129).collect(),
    ];
    if n > 1 {
        cuts.push(vec![&text[..1], &text[1..n - 1], &text[n - 1..]]);
    }
    cuts
}

/// A message and what it must become.
pub(crate) struct Message<'a> {
    pub(crate) key: &'a [u8; 32],
    pub(crate) nonce: &'a [u8; 12],
    pub(crate) aad: &'a [u8],
    pub(crate) plaintext: &'a [u8],
    pub(crate) ciphertext: &'a [u8],
    pub(crate) tag: [u8; 16],
}

impl Message<'_> {
    /// Seals and opens through every function, on every backend.
    pub(crate) fn check(&self) {
        Backend::available().for_each(|backend| self.check_on(backend));
    }

    pub(crate) fn check_on(&self, backend: Backend) {
        let Self { nonce, aad, plaintext, ciphertext, .. } = *self;
        let what = format!("{backend}, {} bytes, {} of AAD", plaintext.len(), aad.len());
        let key = ChaCha20Poly1305::with_backend(self.key, backend);

        let mut text = plaintext.to_vec();
        let tag = key.seal_in_place(nonce, aad, &mut text).unwrap();
        assert!(text == ciphertext, "seal_in_place: {what}");
        assert_eq!(<[u8; 16]>::from(tag), self.tag, "tag of seal_in_place: {what}");

        key.open_in_place(nonce, aad, &mut text, &tag).expect(&what);
        assert!(text == plaintext, "open_in_place: {what}");

        text.fill(0xa5);
        key.open_into(nonce, aad, ciphertext, &tag, &mut text).expect(&what);
        assert!(text == plaintext, "open_into: {what}");

        for pieces in cuts(plaintext) {
            self.check_gather(&key, &pieces);
        }
    }

    /// Seals `pieces`, which together are the plaintext, between canaries.
    pub(crate) fn check_gather(&self, key: &ChaCha20Poly1305, pieces: &[&[u8]]) {
        let lens = || pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>();
        let n = self.ciphertext.len();
        let mut out = vec![0xa5; 64 + n + 16 + 64];
        key.seal_gather(self.nonce, self.aad, pieces, &mut out[64..64 + n + 16]).unwrap();
        let backend = key.backend();
        assert!(out[64..64 + n] == *self.ciphertext, "seal_gather: {backend}, {:?}", lens());
        assert!(out[64 + n..][..16] == self.tag, "tag of seal_gather: {backend}, {:?}", lens());
        assert!(
            out[..64] == [0xa5; 64] && out[64 + n + 16..] == [0xa5; 64],
            "seal_gather wrote outside its output: {backend}, {:?}",
            lens()
        );
    }
}

/// Asserts that both ways to open refuse this ciphertext and leave zeros behind.
pub(crate) fn refused(
    key: &ChaCha20Poly1305,
    nonce: &[u8; 12],
    aad: &[u8],
    ciphertext: &[u8],
    tag: [u8; 16],
) {
    let tag = Tag::from(tag);
    let mut text = ciphertext.to_vec();
    let verdict = key.open_in_place(nonce, aad, &mut text, &tag);
    assert_eq!(verdict, Err(Error::InvalidTag), "open_in_place: {:?}", key.backend());
    assert!(text.iter().all(|&b| b == 0), "open_in_place left bytes: {:?}", key.backend());

    text.fill(0xa5);
    let verdict = key.open_into(nonce, aad, ciphertext, &tag, &mut text);
    assert_eq!(verdict, Err(Error::InvalidTag), "open_into: {:?}", key.backend());
    assert!(text.iter().all(|&b| b == 0), "open_into left bytes: {:?}", key.backend());
}
