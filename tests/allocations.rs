//! What is allocated: one buffer per sealed record, of exactly its size, and nothing else.
#![cfg(feature = "rustls")]
#![allow(unsafe_code)]

mod support;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

use rustls::crypto::cipher::{InboundOpaqueMessage, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::ring;
use rustls::{ContentType, ProtocolVersion, SupportedCipherSuite};
use rustls_chapoly::aead::ChaCha20Poly1305;
use rustls_chapoly::{Backend, over, over_with_backend, with_chacha20};

use support::{chacha_only, paint};

/// The system's allocator; counts what each thread asks of it.
struct Counting;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    allocations: usize,
    bytes: usize,
    freed: usize,
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { allocations: 0, bytes: 0, freed: 0 }) };
}

// SAFETY: passes every call on to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(Count {
            allocations: COUNT.get().allocations + 1,
            bytes: COUNT.get().bytes + layout.size(),
            ..COUNT.get()
        });
        // SAFETY: the caller's promise is `System`'s condition.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        COUNT.set(Count { freed: COUNT.get().freed + layout.size(), ..COUNT.get() });
        // SAFETY: the caller's promise is `System`'s condition.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted<T>(run: impl FnOnce() -> T) -> (T, Count) {
    COUNT.set(Count::default());
    let result = run();
    (result, COUNT.get())
}

#[test]
fn one_allocation_per_sealed_record_and_none_to_open() {
    const KEY: [u8; 32] = [1; 32];
    const IV: [u8; 12] = [2; 12];
    let text = paint(16_384);
    for backend in Backend::available() {
        let provider = chacha_only(over_with_backend(ring::default_provider(), backend));
        assert_eq!(provider.cipher_suites.len(), 3);
        for suite in provider.cipher_suites {
            let (mut encrypter, mut decrypter) = match suite {
                SupportedCipherSuite::Tls13(suite) => (
                    suite.aead_alg.encrypter(KEY.into(), IV.into()),
                    suite.aead_alg.decrypter(KEY.into(), IV.into()),
                ),
                SupportedCipherSuite::Tls12(suite) => (
                    suite.aead_alg.encrypter(KEY.into(), &IV, &[]),
                    suite.aead_alg.decrypter(KEY.into(), &IV),
                ),
            };
            for len in (0..300).chain([1024, 1350, 4096, 16_383, 16_384]) {
                let (a, rest) = text[..len].split_at(len / 3);
                let (b, c) = rest.split_at(len / 3);
                let pieces = [a, b, &[], c];
                for payload in [OutboundChunks::Single(&text[..len]), OutboundChunks::new(&pieces)]
                {
                    let msg = OutboundPlainMessage {
                        typ: ContentType::ApplicationData,
                        version: ProtocolVersion::TLSv1_2,
                        payload,
                    };
                    let (record, count) = counted(|| encrypter.encrypt(msg, 4).unwrap());
                    let mut payload = record.payload.as_ref().to_vec();
                    const HEADER_LEN: usize = 5;
                    let bytes = HEADER_LEN + encrypter.encrypted_payload_len(len);
                    assert_eq!(count, Count { allocations: 1, bytes, freed: 0 });

                    let msg = InboundOpaqueMessage::new(record.typ, record.version, &mut payload);
                    let (opened, count) = counted(|| decrypter.decrypt(msg, 4).unwrap().payload);
                    assert_eq!(count, Count::default());
                    assert_eq!(opened, &text[..len]);
                }
                let mut forged = vec![0; len];
                let msg = InboundOpaqueMessage::new(
                    ContentType::ApplicationData,
                    ProtocolVersion::TLSv1_2,
                    &mut forged,
                );
                let (refused, count) = counted(|| decrypter.decrypt(msg, 4).is_err());
                assert_eq!((refused, count), (true, Count::default()));
            }
        }
    }
}

#[test]
fn packets_allocate_nothing() {
    for backend in Backend::available() {
        let provider = chacha_only(over_with_backend(ring::default_provider(), backend));
        let quic = provider.cipher_suites[0].tls13().unwrap().quic.unwrap();
        let key = quic.packet_key([1; 32].into(), [2; 12].into());
        let header_key = quic.header_protection_key([3; 32].into());
        let mut packet = paint(1350);
        let (tag, count) =
            counted(|| key.encrypt_in_place_for_path(1, 2, b"header", &mut packet).unwrap());
        assert_eq!(count, Count::default());
        packet.extend_from_slice(tag.as_ref());
        let (opened, count) = counted(|| {
            key.decrypt_in_place_for_path(1, 2, b"header", &mut packet).map(<[u8]>::len)
        });
        assert_eq!((opened, count), (Ok(1350), Count::default()));
        let (masked, count) =
            counted(|| header_key.encrypt_in_place(&[7; 16], &mut 0x40, &mut [0; 4]));
        assert_eq!((masked, count), (Ok(()), Count::default()));
    }
}

#[test]
fn the_bare_aead_allocates_nothing() {
    let text = paint(5000);
    let (mut sealed, mut opened) = (vec![0; text.len() + 16], vec![0; text.len()]);
    for backend in Backend::available() {
        for len in [0, 1, 64, 300, 1350, 5000] {
            let text = &text[..len];
            let (_, count) = counted(|| {
                let key = ChaCha20Poly1305::with_backend(&[1; 32], backend);
                let pieces = [&text[..len / 2], &text[len / 2..]];
                key.seal_gather(&[2; 12], b"aad", &pieces, &mut sealed[..len + 16]).unwrap();
                let (ciphertext, tag) = sealed[..len + 16].split_last_chunk_mut().unwrap();
                let tag = (*tag).into();
                key.open_into(&[2; 12], b"aad", ciphertext, &tag, &mut opened[..len]).unwrap();
                assert!(opened[..len] == *text);
                key.open_in_place(&[2; 12], b"aad", ciphertext, &tag).unwrap();
                assert!(key.seal_in_place(&[2; 12], b"aad", ciphertext).unwrap() == tag);
                key.open_in_place(&[3; 12], b"aad", ciphertext, &tag).unwrap_err();
            });
            assert_eq!(count, Count::default());
        }
    }
}

/// Suites live for ever, so a repeated call must find the first one's.
#[test]
fn wrapping_again_leaks_nothing() {
    let mut bare = ring::default_provider();
    bare.cipher_suites.retain(|suite| !format!("{suite:?}").contains("CHACHA20"));
    let wrap = || {
        drop(over(ring::default_provider()));
        drop(over(over(ring::default_provider())));
        for backend in Backend::available() {
            drop(over_with_backend(with_chacha20(bare.clone()), backend));
        }
    };
    wrap();
    let ((), count) = counted(wrap);
    assert!(count.allocations > 0);
    // `realloc` counts the old and the new size through `alloc` and `dealloc`.
    assert_eq!(count.bytes, count.freed);
}
