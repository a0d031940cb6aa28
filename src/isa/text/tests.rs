//! The raw pointers: every byte is read once where it lies and written once where it belongs, and no
//! access beyond a length gets through.
//!
//! Under Miri (`cargo +nightly miri test isa::text`) the pieces are shorter, so that it ends.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::{Room, Source, Text, Window};

const LONGEST_PIECE: usize = if cfg!(miri) { 1 } else { 7 };

/// All cuts of five pieces of all lengths.
#[test]
fn gather_reads_any_cut_of_any_pieces() {
    let bytes: [u8; 64] = core::array::from_fn(|i| i as u8);
    let mut lens = [0; 5];
    loop {
        let mut rest = bytes.as_slice();
        let pieces = lens.map(|len| rest.split_off(..len).unwrap());
        let total: usize = lens.iter().sum();
        for start in 0..=total {
            for end in start..=total {
                let last = &rest[..(start + end) % 3];
                let mut expected = [0; 64];
                let len = end - start + last.len();
                expected[..end - start].copy_from_slice(&bytes[start..end]);
                expected[end - start..len].copy_from_slice(last);

                let mut out = [0; 64];
                let text = Text::gather(&pieces, start, end, last, &mut out[..len]);
                copy(text, 1 + (end - start) % 9);
                assert_eq!(out, expected, "{lens:?} {start}..{end}");
            }
        }
        // count on
        let Some(i) = lens.iter().position(|len| *len < LONGEST_PIECE) else { return };
        lens[..i].fill(0);
        lens[i] += 1;
    }
}

/// Whatever is asked for, nothing outside the pieces is read: the message is shorter then.
#[test]
fn gather_survives_cuts_that_are_not_there() {
    let pieces: [&[u8]; 3] = [b"abc", b"", b"defg"];
    for (start, end, expected) in [
        (0, usize::MAX, "abcdefg"),
        (5, usize::MAX, "fg"),
        (7, 9, ""),
        (8, 9, ""),
        (usize::MAX, usize::MAX, ""),
        (5, 2, ""),
        (usize::MAX, 0, ""),
    ] {
        let mut out = [0; 8];
        let mut text = Text::gather(&pieces, start, end, b"!", &mut out);
        while let Some(window) = text.some(8) {
            copy_window(&window);
        }
        let written = text.written();
        assert_eq!(&out[..written], std::format!("{expected}!").as_bytes(), "{start}..{end}");
    }
}

#[test]
fn whole_takes_only_what_lies_in_one_piece() {
    let pieces: [&[u8]; 3] = [&[1; 10], &[2; 100], &[3; 10]];
    let mut out = [0; 120];
    let mut text = Text::gather(&pieces, 0, 120, &[], &mut out);
    assert!(text.whole(11).is_none());
    copy_window(&text.whole(10).unwrap());
    assert_eq!(text.some(1).map(|window| copy_window(&window)), Some(1));
    assert!(text.whole(100).is_none());
    assert_eq!(text.whole(99).map(|window| copy_window(&window)), Some(99));
    assert_eq!(text.some(99).map(|window| copy_window(&window)), Some(10));
    assert!(text.some(1).is_none());
    assert_eq!(out.as_slice(), pieces.concat());
}

#[test]
fn a_text_in_place_is_read_before_it_is_written() {
    let bytes: [u8; 100] = core::array::from_fn(|i| i as u8);
    let mut text = bytes;
    let mut in_place = Text::in_place(&mut text);
    let before = in_place.piece();
    let window = in_place.whole(64).unwrap();
    let block: [u8; 16] = before.array(48);
    assert_eq!(window.xor(48, [0xff; 16]), block.map(|byte| !byte));
    // what was read from is what has been written to
    assert_eq!(before.array(48), block.map(|byte| !byte));
    assert_eq!(in_place.output().array(48), block.map(|byte| !byte));
    let rest = in_place.some(usize::MAX).unwrap();
    assert_eq!(rest.len(), 36);
    rest.xor(35, [1]);
    assert_eq!(text[..48], bytes[..48]);
    assert_eq!(text[64..99], bytes[64..99]);
    assert_eq!(text[99], bytes[99] ^ 1);
}

#[test]
fn blocks_are_filled_up_with_zeros() {
    let bytes: [u8; 40] = core::array::from_fn(|i| 0x80 + i as u8);
    for len in 0..=bytes.len() {
        let source = Source::from(&bytes[..len]);
        for at in 0..=len {
            let mut expected = [0; 16];
            let some = (len - at).min(16);
            expected[..some].copy_from_slice(&bytes[at..at + some]);
            assert_eq!(source.padded_block(at), expected, "{at} of {len}");
        }
    }
}

#[test]
fn nothing_is_reached_beyond_a_length() {
    let bytes = [0; 20];
    let source = Source::from(bytes.as_slice());
    for at in [5, 20, 21, usize::MAX - 15, usize::MAX] {
        refused(|| source.array::<16>(at));
    }
    for (from, to) in [(0, 21), (3, 2), (21, 21), (usize::MAX, 0)] {
        refused(|| source.range(from, to));
    }
    let part = source.range(4, 10);
    refused(|| part.array::<8>(0));
    refused(|| part.range(0, 7));

    let mut text = bytes;
    let window = Text::in_place(&mut text).whole(20).unwrap();
    for at in [5, 20, 21, usize::MAX - 15, usize::MAX] {
        refused(|| window.xor(at, [0; 16]));
    }
    let mut text = bytes;
    refused(|| Text::apart(&bytes, &mut text[..19]).whole(20).map(|window| window.len()));

    let mut room = Room::<[u8; 64], 4>::new();
    let mut stream = room.stream();
    stream.write(0, [1; 32]);
    for at in [17, 32, 33, usize::MAX] {
        refused(|| stream.array::<16>(at));
    }
    refused(|| stream.write(33, [1; 16]));
    stream.write(32, [2; 256 - 32]);
    refused(|| stream.write(256 - 15, [1; 16]));
    assert_eq!(stream.array(30), [1, 1, 2, 2]);
}

/// Copies a text in windows of at most `max` bytes, and sees that they are all of it.
fn copy(mut text: Text<'_>, max: usize) {
    let mut done = 0;
    while let Some(window) = text.some(max) {
        assert!((1..=max).contains(&window.len()));
        done += copy_window(&window);
        assert_eq!(text.written(), done);
    }
    assert_eq!(done, text.len());
}

fn copy_window(window: &Window<'_>) -> usize {
    for at in 0..window.len() {
        window.xor(at, [0]);
    }
    window.len()
}

fn refused<T>(access: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(access)).is_err());
}
