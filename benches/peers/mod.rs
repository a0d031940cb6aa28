//! The implementations to compare, ours among them, behind one trait that costs no call.
//!
//! Each is used as its documentation tells a user who cares for speed: key set up once, in place,
//! detached tag. libcrux and orion have no in-place call: their output is copied back, under one
//! percent of their time.
#![allow(dead_code, reason = "every benchmark uses a part")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod dynamic;
pub(crate) mod slots;

use chacha20poly1305::{AeadInPlace, KeyInit};
use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Tag};

pub(crate) type Key = [u8; 32];
pub(crate) type Nonce = [u8; 12];

/// One implementation holding one key. Nothing here fails on lengths that a benchmark uses.
pub(crate) trait Peer: Sized + 'static {
    fn new(key: &Key) -> Self;
    /// Sets up `key` as a user would for a new connection.
    fn rekey(&mut self, key: &Key) {
        *self = Self::new(key);
    }
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16];
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool;
}

/// Ours on one backend.
pub(crate) struct Ours(pub(crate) ChaCha20Poly1305);

impl Ours {
    pub(crate) fn on(backend: Backend, key: &Key) -> Self {
        Self(ChaCha20Poly1305::with_backend(key, backend))
    }
}

impl Peer for Ours {
    fn new(key: &Key) -> Self {
        Self(ChaCha20Poly1305::new(key))
    }

    fn rekey(&mut self, key: &Key) {
        *self = Self::on(self.0.backend(), key);
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        self.0.seal_in_place(nonce, aad, in_out).expect("a length in range").into()
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        self.0.open_in_place(nonce, aad, in_out, &Tag::from(*tag)).is_ok()
    }
}

pub(crate) struct Ring(ring::aead::LessSafeKey);

impl Peer for Ring {
    fn new(key: &Key) -> Self {
        let key = ring::aead::UnboundKey::new(&ring::aead::CHACHA20_POLY1305, key);
        Self(ring::aead::LessSafeKey::new(key.expect("32 bytes")))
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let nonce = ring::aead::Nonce::assume_unique_for_key(*nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, ring::aead::Aad::from(aad), in_out);
        tag.expect("a length in range").as_ref().try_into().expect("16 bytes")
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        let nonce = ring::aead::Nonce::assume_unique_for_key(*nonce);
        let (aad, tag) = (ring::aead::Aad::from(aad), ring::aead::Tag::from(*tag));
        self.0.open_in_place_separate_tag(nonce, aad, tag, in_out, 0..).is_ok()
    }
}

pub(crate) struct AwsLc(aws_lc_rs::aead::LessSafeKey);

impl Peer for AwsLc {
    fn new(key: &Key) -> Self {
        let key = aws_lc_rs::aead::UnboundKey::new(&aws_lc_rs::aead::CHACHA20_POLY1305, key);
        Self(aws_lc_rs::aead::LessSafeKey::new(key.expect("32 bytes")))
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let nonce = aws_lc_rs::aead::Nonce::from(nonce);
        let aad = aws_lc_rs::aead::Aad::from(aad);
        let tag = self.0.seal_in_place_separate_tag(nonce, aad, in_out);
        tag.expect("a length in range").as_ref().try_into().expect("16 bytes")
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        let nonce = aws_lc_rs::aead::Nonce::from(nonce);
        let aad = aws_lc_rs::aead::Aad::from(aad);
        self.0.open_in_place_separate_tag(nonce, aad, tag, in_out).is_ok()
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) struct Graviola(graviola::aead::ChaCha20Poly1305);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Graviola {
    /// graviola refuses to run on a CPU without these.
    pub(crate) fn runs_here() -> bool {
        #[cfg(target_arch = "x86_64")]
        return is_x86_feature_detected!("aes")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("adx");
        #[cfg(target_arch = "aarch64")]
        return std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull")
            && std::arch::is_aarch64_feature_detected!("sha2");
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl Peer for Graviola {
    fn new(key: &Key) -> Self {
        Self(graviola::aead::ChaCha20Poly1305::new(*key))
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        self.0.encrypt(nonce, aad, in_out, &mut tag);
        tag
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        self.0.decrypt(nonce, aad, in_out, tag).is_ok()
    }
}

pub(crate) struct RustCrypto(chacha20poly1305::ChaCha20Poly1305);

impl Peer for RustCrypto {
    fn new(key: &Key) -> Self {
        Self(chacha20poly1305::ChaCha20Poly1305::new(key.into()))
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let tag = self.0.encrypt_in_place_detached(nonce.into(), aad, in_out);
        tag.expect("a length in range").into()
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        self.0.decrypt_in_place_detached(nonce.into(), aad, in_out, tag.into()).is_ok()
    }
}

pub(crate) struct Libcrux {
    key: Key,
    out: Vec<u8>,
}

impl Peer for Libcrux {
    fn new(key: &Key) -> Self {
        Self { key: *key, out: Vec::new() }
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        self.out.resize(in_out.len(), 0);
        let (mut tag, out) = ([0; 16], &mut self.out);
        libcrux_chacha20poly1305::encrypt_detached(&self.key, in_out, out, &mut tag, aad, nonce)
            .expect("a length in range");
        in_out.copy_from_slice(out);
        tag
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        self.out.resize(in_out.len(), 0);
        let out = &mut self.out;
        let opened =
            libcrux_chacha20poly1305::decrypt_detached(&self.key, out, in_out, tag, aad, nonce);
        let ok = opened.is_ok();
        in_out.copy_from_slice(out);
        ok
    }
}

pub(crate) struct Orion {
    key: orion::hazardous::aead::chacha20poly1305::SecretKey,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Peer for Orion {
    fn new(key: &Key) -> Self {
        let key = orion::hazardous::aead::chacha20poly1305::SecretKey::from_slice(key);
        Self { key: key.expect("32 bytes"), buffer: Vec::new(), out: Vec::new() }
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let nonce = orion::hazardous::aead::chacha20poly1305::Nonce::from(*nonce);
        let out = &mut self.out;
        out.resize(in_out.len() + 16, 0);
        orion::hazardous::aead::chacha20poly1305::seal(&self.key, &nonce, in_out, Some(aad), out)
            .expect("a length in range");
        let (text, tag) = out.split_at(in_out.len());
        in_out.copy_from_slice(text);
        tag.try_into().expect("16 bytes")
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        let nonce = orion::hazardous::aead::chacha20poly1305::Nonce::from(*nonce);
        self.buffer.clear();
        self.buffer.extend_from_slice(in_out);
        self.buffer.extend_from_slice(tag);
        orion::hazardous::aead::chacha20poly1305::open(
            &self.key,
            &nonce,
            &self.buffer,
            Some(aad),
            in_out,
        )
        .is_ok()
    }
}
