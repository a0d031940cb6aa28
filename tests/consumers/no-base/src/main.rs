//! No base feature and no base crate: a third party's provider, reduced to what wrapping touches.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::hmac::{Hmac, Key};
use rustls::crypto::tls13::HkdfUsingHmac;
use rustls::crypto::{
    CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{
    CipherSuite, CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion,
    SupportedCipherSuite, Tls13CipherSuite,
};
use std::sync::Arc;

fn main() {
    let theirs = CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(&THEIRS)],
        kx_groups: Vec::new(),
        signature_verification_algorithms: WebPkiSupportedAlgorithms { all: &[], mapping: &[] },
        secure_random: &Absent,
        key_provider: &Absent,
    };
    let ours = rustls_chapoly::over(theirs).cipher_suites[0].tls13().unwrap();
    assert!(ours.quic.is_some());

    // Theirs would panic.
    let (key, iv) = ([1; 32], [2; 12]);
    let mut encrypter = ours.aead_alg.encrypter(key.into(), iv.into());
    let mut decrypter = ours.aead_alg.decrypter(key.into(), iv.into());
    let msg = OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_2,
        payload: OutboundChunks::Single(b"text"),
    };
    let record = encrypter.encrypt(msg, 0).unwrap();
    let mut payload = record.payload.as_ref().to_vec();
    let msg = InboundOpaqueMessage::new(record.typ, record.version, &mut payload);
    assert_eq!(decrypter.decrypt(msg, 0).unwrap().payload, b"text");

    assert!(CryptoProvider::get_default().is_none());
}

static THEIRS: Tls13CipherSuite = Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        hash_provider: &Absent,
        confidentiality_limit: u64::MAX,
    },
    hkdf_provider: &HkdfUsingHmac(&Absent),
    aead_alg: &Absent,
    quic: None,
};

/// Everything that a provider has and this program never reaches.
#[derive(Debug)]
struct Absent;

impl SecureRandom for Absent {
    fn fill(&self, _buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        Err(GetRandomFailed)
    }
}

impl KeyProvider for Absent {
    fn load_private_key(&self, _key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("no keys here".into()))
    }
}

impl Hash for Absent {
    fn start(&self) -> Box<dyn Context> {
        unreachable!()
    }
    fn hash(&self, _data: &[u8]) -> Output {
        unreachable!()
    }
    fn output_len(&self) -> usize {
        32
    }
    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

impl Hmac for Absent {
    fn with_key(&self, _key: &[u8]) -> Box<dyn Key> {
        unreachable!()
    }
    fn hash_output_len(&self) -> usize {
        32
    }
}

impl Tls13AeadAlgorithm for Absent {
    fn encrypter(&self, _key: AeadKey, _iv: Iv) -> Box<dyn MessageEncrypter> {
        unreachable!()
    }
    fn decrypter(&self, _key: AeadKey, _iv: Iv) -> Box<dyn MessageDecrypter> {
        unreachable!()
    }
    fn key_len(&self) -> usize {
        32
    }
    fn extract_keys(
        &self,
        _key: AeadKey,
        _iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}
