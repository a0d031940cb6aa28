//! Nothing is read or written outside the buffers (K11, K12, K13): each one in turn lies flush against
//! a page that faults, at either end, on every backend.
#![cfg(unix)]
#![allow(unsafe_code)]

mod common;

use core::{ptr, slice};

use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Error, TAG_LEN, Tag};

use crate::common::{paint, painted};

#[test]
fn in_place() {
    let mut text = Guarded::new();
    for (key, at, len) in all() {
        let text = text.slice(at, len);
        text.copy_from_slice(&paint(len, 1));
        let tag = key.seal_in_place(&painted(2), b"aad", text).unwrap();
        key.open_in_place(&painted(2), b"aad", text, &tag).unwrap();
        assert!(*text == paint(len, 1));
        // refusing wipes: no further than the buffer goes
        let refused = key.open_in_place(&painted(2), b"other", text, &tag);
        assert_eq!(refused, Err(Error::InvalidTag));
    }
}

/// Input and output against opposite pages, and against equal ones.
#[test]
fn from_buffer_to_buffer() {
    let (mut input, mut output) = (Guarded::new(), Guarded::new());
    for (key, at, len) in all() {
        for out_at in [End::Front, End::Back] {
            let text = input.slice(at, len);
            text.copy_from_slice(&paint(len, 1));
            let out = output.slice(out_at, len + TAG_LEN);
            key.seal_gather(&painted(2), b"aad", &[text], out).unwrap();

            let (ciphertext, tag) = out.split_at(len);
            let tag = Tag::from(*tag.first_chunk::<TAG_LEN>().unwrap());
            text.copy_from_slice(ciphertext);
            let out = output.slice(out_at, len);
            key.open_into(&painted(2), b"aad", text, &tag, out).unwrap();
            assert!(*out == paint(len, 1));
            let refused = key.open_into(&painted(2), b"other", text, &tag, out);
            assert_eq!(refused, Err(Error::InvalidTag));
        }
    }
}

/// Each of two pieces, cut where a tile straddles them, with the last one of 1, 17 or 65 bytes.
#[test]
fn pieces() {
    let mut pages = [Guarded::new(), Guarded::new()];
    let mut out = vec![0; LONGEST + TAG_LEN];
    for (key, at, len) in all() {
        for cut in [1, 17, 65, len / 2] {
            let Some(front) = len.checked_sub(cut) else { continue };
            let [first, last] = &mut pages;
            let (first, last) = (first.slice(at, front), last.slice(at, cut));
            first.copy_from_slice(&paint(front, 1));
            last.copy_from_slice(&paint(cut, 3));
            let out = &mut out[..len + TAG_LEN];
            key.seal_gather(&painted(2), b"aad", &[first, last], out).unwrap();

            let mut text = [&*first, last].concat();
            let tag = key.seal_in_place(&painted(2), b"aad", &mut text).unwrap();
            assert!(out[..len] == text && out[len..] == *tag.as_ref());
        }
    }
}

#[test]
fn aad() {
    let mut aad = Guarded::new();
    for (key, at, len) in all() {
        let aad = aad.slice(at, len);
        aad.copy_from_slice(&paint(len, 1));
        let mut text = [7; 20];
        let tag = key.seal_in_place(&painted(2), aad, &mut text).unwrap();
        key.open_in_place(&painted(2), aad, &mut text, &tag).unwrap();
        let mut out = [0; 20 + TAG_LEN];
        key.seal_gather(&painted(2), aad, &[&[7; 20]], &mut out).unwrap();
        assert_eq!(out[20..], *tag.as_ref());
    }
}

/// Key, nonce, and the tag to compare with: read as they are long.
#[test]
fn key_nonce_and_tag() {
    let [mut key, mut nonce, mut tag] = [Guarded::new(), Guarded::new(), Guarded::new()];
    for backend in Backend::available() {
        for (at, len) in [End::Front, End::Back].into_iter().flat_map(|at| LENS.map(|n| (at, n))) {
            let key: &mut [u8; 32] = key.slice(at, 32).try_into().unwrap();
            *key = painted(4);
            let nonce: &mut [u8; 12] = nonce.slice(at, 12).try_into().unwrap();
            *nonce = painted(5);
            let key = ChaCha20Poly1305::with_backend(key, backend);
            let mut text = paint(len, 1);
            let sealed = key.seal_in_place(nonce, b"", &mut text).unwrap();
            let place = tag.slice(at, size_of::<Tag>()).as_mut_ptr().cast::<Tag>();
            assert_eq!((size_of::<Tag>(), align_of::<Tag>()), (TAG_LEN, 1));
            // SAFETY: room for a tag, which needs no alignment
            unsafe { place.write(sealed) };
            // SAFETY: just written
            let tag = unsafe { &*place };
            key.open_in_place(nonce, b"", &mut text, tag).unwrap();
        }
    }
}

/// The guard pages themselves: a child that touches one dies of it, on either side.
#[test]
fn guards_fault() {
    for (at, offset) in [(End::Front, -1), (End::Back, 32)] {
        let mut pages = Guarded::new();
        let start = pages.slice(at, 32).as_mut_ptr();
        // SAFETY: the child of a process with threads may only call async-signal-safe functions: it
        // reads one byte and exits
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the page is mapped without access, and the fault is the point
            let byte = unsafe { start.wrapping_offset(offset).read_volatile() };
            // SAFETY: ends the child without running anything of the parent's
            unsafe { libc::_exit(i32::from(byte) & 1) };
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status), "the guard page was readable");
    }
}

/// Every backend, both ends, every length up to 300 and around every multiple of 64 that a kernel may
/// take at once.
fn all() -> impl Iterator<Item = (ChaCha20Poly1305, End, usize)> {
    let around = |n: usize| [n - 17, n - 16, n - 1, n, n + 1, n + 15, n + 16, n + 17];
    let tiles = (5..=17).chain([24, 32, 33, 40, 48, 64, 96, 128, 256]);
    let mut lens: Vec<usize> = (0..=300).chain(tiles.flat_map(|n| around(64 * n))).collect();
    lens.dedup();
    Backend::available().flat_map(move |backend| {
        let lens = lens.clone();
        [End::Front, End::Back].into_iter().flat_map(move |at| {
            let key = move || ChaCha20Poly1305::with_backend(&painted(1), backend);
            lens.clone().into_iter().map(move |len| (key(), at, len))
        })
    })
}

#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

/// Pages between two that fault.
struct Guarded {
    start: *mut u8,
}

impl Guarded {
    fn new() -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let len = PAGE + ROOM + PAGE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory
        let base = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        // SAFETY: the guard page is within the mapping
        let start = unsafe { base.byte_add(PAGE) };
        // SAFETY: the middle of the mapping just made
        let done = unsafe { libc::mprotect(start, ROOM, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(done, 0);
        Self { start: start.cast() }
    }

    /// `len` bytes that begin where the pages begin, or end where they end.
    fn slice(&mut self, at: End, len: usize) -> &mut [u8] {
        assert!(len <= ROOM);
        let offset = match at {
            End::Front => 0,
            End::Back => ROOM - len,
        };
        // SAFETY: within the mapping
        let start = unsafe { self.start.add(offset) };
        // SAFETY: `len` bytes from there are mapped, written as zeros by the system, and borrowed from
        // `self`
        unsafe { slice::from_raw_parts_mut(start, len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let base = self.start.wrapping_sub(PAGE).cast();
        // SAFETY: the whole mapping, which nobody borrows any more
        unsafe { libc::munmap(base, PAGE + ROOM + PAGE) };
    }
}

/// A multiple of every page size in use.
const PAGE: usize = 1 << 16;
const ROOM: usize = 1 << 16;
const LONGEST: usize = 256 * 64 + 17;
const LENS: [usize; 8] = [0, 1, 64, 200, 500, 1000, 1100, 4096];
