//! The feature `ring` alone.

#[path = "../../connection.rs"]
mod connection;
#[path = "../../default_provider.rs"]
mod default_provider;

use rustls::crypto::ring;
use rustls::{ClientConfig, NamedGroup};

fn main() {
    default_provider::check(ring::default_provider());
    let ours = rustls_chapoly::default_provider();
    assert_eq!(ours.kx_groups[0].name(), NamedGroup::X25519);
    // With one base in the program rustls chooses it by itself.
    let _ = ClientConfig::builder();
}
