//! Composition of providers: what changes, what stays, and that wrapping again finds the same.
#![cfg(feature = "rustls")]

mod support;

use core::ptr;
use std::sync::Arc;
use std::thread;

use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, CipherSuiteCommon, SupportedCipherSuite, SupportedProtocolVersion,
    Tls13CipherSuite,
};
use rustls_chapoly::{
    Backend, chacha_first, over, over_with_backend, prefer_by_hardware, with_chacha20,
};

use support::{ECDSA, Pair, RSA, bases, is_chacha20, ours_over_ring};

/// The address of a suite: rustls compares suites by id alone.
fn addr(suite: &SupportedCipherSuite) -> usize {
    match suite {
        SupportedCipherSuite::Tls13(suite) => ptr::from_ref(*suite).addr(),
        SupportedCipherSuite::Tls12(suite) => ptr::from_ref(*suite).addr(),
    }
}

/// The addresses of all that a suite refers to: first the AEAD and QUIC, then the rest.
fn parts(suite: &SupportedCipherSuite) -> ([usize; 2], [usize; 3]) {
    fn thin<T: ?Sized>(part: &'static T) -> usize {
        ptr::from_ref(part).cast::<()>().addr()
    }
    match suite {
        SupportedCipherSuite::Tls13(suite) => (
            [thin(suite.aead_alg), suite.quic.map_or(0, thin)],
            [thin(suite.common.hash_provider), thin(suite.hkdf_provider), 0],
        ),
        SupportedCipherSuite::Tls12(suite) => (
            [thin(suite.aead_alg), 0],
            [thin(suite.common.hash_provider), thin(suite.prf_provider), thin(suite.sign)],
        ),
    }
}

fn ids(provider: &CryptoProvider) -> Vec<CipherSuite> {
    provider.cipher_suites.iter().map(SupportedCipherSuite::suite).collect()
}

fn addrs(provider: &CryptoProvider) -> Vec<usize> {
    provider.cipher_suites.iter().map(addr).collect()
}

fn without_chacha20(mut provider: CryptoProvider) -> CryptoProvider {
    provider.cipher_suites.retain(|suite| !is_chacha20(suite.suite()));
    provider
}

/// Proof that it is our code that runs: the AEAD and QUIC are other objects than the base's.
#[test]
fn over_replaces_the_aead_and_nothing_else() {
    for base in bases() {
        let base = base.provider;
        let ours = over(base.clone());
        assert_eq!(ids(&ours), ids(&base));
        let mut replaced = 0;
        for (ours, base) in ours.cipher_suites.iter().zip(&base.cipher_suites) {
            if !is_chacha20(ours.suite()) {
                assert_eq!(addr(ours), addr(base));
                continue;
            }
            replaced += 1;
            let ((our_aead, our_rest), (base_aead, base_rest)) = (parts(ours), parts(base));
            assert_eq!(our_rest, base_rest);
            assert_ne!(our_aead[0], base_aead[0]);
            assert_eq!(our_aead[1] != base_aead[1], ours.tls13().is_some());
            assert!(!ours.fips());
        }
        assert_eq!(replaced, 3);
        for (ours, base) in ours.kx_groups.iter().zip(&base.kx_groups) {
            assert!(ptr::addr_eq(*ours, *base));
        }
        assert_eq!(ours.kx_groups.len(), base.kx_groups.len());
        assert!(ptr::addr_eq(ours.secure_random, base.secure_random));
        assert!(ptr::addr_eq(ours.key_provider, base.key_provider));
        assert!(!ours.fips());
    }
}

#[test]
fn wrapping_again_finds_the_same_suites() {
    for base in bases() {
        let base = base.provider;
        let ours = over(base.clone());
        assert_eq!(addrs(&over(base.clone())), addrs(&ours));
        assert_eq!(addrs(&over(ours.clone())), addrs(&ours));
        for backend in Backend::available() {
            let direct = over_with_backend(base.clone(), backend);
            assert_eq!(addrs(&over_with_backend(ours.clone(), backend)), addrs(&direct));
            assert_eq!(addrs(&over_with_backend(direct.clone(), backend)), addrs(&direct));
            assert_eq!(addrs(&direct) == addrs(&ours), backend == Backend::best());
            assert_eq!(addrs(&over(direct)), addrs(&ours));
        }
    }
}

#[test]
fn threads_find_the_same_suites() {
    let wrap = || addrs(&with_chacha20(without_chacha20(ring::default_provider())));
    let found = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(wrap)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(found.iter().all(|addrs| *addrs == found[0]));
}

#[test]
fn with_chacha20_appends_what_is_missing() {
    for base in bases() {
        let full = over(base.provider.clone());
        assert_eq!(addrs(&with_chacha20(base.provider.clone())), addrs(&full));

        let bare = without_chacha20(base.provider);
        assert_eq!(addrs(&over(bare.clone())), addrs(&bare));
        let ours = with_chacha20(bare.clone());
        assert_eq!(addrs(&ours)[..bare.cipher_suites.len()], addrs(&bare));
        let added = &ours.cipher_suites[bare.cipher_suites.len()..];
        assert_eq!(
            added.iter().map(SupportedCipherSuite::suite).collect::<Vec<_>>(),
            [
                CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
                CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            ]
        );
        for suite in added {
            let built_in = full.cipher_suites.iter().find(|full| full.suite() == suite.suite());
            // Hash, HKDF or PRF and signature schemes are those of the base's own suite.
            assert_eq!(parts(suite).1, parts(built_in.unwrap()).1);
            let limit = match suite {
                SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
                SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
            };
            assert_eq!(limit, u64::MAX);
        }
        assert_eq!(addrs(&with_chacha20(ours.clone())), addrs(&ours));
        assert_eq!(addrs(&over(ours.clone())), addrs(&ours));
        let moved = over_with_backend(ours.clone(), Backend::available().last().unwrap());
        assert_eq!(ids(&moved), ids(&ours));
        assert_eq!(addrs(&over(moved)), addrs(&ours));
    }
}

/// No donor, no suite: TLS 1.2 only where the base has it.
#[test]
fn with_chacha20_needs_a_donor() {
    let mut base = without_chacha20(ring::default_provider());
    base.cipher_suites.retain(|suite| suite.tls13().is_some());
    let added =
        |base: &CryptoProvider| ids(&with_chacha20(base.clone())).split_off(ids(base).len());
    assert_eq!(added(&base), [CipherSuite::TLS13_CHACHA20_POLY1305_SHA256]);
    base.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_256_GCM_SHA384);
    assert_eq!(added(&base), []);
    base.cipher_suites.clear();
    assert_eq!(added(&base), []);
}

/// A third party's suite keeps its limit, and gains QUIC where it had none.
#[test]
fn over_a_third_partys_suite() {
    let SupportedCipherSuite::Tls13(ring) = ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256
    else {
        panic!("not TLS 1.3");
    };
    let theirs: &'static Tls13CipherSuite = Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: ring.common.suite,
            hash_provider: ring.common.hash_provider,
            confidentiality_limit: 1 << 40,
        },
        hkdf_provider: ring.hkdf_provider,
        aead_alg: ring.aead_alg,
        quic: None,
    }));
    let mut base = ring::default_provider();
    base.cipher_suites = vec![theirs.into()];
    let ours = over(base).cipher_suites[0].tls13().unwrap();
    assert_eq!(ours.common.confidentiality_limit, 1 << 40);
    assert!(ours.quic.is_some());
}

#[test]
fn chacha_first_is_a_stable_partition() {
    let base = ours_over_ring();
    let first = chacha_first(base.clone());
    let (mut expected, rest): (Vec<_>, Vec<_>) =
        ids(&base).into_iter().partition(|id| is_chacha20(*id));
    expected.extend(rest);
    assert_eq!(ids(&first), expected);
    assert_eq!(ids(&chacha_first(first)), expected);
}

#[test]
fn prefer_by_hardware_asks_the_cpu() {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let aes = std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let aes = std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    let aes = false;

    let base = ours_over_ring();
    let expected = if aes { base.clone() } else { chacha_first(base.clone()) };
    assert_eq!(addrs(&prefer_by_hardware(base)), addrs(&expected));
}

/// The order of a client counts; that of a rustls server only with `ignore_client_order`.
#[test]
fn who_decides_the_suite() {
    let plain = ours_over_ring();
    let first = chacha_first(plain.clone());
    let (chacha, aes) =
        (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, CipherSuite::TLS13_AES_256_GCM_SHA384);
    for (client, server, ignore_client_order, expected) in [
        (&plain, &plain, false, aes),
        (&first, &plain, false, chacha),
        (&plain, &first, false, aes),
        (&plain, &first, true, chacha),
    ] {
        let client = ECDSA.client(client, &TLS13);
        let mut server = ECDSA.server(server, &TLS13);
        server.ignore_client_order = ignore_client_order;
        let pair = Pair::connect(&Arc::new(client), &Arc::new(server));
        assert_eq!(pair.client.negotiated_cipher_suite().unwrap().suite(), expected);
    }
}

/// The appended suites carry connections, against a peer that has its own.
#[test]
fn with_chacha20_connects() {
    for base in bases() {
        let bare = without_chacha20(base.provider.clone());
        let ours = support::chacha_only(with_chacha20(bare));
        for (version, identity) in [(&TLS13, &*ECDSA), (&TLS12, &*ECDSA), (&TLS12, &*RSA)] {
            let connect = |client, server, version: &'static SupportedProtocolVersion| {
                let client = identity.client(client, version);
                let server = identity.server(server, version);
                let mut pair = Pair::connect(&Arc::new(client), &Arc::new(server));
                let negotiated = pair.server.negotiated_cipher_suite().unwrap().suite();
                assert!(is_chacha20(negotiated));
                support::transfer(&mut pair.client, &mut pair.server, &[b"text"]);
            };
            connect(&ours, &base.provider, version);
            connect(&support::chacha_only(base.provider.clone()), &ours, version);
        }
    }
}
