//! Known answers: RFC 8439, Wycheproof, and long messages of our own, on every backend.
//!
//! The oracle that the other tests trust is held to the RFC here as well.

mod common;
mod oracle;

use std::collections::HashSet;
use std::{env, fs};

use rustls_chapoly::Backend;
use rustls_chapoly::aead::ChaCha20Poly1305;
use wycheproof::{TestResult, aead};

use crate::common::{Message, paint, painted, refused};

/// RFC 8439 sections 2.3.2 and A.1.
#[test]
fn oracle_chacha20_blocks() {
    for (key, counter, nonce, block) in BLOCKS {
        assert_eq!(oracle::chacha20_block(&array(key), *counter, &array(nonce)), array(block));
    }
}

/// RFC 8439 sections 2.5.2 and A.3.
#[test]
fn oracle_poly1305_tags() {
    let key = "85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b";
    let tag = oracle::poly1305(&array(key), b"Cryptographic Forum Research Group");
    assert_eq!(tag, array("a8061dc1305136c6c22b8baf0c0127a9"));
    for (key, message, tag) in POLY1305 {
        assert_eq!(oracle::poly1305(&array(key), &bytes(message)), array(tag));
    }
}

/// RFC 8439 sections 2.6.2 and A.4.
#[test]
fn oracle_one_time_keys() {
    for (key, nonce, one_time_key) in ONE_TIME_KEYS {
        assert_eq!(oracle::one_time_key(&array(key), &array(nonce)), array(one_time_key));
    }
}

/// RFC 8439 sections 2.8.2 and A.5.
#[test]
fn rfc_8439_aead() {
    for (key, nonce, aad, plaintext, ciphertext, tag) in AEAD {
        let (aad, ciphertext) = (bytes(aad), bytes(ciphertext));
        let (key, nonce, tag) = (array(key), array(nonce), array(tag));
        let oracle = oracle::seal(&key, &nonce, &aad, plaintext.as_bytes());
        assert_eq!(oracle, (ciphertext.clone(), tag));
        let (plaintext, ciphertext) = (plaintext.as_bytes(), &ciphertext);
        Message { key: &key, nonce: &nonce, aad: &aad, plaintext, ciphertext, tag }.check();
    }
}

#[test]
fn wycheproof() {
    let set = aead::TestSet::load(aead::TestName::ChaCha20Poly1305).unwrap();
    let mut ran = 0;
    for group in &set.test_groups {
        for test in &group.tests {
            // a nonce of another size cannot be passed to this API
            let Ok(nonce) = <&[u8; 12]>::try_from(&test.nonce[..]) else {
                assert_eq!(test.result, TestResult::Invalid);
                continue;
            };
            let key = test.key[..].try_into().unwrap();
            let tag = test.tag[..].try_into().unwrap();
            let (aad, plaintext, ciphertext) = (&test.aad, &test.pt, &test.ct);
            match test.result {
                TestResult::Invalid => Backend::available().for_each(|backend| {
                    let key = ChaCha20Poly1305::with_backend(key, backend);
                    refused(&key, nonce, aad, ciphertext, tag);
                }),
                _ => Message { key, nonce, aad, plaintext, ciphertext, tag }.check(),
            }
            ran += 1;
        }
    }
    assert!(ran > 250, "only {ran} tests");
}

/// Public vectors are too short for the wide loops (K06): our own lie around every multiple of every
/// plausible loop width, up to 64 KiB.
#[test]
fn long_messages_equal_the_oracle() {
    let key = painted(0x80);
    let mut lens: Vec<usize> = (0..=32).map(|i| i * 64).collect();
    lens.extend([3 << 10, 4 << 10, 5 << 10, 6 << 10, 8 << 10, 12 << 10, 16 << 10]);
    let mut lens: Vec<usize> = lens.iter().flat_map(|n| n.saturating_sub(1)..=n + 1).collect();
    lens.extend([1350, 16_400, 16_401, 65_535, 65_536]);
    for (i, len) in lens.into_iter().enumerate() {
        let nonce = painted(i as u8);
        let (aad, plaintext) = (&paint(i % 40, 7), &paint(len, i as u8));
        let (ciphertext, tag) = oracle::seal(&key, &nonce, aad, plaintext);
        let (key, nonce, ciphertext) = (&key, &nonce, &ciphertext);
        Message { key, nonce, aad, plaintext, ciphertext, tag }.check();
    }
}

/// K04: the last step of a block adds the starting state word by word. Where the counter's word wraps in
/// that sum, a 64-bit addition carries into the nonce's word. That is one block in 2^32 over its
/// counter, so these were searched: one for each counter modulo 16, the lane of a wide loop.
#[test]
fn counter_word_sums_that_wrap() {
    let key = painted(0x20);
    for (lane, (nonce, counter)) in WRAPPING_SUMS.iter().enumerate() {
        let nonce = [&u32::to_le_bytes(*nonce)[..], &[0; 8]].concat().try_into().unwrap();
        assert_eq!(counter % 16, lane as u32);
        let block = oracle::chacha20_block(&key, *counter, &nonce);
        let sum = u32::from_le_bytes(*block[48..].first_chunk().unwrap());
        assert!(sum < *counter, "this sum does not wrap");
        // in the last block, in the middle, and with the tail's loops behind it
        for blocks in [*counter, counter + 1, counter + 9, 2 * counter + 40] {
            let plaintext = &paint(64 * blocks as usize, 3);
            let (ciphertext, tag) = oracle::seal(&key, &nonce, b"", plaintext);
            let (key, nonce, ciphertext) = (&key, &nonce, &ciphertext);
            Message { key, nonce, aad: b"", plaintext, ciphertext, tag }.check();
        }
    }
}

/// K07, and a guard for every test that iterates over the backends: the CPU's flags, as the operating
/// system tells them (or `EXPECT_BACKENDS` names the backends), say which must be there.
#[test]
fn every_expected_backend_is_available() {
    let available: Vec<String> = Backend::available().map(|backend| backend.to_string()).collect();
    let expected = match env::var("EXPECT_BACKENDS") {
        Ok(names) => names.split(',').map(str::to_owned).collect(),
        Err(_) => expected_backends(),
    };
    assert_eq!(available, expected);
    assert_eq!(Backend::best().to_string(), expected[0]);
    for name in &expected {
        assert_eq!(name.parse::<Backend>().unwrap().to_string(), *name);
    }
}

/// The backends whose flags this CPU has, best first.
fn expected_backends() -> Vec<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let flags: HashSet<&str> = flags.split_whitespace().collect();
    NEEDS
        .iter()
        .filter(|(_, needs)| needs.split_whitespace().all(|flag| flags.contains(flag)))
        .map(|(name, _)| name.to_string())
        .collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

/// Backends, best first, and the flags of `/proc/cpuinfo` that each needs.
const NEEDS: &[(&str, &str)] = &[
    #[cfg(target_arch = "x86_64")]
    ("avx512", "avx512f avx512bw avx512vl avx512ifma avx512_vbmi2 bmi2"),
    #[cfg(target_arch = "x86_64")]
    ("avx2", "avx2 bmi2"),
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    ("ssse3", "ssse3"),
    ("portable", ""),
];

/// The nonce's first word, the counter.
#[rustfmt::skip]
const WRAPPING_SUMS: [(u32, u32); 16] = [
    (485_392, 160), (4_286_695, 209), (1_159_537, 210), (1_569_875, 67), (875_050, 244),
    (4_645_702, 117), (2_832_591, 150), (1_967_415, 39), (2_517_877, 88), (3_954_054, 41),
    (196_473, 74), (2_102_728, 203), (3_690_669, 188), (2_214_940, 157), (1_102_579, 142),
    (670_446, 95),
];

/// Key, nonce, AAD, plaintext, ciphertext, tag.
type AeadVector =
    (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const AEAD: &[AeadVector] = &[
    (
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
         future, sunscreen would be it.",
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e\
         8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c\
         9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d265\
         86cec64b6116",
        "1ae10b594f09e26a7e902ecbd0600691",
    ),
    (
        "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
        "000000000102030405060708",
        "f33388860000000000004e91",
        "Internet-Drafts are draft documents valid for a maximum of six months and may be updated, \
         replaced, or obsoleted by other documents at any time. It is inappropriate to use \
         Internet-Drafts as reference material or to cite them other than as \
         /\u{201c}work in progress./\u{201d}",
        "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb24c6cfc18\
         755d43eea09ee94e382d26b0bdb7b73c321b0100d4f03b7f355894cf332f830e710b97ce\
         98c8a84abd0b948114ad176e008d33bd60f982b1ff37c8559797a06ef4f0ef61c186324e\
         2b3506383606907b6a7c02b0f9f6157b53c867e4b9166c767b804d46a59b5216cde7a4e9\
         9040c5a40433225ee282a1b0a06c523eaf4534d7f83fa1155b0047718cbc546a0d072b04\
         b3564eea1b422273f548271a0bb2316053fa76991955ebd63159434ecebb4e466dae5a10\
         73a6727627097a1049e617d91d361094fa68f0ff77987130305beaba2eda04df997b714d\
         6c6f2c29a6ad5cb4022b02709b",
        "eead9d67890cbb22392336fea1851f38",
    ),
];

/// Key, counter, nonce, block.
#[rustfmt::skip]
const BLOCKS: &[(&str, u32, &str, &str)] = &[
    (
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        1,
        "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446\
         079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000000",
        0,
        "000000000000000000000000",
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c\
         5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000000",
        1,
        "000000000000000000000000",
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed29b72176\
         9ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000001",
        1,
        "000000000000000000000000",
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a8eca00bb\
         b4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        "00ff000000000000000000000000000000000000000000000000000000000000",
        2,
        "000000000000000000000000",
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca13b25aa2\
         6cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000000",
        0,
        "000000000000000000000002",
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c78a970e0e\
         955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
];

/// Key, message, tag.
#[rustfmt::skip]
const POLY1305: &[(&str, &str, &str)] = &[
    (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "000000000000000000000000000000000000000000000000000000000000000000000000\
         00000000000000000000000000000000000000000000000000000000",
        "00000000000000000000000000000000",
    ),
    (
        "0000000000000000000000000000000036e5f6b5c5e06070f0efca96227a863e",
        "416e79207375626d697373696f6e20746f20746865204945544620696e74656e64656420\
         62792074686520436f6e7472696275746f7220666f72207075626c69636174696f6e2061\
         7320616c6c206f722070617274206f6620616e204945544620496e7465726e65742d4472\
         616674206f722052464320616e6420616e792073746174656d656e74206d616465207769\
         7468696e2074686520636f6e74657874206f6620616e2049455446206163746976697479\
         20697320636f6e7369646572656420616e20224945544620436f6e747269627574696f6e\
         222e20537563682073746174656d656e747320696e636c756465206f72616c2073746174\
         656d656e747320696e20494554462073657373696f6e732c2061732077656c6c20617320\
         7772697474656e20616e6420656c656374726f6e696320636f6d6d756e69636174696f6e\
         73206d61646520617420616e792074696d65206f7220706c6163652c2077686963682061\
         72652061646472657373656420746f",
        "36e5f6b5c5e06070f0efca96227a863e",
    ),
    (
        "36e5f6b5c5e06070f0efca96227a863e00000000000000000000000000000000",
        "416e79207375626d697373696f6e20746f20746865204945544620696e74656e64656420\
         62792074686520436f6e7472696275746f7220666f72207075626c69636174696f6e2061\
         7320616c6c206f722070617274206f6620616e204945544620496e7465726e65742d4472\
         616674206f722052464320616e6420616e792073746174656d656e74206d616465207769\
         7468696e2074686520636f6e74657874206f6620616e2049455446206163746976697479\
         20697320636f6e7369646572656420616e20224945544620436f6e747269627574696f6e\
         222e20537563682073746174656d656e747320696e636c756465206f72616c2073746174\
         656d656e747320696e20494554462073657373696f6e732c2061732077656c6c20617320\
         7772697474656e20616e6420656c656374726f6e696320636f6d6d756e69636174696f6e\
         73206d61646520617420616e792074696d65206f7220706c6163652c2077686963682061\
         72652061646472657373656420746f",
        "f3477e7cd95417af89a6b8794c310cf0",
    ),
    (
        "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
        "2754776173206272696c6c69672c20616e642074686520736c6974687920746f7665730a\
         446964206779726520616e642067696d626c6520696e2074686520776162653a0a416c6c\
         206d696d737920776572652074686520626f726f676f7665732c0a416e6420746865206d\
         6f6d65207261746873206f757467726162652e",
        "4541669a7eaaee61e708dc7cbcc5eb62",
    ),
    (
        "0200000000000000000000000000000000000000000000000000000000000000",
        "ffffffffffffffffffffffffffffffff",
        "03000000000000000000000000000000",
    ),
    (
        "02000000000000000000000000000000ffffffffffffffffffffffffffffffff",
        "02000000000000000000000000000000",
        "03000000000000000000000000000000",
    ),
    (
        "0100000000000000000000000000000000000000000000000000000000000000",
        "fffffffffffffffffffffffffffffffff0ffffffffffffffffffffffffffffff11000000\
         000000000000000000000000",
        "05000000000000000000000000000000",
    ),
    (
        "0100000000000000000000000000000000000000000000000000000000000000",
        "fffffffffffffffffffffffffffffffffbfefefefefefefefefefefefefefefe01010101\
         010101010101010101010101",
        "00000000000000000000000000000000",
    ),
    (
        "0200000000000000000000000000000000000000000000000000000000000000",
        "fdffffffffffffffffffffffffffffff",
        "faffffffffffffffffffffffffffffff",
    ),
    (
        "0100000000000000040000000000000000000000000000000000000000000000",
        "e33594d7505e43b900000000000000003394d7505e4379cd010000000000000000000000\
         00000000000000000000000001000000000000000000000000000000",
        "14000000000000005500000000000000",
    ),
    (
        "0100000000000000040000000000000000000000000000000000000000000000",
        "e33594d7505e43b900000000000000003394d7505e4379cd010000000000000000000000\
         000000000000000000000000",
        "13000000000000000000000000000000",
    ),
];

/// Key, nonce, one-time key.
#[rustfmt::skip]
const ONE_TIME_KEYS: &[(&str, &str, &str)] = &[
    (
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "000000000001020304050607",
        "8ad5a08b905f81cc815040274ab29471a833b637e3fd0da508dbb8e2fdd1a646",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "000000000000000000000000",
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7",
    ),
    (
        "0000000000000000000000000000000000000000000000000000000000000001",
        "000000000000000000000002",
        "ecfa254f845f647473d3cb140da9e87606cb33066c447b87bc2666dde3fbb739",
    ),
    (
        "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
        "000000000000000000000002",
        "965e3bc6f9ec7ed9560808f4d229f94b137ff275ca9b3fcbdd59deaad23310ae",
    ),
];
