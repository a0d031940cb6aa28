//! K47, with a process default. A binary of its own, since that default is set once.
#![cfg(feature = "rustls")]

mod support;

use core::ptr;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::{ClientConfig, RootCertStore};
use rustls_chapoly::over;

use support::chacha_only;

#[test]
fn install_default_serves_builders_and_happens_once() {
    let ours = over(ring::default_provider());
    ours.clone().install_default().unwrap();
    assert!(over(aws_lc_rs::default_provider()).install_default().is_err());
    let installed = CryptoProvider::get_default().unwrap();

    let config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    assert!(Arc::ptr_eq(config.crypto_provider(), installed));
    // The same suite and not merely an equal one: rustls compares suites by id.
    let suite = |provider: &CryptoProvider| {
        ptr::from_ref(chacha_only(provider.clone()).cipher_suites[0].tls13().unwrap())
    };
    assert_eq!(suite(installed), suite(&ours));
}
