//! K47, without a process default and with two bases switched on. A binary of its own, since a
//! default that another test sets would hide what is tested.
#![cfg(feature = "rustls")]

mod support;

use std::panic;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};

use support::{ECDSA, Pair, chacha_only, ours, transfer};

#[test]
fn an_explicit_provider_needs_no_default() {
    for ours in ours() {
        for version in [&TLS12, &TLS13] {
            let client = ECDSA.client(&chacha_only(ours.provider.clone()), version);
            let server = ECDSA.server(&ours.provider, version);
            let mut pair = Pair::connect(&Arc::new(client), &Arc::new(server));
            transfer(&mut pair.client, &mut pair.server, &[b"no default"]);
        }
    }
    assert!(CryptoProvider::get_default().is_none());
    // What makes this worth a test: here a builder without a provider cannot choose.
    assert!(panic::catch_unwind(ClientConfig::builder).is_err());
}
