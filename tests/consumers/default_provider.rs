//! What `default_provider` and `cipher_suite` promise, whatever the base is.

use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedCipherSuite};
use rustls_chapoly::{cipher_suite, default_provider};

use crate::connection::negotiate;

pub fn check(base: CryptoProvider) {
    let ids = |provider: &CryptoProvider| {
        provider.cipher_suites.iter().map(SupportedCipherSuite::suite).collect::<Vec<_>>()
    };
    let ours = default_provider();
    assert_eq!(ids(&ours), ids(&base));
    assert_eq!(ours.kx_groups[0].name(), base.kx_groups[0].name());
    let aead = |suite: &SupportedCipherSuite| core::ptr::from_ref(suite.tls13().unwrap().aead_alg);
    let chacha = |provider: &CryptoProvider| {
        let mut suites = provider.cipher_suites.iter();
        *suites.find(|s| s.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256).unwrap()
    };
    assert!(!core::ptr::addr_eq(aead(&chacha(&ours)), aead(&chacha(&base))));
    assert!(!core::ptr::addr_eq(
        aead(&cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
        aead(&chacha(&base))
    ));

    // As statics, in a list of one's own.
    for (suite, version) in [
        (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, &TLS13),
        (cipher_suite::TLS13_AES_128_GCM_SHA256, &TLS13),
        (cipher_suite::TLS13_AES_256_GCM_SHA384, &TLS13),
        (cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, &TLS12),
        (cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, &TLS12),
        (cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, &TLS12),
    ] {
        let mut provider = default_provider();
        provider.cipher_suites = vec![suite];
        assert_eq!(negotiate(provider, version), suite.suite());
    }
    assert_eq!(
        cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256.suite(),
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
    );
}
