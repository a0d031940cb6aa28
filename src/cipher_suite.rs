//! The suites of [`default_provider`](crate::default_provider) as statics, named as in rustls.
//!
//! The AES-GCM suites are the base's own; the ChaCha20-Poly1305 suites run on
//! [`Backend::best`](crate::Backend::best).

#[cfg(feature = "tls12")]
use rustls::Tls12CipherSuite;
use rustls::{SupportedCipherSuite, Tls13CipherSuite};

#[cfg(feature = "aws-lc-rs")]
use rustls::crypto::aws_lc_rs::cipher_suite as base;
#[cfg(not(feature = "aws-lc-rs"))]
use rustls::crypto::ring::cipher_suite as base;

#[cfg(feature = "tls12")]
pub use base::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
};
pub use base::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384};

#[cfg(feature = "tls12")]
use crate::provider::tls12_suite;
use crate::provider::tls13_suite;
use crate::tls::Algorithm;

/// The TLS 1.3 suite `TLS_CHACHA20_POLY1305_SHA256` (RFC 9846 appendix B.4).
pub static TLS13_CHACHA20_POLY1305_SHA256: SupportedCipherSuite =
    SupportedCipherSuite::Tls13(&TLS13);

/// The TLS 1.2 suite `TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256` (RFC 7905).
#[cfg(feature = "tls12")]
pub static TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: SupportedCipherSuite =
    SupportedCipherSuite::Tls12(&ECDSA);

/// The TLS 1.2 suite `TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256` (RFC 7905).
#[cfg(feature = "tls12")]
pub static TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: SupportedCipherSuite =
    SupportedCipherSuite::Tls12(&RSA);

static ALGORITHM: Algorithm = Algorithm(None);

static TLS13: Tls13CipherSuite = match base::TLS13_CHACHA20_POLY1305_SHA256.tls13() {
    Some(suite) => tls13_suite(suite, None, &ALGORITHM),
    // in a constant, as the other panic below: it can only stop a build
    None => panic!("the base's TLS 1.3 suite is one"),
};

#[cfg(feature = "tls12")]
static ECDSA: Tls12CipherSuite = tls12(base::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256);

#[cfg(feature = "tls12")]
static RSA: Tls12CipherSuite = tls12(base::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256);

// (Called in constants alone.)
#[cfg(feature = "tls12")]
const fn tls12(suite: SupportedCipherSuite) -> Tls12CipherSuite {
    match suite {
        SupportedCipherSuite::Tls12(suite) => tls12_suite(suite, None, &ALGORITHM),
        _ => panic!("the base's TLS 1.2 suite is one"),
    }
}
