//! Composition of providers: a base's suites with our AEAD in place of its own. No cryptography.
//!
//! rustls wants suites that live for ever, so each one that is made here is kept and found again
//! by the suite it was made from: calling these functions repeatedly leaks nothing.

use core::ptr;
use std::boxed::Box;
use std::sync::{Mutex, PoisonError};
use std::vec::Vec;

#[cfg(feature = "tls12")]
use rustls::Tls12CipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite};

use crate::Backend;
use crate::tls::Algorithm;

/// The provider `base` with our AEAD in each of its ChaCha20-Poly1305 suites.
///
/// Adds, removes and reorders nothing. Hash, HKDF or PRF, key exchange and signatures stay the
/// base's. The AEAD runs on [`Backend::best`]. Doing it twice is doing it once. Where this crate's
/// feature `tls12` is off, TLS 1.2 suites are left to the base.
///
/// A TLS 1.3 suite can be used for QUIC afterwards even where the base's could not.
///
/// [`CryptoProvider::fips`] is false for the result if it has a ChaCha20 suite, which FIPS does
/// not approve.
pub fn over(base: CryptoProvider) -> CryptoProvider {
    over_with_backend(base, Backend::best())
}

/// As [`over`], on `backend`; suites that are ours already are moved to it.
pub fn over_with_backend(mut base: CryptoProvider, backend: Backend) -> CryptoProvider {
    for suite in base.cipher_suites.iter_mut().filter(|suite| is_chacha20(suite.suite())) {
        if let Some(ours) = with_our_aead(*suite, None, backend) {
            *suite = ours;
        }
    }
    base
}

/// As [`over`], and appends the ChaCha20-Poly1305 suites of rustls that `base` lacks.
///
/// This is apart from [`over`] because a base may lack them on purpose, as under FIPS. What a new
/// suite needs besides the AEAD comes from the base's AES-128-GCM suite of the same version and
/// key type; without that suite nothing is added, so TLS 1.2 is added only to a base that has it.
pub fn with_chacha20(base: CryptoProvider) -> CryptoProvider {
    let mut provider = over(base);
    for (id, donor) in DONORS {
        let find = |id| provider.cipher_suites.iter().find(|suite| suite.suite() == id);
        if find(id).is_some() {
            continue;
        }
        let ours = find(donor).and_then(|donor| with_our_aead(*donor, Some(id), Backend::best()));
        provider.cipher_suites.extend(ours);
    }
    provider
}

/// Moves the ChaCha20-Poly1305 suites before all others, keeping the order among each.
///
/// A client then prefers them. **A rustls server does not**: it follows the client's order unless
/// [`ServerConfig::ignore_client_order`](rustls::ServerConfig::ignore_client_order) is set.
pub fn chacha_first(mut provider: CryptoProvider) -> CryptoProvider {
    provider.cipher_suites.sort_by_key(|suite| !is_chacha20(suite.suite()));
    provider
}

/// [`chacha_first`] where the CPU has no AES instructions, else `provider` as it is.
///
/// With such instructions AES-GCM is faster than any ChaCha20-Poly1305; without them it is slower,
/// and hard to write in constant time.
pub fn prefer_by_hardware(provider: CryptoProvider) -> CryptoProvider {
    if has_aes() { provider } else { chacha_first(provider) }
}

/// [`over`] the default provider of aws-lc-rs (feature `aws-lc-rs`), else of ring (feature `ring`).
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
pub fn default_provider() -> CryptoProvider {
    #[cfg(feature = "aws-lc-rs")]
    use rustls::crypto::aws_lc_rs as base;
    #[cfg(not(feature = "aws-lc-rs"))]
    use rustls::crypto::ring as base;

    over(base::default_provider())
}

/// `suite`, under a new id if one is given, with our AEAD; `None` if we do not know its version.
fn with_our_aead(
    suite: SupportedCipherSuite,
    new_id: Option<CipherSuite>,
    backend: Backend,
) -> Option<SupportedCipherSuite> {
    Some(match suite {
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(
                TLS13.intern(suite, backend, |algorithm| tls13_suite(suite, new_id, algorithm)),
            )
        }
        #[cfg(feature = "tls12")]
        SupportedCipherSuite::Tls12(suite) => {
            SupportedCipherSuite::Tls12(
                TLS12.intern(suite, backend, |algorithm| tls12_suite(suite, new_id, algorithm)),
            )
        }
        // `Tls12` exists if anyone in the program turns on rustls' feature `tls12`.
        #[allow(unreachable_patterns)]
        _ => return None,
    })
}

/// `suite` with `algorithm`, under a new id if one is given.
pub(crate) const fn tls13_suite(
    suite: &Tls13CipherSuite,
    new_id: Option<CipherSuite>,
    algorithm: &'static Algorithm,
) -> Tls13CipherSuite {
    Tls13CipherSuite {
        common: common(&suite.common, new_id),
        hkdf_provider: suite.hkdf_provider,
        aead_alg: algorithm,
        quic: Some(algorithm),
    }
}

/// `suite` with `algorithm`, under a new id if one is given.
#[cfg(feature = "tls12")]
pub(crate) const fn tls12_suite(
    suite: &Tls12CipherSuite,
    new_id: Option<CipherSuite>,
    algorithm: &'static Algorithm,
) -> Tls12CipherSuite {
    Tls12CipherSuite {
        common: common(&suite.common, new_id),
        prf_provider: suite.prf_provider,
        kx: suite.kx,
        sign: suite.sign,
        aead_alg: algorithm,
    }
}

const fn common(base: &CipherSuiteCommon, new_id: Option<CipherSuite>) -> CipherSuiteCommon {
    let (suite, confidentiality_limit) = match new_id {
        Some(id) => (id, CONFIDENTIALITY_LIMIT),
        None => (base.suite, base.confidentiality_limit),
    };
    CipherSuiteCommon { suite, hash_provider: base.hash_provider, confidentiality_limit }
}

fn is_chacha20(id: CipherSuite) -> bool {
    matches!(
        id,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
            | CipherSuite::TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256
    )
}

fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The suites of type `S` made so far.
struct Interner<S: 'static>(Mutex<Vec<Made<S>>>);

struct Made<S: 'static> {
    /// The suite, never one of ours, that this was made from.
    source: &'static S,
    backend: Backend,
    ours: &'static S,
}

impl<S> Interner<S> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Our suite for `suite`, which may be one of ours, and `backend`.
    ///
    /// Two ids are never made from one source: a ChaCha20 suite keeps its id, and an AES suite
    /// is the donor of one only.
    fn intern(
        &self,
        suite: &'static S,
        backend: Backend,
        make: impl FnOnce(&'static Algorithm) -> S,
    ) -> &'static S {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let source =
            made.iter().find(|made| ptr::eq(made.ours, suite)).map_or(suite, |made| made.source);
        if let Some(found) =
            made.iter().find(|made| ptr::eq(made.source, source) && made.backend == backend)
        {
            return found.ours;
        }
        let ours = Box::leak(Box::new(make(Box::leak(Box::new(Algorithm(Some(backend)))))));
        made.push(Made { source, backend, ours });
        ours
    }
}

static TLS13: Interner<Tls13CipherSuite> = Interner::new();
#[cfg(feature = "tls12")]
static TLS12: Interner<Tls12CipherSuite> = Interner::new();

/// The suites of [`with_chacha20`], and from which suite it takes what is not the AEAD.
const DONORS: [(CipherSuite, CipherSuite); 3] = [
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, CipherSuite::TLS13_AES_128_GCM_SHA256),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
];

/// Records that one key may protect: ChaCha20 has no limit that a sequence number can reach
/// (RFC 9846 section 5.5).
const CONFIDENTIALITY_LIMIT: u64 = u64::MAX;
