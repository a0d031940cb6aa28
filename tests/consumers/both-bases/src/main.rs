//! Both base features: additive, and aws-lc-rs wins.

#[path = "../../connection.rs"]
mod connection;
#[path = "../../default_provider.rs"]
mod default_provider;

use std::panic;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, NamedGroup};

fn main() {
    default_provider::check(aws_lc_rs::default_provider());
    let ours = rustls_chapoly::default_provider();
    assert_eq!(ours.kx_groups[0].name(), NamedGroup::X25519MLKEM768);

    panic::set_hook(Box::new(|_| ()));
    assert!(panic::catch_unwind(ClientConfig::builder).is_err(), "rustls cannot choose");
    let _ = panic::take_hook();
    ours.install_default().expect("nothing is installed yet");
    let _ = ClientConfig::builder();
}
