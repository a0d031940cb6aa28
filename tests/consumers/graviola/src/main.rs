//! Over rustls-graviola, which asserts AVX2: hence a package of its own.

#[path = "../../connection.rs"]
mod connection;

use rustls::CipherSuite;
use rustls::version::{TLS12, TLS13};
use rustls_chapoly::over;

use connection::negotiate;

fn main() {
    for (id, version) in [
        (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, &TLS13),
        (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, &TLS12),
    ] {
        let mut provider = over(rustls_graviola::default_provider());
        provider.cipher_suites.retain(|suite| suite.suite() == id);
        assert_eq!(negotiate(provider, version), id);
    }
}
