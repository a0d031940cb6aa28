//! The AEAD in a program without `std` and without an allocator: it would not link if the crate
//! needed either. Exit code 0 only if a message is sealed as RFC 8439 section 2.8.2 says, and opens.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Error};

#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    for backend in Backend::available() {
        if round_trip(backend).is_err() {
            return 1;
        }
    }
    0
}

fn round_trip(backend: Backend) -> Result<(), Error> {
    let key: [u8; 32] = core::array::from_fn(|i| 0x80 + i as u8);
    let aead = ChaCha20Poly1305::with_backend(&key, backend);
    let mut text = *TEXT;
    let tag = aead.seal_in_place(&NONCE, &AAD, &mut text)?;
    if tag.as_ref() != TAG {
        return Err(Error::InvalidTag);
    }
    aead.open_in_place(&NONCE, &AAD, &mut text, &tag)?;
    if text != *TEXT { Err(Error::InvalidTag) } else { Ok(()) }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    abort()
}

/// The precompiled `core` names this even where panics abort.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

// The C runtime calls `main`.
#[link(name = "c")]
unsafe extern "C" {
    safe fn abort() -> !;
}

const TEXT: &[u8; 114] = b"Ladies and Gentlemen of the class of '99: If I could offer you only \
    one tip for the future, sunscreen would be it.";
const NONCE: [u8; 12] = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
const AAD: [u8; 12] = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
const TAG: [u8; 16] = [
    0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60, 0x06, 0x91,
];
