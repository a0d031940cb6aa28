//! The blocks of every backend, from rows and from tiles, against the block function of RFC 8439.

use std::string::String;
use std::vec::Vec;

use super::{
    Alone, BLOCK, ChaCha20, Pair, State, Tiles, few, few_blocks, head, row_blocks, tile_blocks,
};
use crate::Backend;
use crate::isa::Kernel;
use crate::isa::text::{Room, Stream, Text};
use crate::kernel::Operation;
use crate::oracle;
use crate::poly1305::Poly1305;

/// RFC 8439 section 2.3.2 and appendix A.1.
#[test]
fn rfc_8439_blocks() {
    let counting = core::array::from_fn(|i| i as u8);
    let last_byte = |byte| {
        let mut key = [0; 32];
        key[31] = byte;
        key
    };
    let second_byte = |byte| {
        let mut key = [0; 32];
        key[1] = byte;
        key
    };
    let nonce = [0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0];
    let nonce_2 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    for (key, nonce, counter, block) in [
        (
            counting,
            nonce,
            1,
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e\
             d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
        ),
        (
            [0; 32],
            [0; 12],
            0,
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
             da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
        ),
        (
            [0; 32],
            [0; 12],
            1,
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed\
             29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
        ),
        (
            last_byte(1),
            [0; 12],
            1,
            "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a\
             8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
        ),
        (
            second_byte(0xff),
            [0; 12],
            2,
            "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca\
             13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
        ),
        (
            [0; 32],
            nonce_2,
            0,
            "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7\
             8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
        ),
    ] {
        let hex = |block: &[u8]| block.iter().map(|byte| std::format!("{byte:02x}")).collect();
        for backend in Backend::available() {
            for Batch { name, counter: at, stream } in backend.run(Batches { key, nonce, counter })
            {
                if at == counter {
                    let first: String = hex(&stream[..BLOCK]);
                    assert_eq!(first, block, "{backend}, {name}");
                }
            }
        }
    }
}

/// K04, K05: the counter is a word, and each block of a batch has its own.
#[test]
fn k04_k05_counters_that_wrap() {
    let key = core::array::from_fn(|i| 0xc0 ^ i as u8);
    // the next word is all ones: a carry into it would go on to the one after
    let nonce = [0xff, 0xff, 0xff, 0xff, 4, 5, 6, 7, 8, 9, 10, 11];
    let counters = (0xffff_ffe0..=u32::MAX).chain(0x7fff_ffe0..=0x8000_0000).chain(0..=32);
    for counter in counters {
        check(key, nonce, counter);
    }
}

/// K04: the final addition of the counter carries out of its word. Where the counter is low, as in
/// every message, a random block does so once in 2^32 / counter.
#[test]
fn k04_final_additions_that_carry() {
    for (key, nonce, counter) in carrying_blocks() {
        let block = oracle::chacha20_block(&key, counter, &nonce);
        let sum = u32::from_le_bytes(*block[48..].first_chunk().unwrap());
        assert!(sum < counter, "does not carry");
        for place in 0..16 {
            check(key, nonce, counter.wrapping_sub(place));
        }
    }
}

/// Compares everything that makes blocks with the oracle.
fn check(key: [u8; 32], nonce: [u8; 12], counter: u32) {
    for backend in Backend::available() {
        for Batch { name, counter, stream } in backend.run(Batches { key, nonce, counter }) {
            let expected = oracle::chacha20(&key, counter, &nonce, &std::vec![0; stream.len()]);
            assert!(stream == expected, "{backend}, {name}, counter {counter:#x}");
        }
    }
}

/// A key, nonces and counters as in [`k04_final_additions_that_carry`].
///
/// They were searched for each counter by trying the numbers 0, 1, 2, ... as the nonce's first eight
/// bytes, its last four being the counter.
pub(crate) fn carrying_blocks() -> impl Iterator<Item = ([u8; 32], [u8; 12], u32)> {
    FOUND.into_iter().map(|(counter, number)| {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        nonce[8..].copy_from_slice(&counter.to_le_bytes());
        (core::array::from_fn(|i| i as u8), nonce, counter)
    })
}

const FOUND: [(u32, u64); 31] = [
    (2, 0x1_2ef9_7c8a),
    (3, 0x3f67_ea15),
    (4, 0x4650_eb78),
    (5, 0x965_6768),
    (6, 0x4da1_8bbd),
    (7, 0x1955_9b73),
    (8, 0x11e1_acf6),
    (9, 0x2616_ca35),
    (10, 0xea7_f10b),
    (11, 0x253_5878),
    (12, 0x1238_6d16),
    (13, 0x1348_7283),
    (14, 0x82_4d87),
    (15, 0xac0_72d4),
    (16, 0xc52_aa4d),
    (17, 0x33aa_a0f7),
    (18, 0x228_05ed),
    (19, 0x10f9_5e82),
    (20, 0xbcd_7440),
    (21, 0xd5_e3a0),
    (22, 0x161_6ee9),
    (23, 0x435_772b),
    (24, 0x435_f052),
    (25, 0x19b_7c88),
    (26, 0x245_a832),
    (27, 0x1200_2cff),
    (28, 0x1c35_e4fe),
    (29, 0x183f_90f0),
    (30, 0xb47_ddb5),
    (31, 0xbef_bcb8),
    (32, 0xbff_6c9e),
];

/// Everything that makes blocks, once.
struct Batches {
    key: [u8; 32],
    nonce: [u8; 12],
    counter: u32,
}

struct Batch {
    name: String,
    counter: u32,
    stream: Vec<u8>,
}

impl Operation for Batches {
    type Output = Vec<Batch>;

    fn on<I: ChaCha20 + Poly1305>(self, isa: I) -> Vec<Batch> {
        isa.enter(self)
    }
}

impl<I: ChaCha20> Kernel<I> for Batches {
    type Output = Vec<Batch>;

    fn run(self, isa: I) -> Vec<Batch> {
        let mut key = [0; 8];
        for (word, bytes) in key.iter_mut().zip(self.key.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let state = State { key: &key, nonce: (&self.nonce).into() };
        let counter = self.counter;
        let mut batches = Vec::new();
        let mut add = |name: String, counter, stream| {
            batches.push(Batch { name, counter, stream });
        };

        for (name, stream) in rows_and_tiles(isa, state, counter) {
            add(name, counter, stream);
        }
        for (name, stream) in rows_and_tiles(Pair(isa), state, counter) {
            add(std::format!("{name}, of a pair"), counter, stream);
        }

        let tiles = Tiles::new(state);
        let blocks = tile_blocks::<I>();
        for &sets in I::HEAD_SETS {
            let mut room = Room::<I::Word, 16>::new();
            let mut stream = room.stream();
            let (rows, tile) = head(isa, state, &tiles, sets, &mut stream);
            assert_first_rows(rows, &stream);
            let first = sets * row_blocks::<I>();
            add(std::format!("a head of {sets} sets"), 0, bytes(&stream, first));
            assert_eq!(tile.is_some(), I::HEAD_START);
            if let Some(mut tile) = tile {
                let mut room = Room::<I::Word, 16>::new();
                let mut stream = room.stream();
                tile.rounds(&mut Alone);
                tile.keep(&mut stream);
                let name = std::format!("a tile beside a head of {sets} sets");
                add(name, first as u32, bytes(&stream, blocks));
            }
        }

        for blocks in 1..=32 {
            add(std::format!("{blocks} in a row"), counter, in_a_row(isa, state, counter, blocks));
        }
        batches
    }
}

fn rows_and_tiles<I: ChaCha20>(isa: I, state: State<'_>, counter: u32) -> Vec<(String, Vec<u8>)> {
    let mut made = Vec::new();
    for blocks in 1..=4 * row_blocks::<I>() {
        let mut room = Room::<I::Word, 16>::new();
        let mut stream = room.stream();
        let rows = few(isa, state, counter, blocks, &[1, 2, 3, 4], &mut stream, &mut Alone);
        assert_first_rows(rows, &stream);
        made.push((std::format!("{blocks} from rows"), bytes(&stream, blocks)));
    }

    let tiles = Tiles::new(state);
    let blocks = tile_blocks::<I>();
    let mut room = Room::<I::Word, 16>::new();
    let mut stream = room.stream();
    let mut tile = tiles.begin(isa, counter);
    tile.rounds(&mut Alone);
    let rows = tile.keep(&mut stream);
    assert_first_rows(rows, &stream);
    made.push(("a tile kept".into(), bytes(&stream, blocks)));

    let mut text = std::vec![0; blocks * BLOCK];
    let window = Text::in_place(&mut text).whole(blocks * BLOCK).unwrap();
    let mut tile = tiles.begin(isa, counter);
    tile.rounds(&mut Alone);
    tile.xor(&window);
    made.push(("a tile applied".into(), text));
    made
}

fn assert_first_rows(rows: [[u64; 2]; 2], stream: &Stream<'_>) {
    let first = [0, 8, 16, 24].map(|at| u64::from_le_bytes(stream.array(at)));
    assert_eq!(rows.as_flattened(), first);
}

/// Tiles, then rows, as for the end of a message.
fn in_a_row<I: ChaCha20>(isa: I, state: State<'_>, mut counter: u32, blocks: usize) -> Vec<u8> {
    let tiles = Tiles::new(state);
    let mut made = Vec::new();
    while made.len() < blocks * BLOCK {
        let rest = blocks - made.len() / BLOCK;
        let mut room = Room::<I::Word, 16>::new();
        let mut stream = room.stream();
        if rest <= few_blocks::<I>() {
            few(isa, state, counter, rest, &[1, 2, 3, 4], &mut stream, &mut Alone);
            made.extend(bytes(&stream, rest));
        } else {
            let mut tile = tiles.begin(isa, counter);
            tile.rounds(&mut Alone);
            tile.keep(&mut stream);
            made.extend(bytes(&stream, tile_blocks::<I>()));
        }
        counter = counter.wrapping_add(tile_blocks::<I>() as u32);
    }
    made
}

fn bytes(stream: &Stream<'_>, blocks: usize) -> Vec<u8> {
    (0..blocks).flat_map(|i| stream.array::<BLOCK>(i * BLOCK)).collect()
}
