//! A [rustls] `CryptoProvider` whose ChaCha20-Poly1305 runs on SIMD code of its own, over any base provider.
#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod aead;
mod backend;
mod chacha20;
mod isa;
mod kernel;
mod poly1305;

pub use backend::{Backend, BackendError};
