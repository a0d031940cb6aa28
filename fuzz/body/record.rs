//! Hostile TLS records: whatever rustls' own ring provider says about them, ours says too.
//!
//! A record is either the input itself, or it is authentic and holds the input as its inner plaintext:
//! padding without end, no content type, too long.

use core::iter;

use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, Nonce, OutboundChunks,
    OutboundPlainMessage, make_tls12_aad, make_tls13_aad,
};
use rustls::{CipherSuite, ContentType, Error, ProtocolVersion, SupportedCipherSuite};
use rustls_chapoly::aead::TAG_LEN;

use super::aead::ring_seal;
use super::{Input, pieces, providers};

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mode = input.byte();
    let record = Record {
        tls13: mode & 1 == 0,
        key: [input.byte(); 32],
        iv: input.array(),
        seq: u64::from_le_bytes(input.array()),
        typ: ContentType::from(input.byte()),
        version: ProtocolVersion::from(input.u16() as u16),
    };
    let authentic = mode & 2 == 0;
    let cuts: Vec<usize> = (0..input.byte() % 8).map(|_| input.u16()).collect();
    // the longest text that rustls passes on, and padding beyond the limit
    let zeros = input.u16() % (MAX_WIRE_LEN + 1);
    let times = 1 + usize::from(input.byte());
    let mut text = input.rest(times, MAX_WIRE_LEN - TAG_LEN);
    text.extend(iter::repeat_n(0, zeros.min(MAX_WIRE_LEN - TAG_LEN - text.len())));

    let payload = if authentic { record.authentic(&text) } else { text.clone() };
    text.truncate(MAX_FRAGMENT_LEN);

    let (peer, all_ours) = providers();
    let (expected_open, _) = record.open(peer, &payload);
    let expected_sealed = record.seal(peer, &text, &cuts);
    for (backend, ours) in all_ours {
        let (opened, left) = record.open(ours, &payload);
        assert_eq!(opened, expected_open, "{backend}");
        if opened == Err(Error::DecryptError) && left.len() >= TAG_LEN {
            let (text, _) = left.split_last_chunk::<TAG_LEN>().unwrap();
            assert!(text.iter().all(|&b| b == 0), "unauthenticated bytes stay, {backend}");
        }
        assert_eq!(record.seal(ours, &text, &cuts), expected_sealed, "{backend}");
    }
}

struct Record {
    tls13: bool,
    key: [u8; 32],
    iv: [u8; 12],
    seq: u64,
    typ: ContentType,
    version: ProtocolVersion,
}

/// Type, version and payload.
type Message = (ContentType, ProtocolVersion, Vec<u8>);

impl Record {
    /// The record whose inner plaintext is `inner`, whatever that is.
    fn authentic(&self, inner: &[u8]) -> Vec<u8> {
        let aad13 = make_tls13_aad(inner.len() + TAG_LEN);
        let aad12 = make_tls12_aad(self.seq, self.typ, self.version, inner.len());
        let aad = if self.tls13 { &aad13[..] } else { &aad12[..] };
        let nonce = Nonce::new(&Iv::from(self.iv), self.seq).0;
        let (ciphertext, tag) = ring_seal(&self.key, nonce, aad, inner);
        [&ciphertext[..], &tag].concat()
    }

    /// What the provider makes of a received record, and what it leaves in the buffer.
    fn open(&self, provider: &CryptoProvider, payload: &[u8]) -> (Result<Message, Error>, Vec<u8>) {
        let mut buffer = payload.to_vec();
        let message = InboundOpaqueMessage::new(self.typ, self.version, &mut buffer);
        let opened = self
            .decrypter(provider)
            .decrypt(message, self.seq)
            .map(|plain| (plain.typ, plain.version, plain.payload.to_vec()));
        (opened, buffer)
    }

    /// The record of `text` without its first and last byte, cut into pieces.
    fn seal(&self, provider: &CryptoProvider, text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let chunks = &pieces(text, cuts)[..];
        let payload = match text.len() {
            0 | 1 => OutboundChunks::new(chunks),
            n => OutboundChunks::Multiple { chunks, start: 1, end: n - 1 },
        };
        let message = OutboundPlainMessage { typ: self.typ, version: self.version, payload };
        self.encrypter(provider).encrypt(message, self.seq).unwrap().encode()
    }

    fn encrypter(&self, provider: &CryptoProvider) -> Box<dyn MessageEncrypter> {
        match self.suite(provider) {
            SupportedCipherSuite::Tls13(suite) => {
                suite.aead_alg.encrypter(AeadKey::from(self.key), Iv::from(self.iv))
            }
            SupportedCipherSuite::Tls12(suite) => {
                suite.aead_alg.encrypter(AeadKey::from(self.key), &self.iv, &[])
            }
        }
    }

    fn decrypter(&self, provider: &CryptoProvider) -> Box<dyn MessageDecrypter> {
        match self.suite(provider) {
            SupportedCipherSuite::Tls13(suite) => {
                suite.aead_alg.decrypter(AeadKey::from(self.key), Iv::from(self.iv))
            }
            SupportedCipherSuite::Tls12(suite) => {
                suite.aead_alg.decrypter(AeadKey::from(self.key), &self.iv)
            }
        }
    }

    fn suite(&self, provider: &CryptoProvider) -> SupportedCipherSuite {
        let name = match self.tls13 {
            true => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            false => CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        };
        let mut suites = provider.cipher_suites.iter();
        *suites.find(|suite| suite.suite() == name).unwrap()
    }
}

/// RFC 9846 section 5.1.
const MAX_FRAGMENT_LEN: usize = 1 << 14;

/// The payload of a TLS 1.2 record; rustls passes on no longer one.
const MAX_WIRE_LEN: usize = (1 << 14) + 2048;
