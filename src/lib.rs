//! A [rustls] `CryptoProvider` whose ChaCha20-Poly1305 runs on SIMD code of its own, over any base
//! provider.
//!
//! The base keeps everything else: key exchange, signatures, hashes, AES-GCM. Install it once,
//!
#![cfg_attr(feature = "rustls", doc = "```")]
#![cfg_attr(not(feature = "rustls"), doc = "```ignore")]
//! use rustls::crypto::aws_lc_rs;
//!
//! rustls_chapoly::over(aws_lc_rs::default_provider()).install_default().expect("the first");
//! let config = rustls::ClientConfig::builder();
//! ```
//!
//! or pass it to one configuration, here over ring:
//!
#![cfg_attr(feature = "rustls", doc = "```")]
#![cfg_attr(not(feature = "rustls"), doc = "```ignore")]
//! use std::sync::Arc;
//! use rustls::crypto::ring;
//!
//! let provider = Arc::new(rustls_chapoly::over(ring::default_provider()));
//! let config = rustls::ClientConfig::builder_with_provider(provider);
//! ```
//!
//! # Which function
//! | wanted | function |
//! |---|---|
//! | faster ChaCha20-Poly1305, nothing else changed | [`over`] |
//! | ChaCha20-Poly1305 on a base without it | [`with_chacha20`] |
//! | ChaCha20-Poly1305 preferred by a client, always | [`chacha_first`] |
//! | the same, only where the CPU has no AES instructions | [`prefer_by_hardware`] |
//! | a backend other than the fastest | [`over_with_backend`] |
//! | a base chosen by a feature of this crate | `default_provider`, `cipher_suite` |
//! | the AEAD alone, without rustls, `std` or `alloc` | [`aead`] |
//!
//! # Features
//! - `rustls` (default): the provider. Without it only [`aead`] and [`Backend`] exist.
//! - `tls12` (default): TLS 1.2 suites, for a base that has them.
//! - `std` (default, and part of `rustls`).
//! - `aws-lc-rs`, `ring`: `default_provider()` and `cipher_suite` over that base; aws-lc-rs wins.
//!   No base is on by default, since two bases in one program make rustls' own default ambiguous.
#![no_std]
#![cfg_attr(
    not(feature = "rustls"),
    allow(rustdoc::broken_intra_doc_links, reason = "the provider is not in this build")
)]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod aead;
mod backend;
mod chacha20;
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
pub mod cipher_suite;
mod isa;
mod kernel;
#[cfg(test)]
#[path = "../tests/oracle/mod.rs"]
mod oracle;
mod poly1305;
#[cfg(feature = "rustls")]
mod provider;
#[cfg(feature = "rustls")]
mod tls;

pub use backend::{Backend, BackendError};
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
pub use provider::default_provider;
#[cfg(feature = "rustls")]
pub use provider::{chacha_first, over, over_with_backend, prefer_by_hardware, with_chacha20};

/// The examples of the README are compiled and run.
#[cfg(all(doctest, feature = "rustls"))]
#[doc = include_str!("../README.md")]
struct Readme;
