//! Our feature `tls12` is off, but rustls' is on: the base's TLS 1.2 suites pass through.

#[path = "../../connection.rs"]
mod connection;

use core::ptr;

use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedCipherSuite};
use rustls_chapoly::{over, with_chacha20};

use connection::negotiate;

fn main() {
    let base = ring::default_provider();
    let ours = over(base.clone());
    assert_eq!(ours.cipher_suites.len(), base.cipher_suites.len());
    let mut passed = 0;
    for pair in ours.cipher_suites.iter().zip(&base.cipher_suites) {
        match pair {
            (SupportedCipherSuite::Tls12(ours), SupportedCipherSuite::Tls12(base)) => {
                assert!(ptr::eq(*ours, *base));
                passed += 1;
            }
            (SupportedCipherSuite::Tls13(ours), SupportedCipherSuite::Tls13(base)) => {
                let is_chacha = ours.common.suite == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
                assert_ne!(ptr::eq(*ours, *base), is_chacha);
            }
            _ => panic!("reordered: {pair:?}"),
        }
    }
    assert_eq!(passed, 6);

    let mut bare = base;
    bare.cipher_suites.retain(|suite| !format!("{suite:?}").contains("CHACHA20"));
    let added = with_chacha20(bare.clone()).cipher_suites.split_off(bare.cipher_suites.len());
    let [added] = added[..] else { panic!("{added:?}") };
    assert_eq!(added.suite(), CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);

    let only = |id| {
        let mut provider: CryptoProvider = ours.clone();
        provider.cipher_suites.retain(|suite| suite.suite() == id);
        provider
    };
    for (id, version) in [
        (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, &TLS13),
        (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, &TLS12),
    ] {
        assert_eq!(negotiate(only(id), version), id);
    }
}
