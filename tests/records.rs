//! Record encrypters and decrypters by themselves: lengths, sequence numbers, chunks, and hostile
//! records, held equal to the ring provider's on the same bytes.
#![cfg(feature = "rustls")]

mod support;

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{
    ConnectionTrafficSecrets, ContentType, Error, PeerMisbehaved, ProtocolVersion,
    SupportedCipherSuite,
};
use rustls_chapoly::{Backend, over_with_backend};

use support::{is_chacha20, paint};

const KEY: [u8; 32] = *b"thirty-two bytes of a record key";
const IV: [u8; 12] = *b"an IV to xor";
const MAX: usize = 16_384;

/// The sequence numbers of K41, at which a word fills or its top bit is set.
const SEQS: [u64; 8] =
    [0, 1, u32::MAX as u64, 1 << 32, u64::MAX >> 1, 1 << 63, u64::MAX - 2, u64::MAX - 1];

/// The ChaCha20 suites of `provider`: TLS 1.3 first, then two of TLS 1.2.
fn suites(provider: &CryptoProvider) -> Vec<SupportedCipherSuite> {
    let suites: Vec<_> =
        provider.cipher_suites.iter().copied().filter(|s| is_chacha20(s.suite())).collect();
    assert_eq!(suites.len(), 3);
    suites
}

/// Each of our suites, on each backend, with ring's.
fn ours_and_ring() -> impl Iterator<Item = [SupportedCipherSuite; 2]> {
    let ring = ring::default_provider();
    Backend::available().flat_map(move |backend| {
        let ours = suites(&over_with_backend(ring.clone(), backend));
        ours.into_iter().zip(suites(&ring)).map(|(ours, ring)| [ours, ring])
    })
}

fn encrypter(suite: SupportedCipherSuite) -> Box<dyn MessageEncrypter> {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(KEY.into(), IV.into()),
        SupportedCipherSuite::Tls12(suite) => suite.aead_alg.encrypter(KEY.into(), &IV, &[]),
    }
}

fn decrypter(suite: SupportedCipherSuite) -> Box<dyn MessageDecrypter> {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(KEY.into(), IV.into()),
        SupportedCipherSuite::Tls12(suite) => suite.aead_alg.decrypter(KEY.into(), &IV),
    }
}

fn message(payload: OutboundChunks<'_>) -> OutboundPlainMessage<'_> {
    OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_2,
        payload,
    }
}

fn seal(encrypter: &mut dyn MessageEncrypter, seq: u64, payload: OutboundChunks<'_>) -> Vec<u8> {
    let record = encrypter.encrypt(message(payload), seq).unwrap();
    assert_eq!(record.typ, ContentType::ApplicationData);
    assert_eq!(record.version, ProtocolVersion::TLSv1_2);
    record.payload.as_ref().to_vec()
}

type Opened = (ContentType, ProtocolVersion, Vec<u8>);

/// What a decrypter makes of a record, and what it leaves in the buffer.
fn open(
    decrypter: &mut dyn MessageDecrypter,
    seq: u64,
    (typ, version, payload): (ContentType, ProtocolVersion, &[u8]),
) -> (Result<Opened, Error>, Vec<u8>) {
    let mut buffer = payload.to_vec();
    let result = decrypter
        .decrypt(InboundOpaqueMessage::new(typ, version, &mut buffer), seq)
        .map(|plain| (plain.typ, plain.version, plain.payload.to_vec()));
    (result, buffer)
}

fn data(payload: &[u8]) -> (ContentType, ProtocolVersion, &[u8]) {
    (ContentType::ApplicationData, ProtocolVersion::TLSv1_2, payload)
}

fn is_tls13(suite: SupportedCipherSuite) -> bool {
    suite.tls13().is_some()
}

/// A record sealed by ring's provider, which does not limit its length. In TLS 1.3 `text` is the
/// inner plaintext whole: its last byte is taken for the content type.
fn seal_any(ring: SupportedCipherSuite, seq: u64, text: &[u8]) -> Vec<u8> {
    let mut msg = message(OutboundChunks::Single(text));
    if is_tls13(ring) {
        let (last, text) = text.split_last().unwrap();
        msg.typ = ContentType::from(*last);
        msg.payload = OutboundChunks::Single(text);
    }
    encrypter(ring).encrypt(msg, seq).unwrap().payload.as_ref().to_vec()
}

/// Lengths, the empty record included, each with the sequence numbers of K41.
#[test]
fn records_equal_rings_and_open() {
    let text = paint(MAX);
    let lens = (0..=600).chain([1023, 1024, 1350, 4096, 8191, MAX - 1, MAX]);
    for [ours, ring] in ours_and_ring() {
        let (mut encrypter, mut decrypter) = (encrypter(ours), decrypter(ours));
        let mut ring = self::encrypter(ring);
        for len in lens.clone() {
            let seqs = if len % 64 < 2 { &SEQS[..] } else { &SEQS[2..3] };
            for &seq in seqs {
                let text = &text[..len];
                let record = seal(&mut *encrypter, seq, OutboundChunks::Single(text));
                assert_eq!(record, seal(&mut *ring, seq, OutboundChunks::Single(text)));
                let (opened, _) = open(&mut *decrypter, seq, data(&record));
                let (typ, _, opened) = opened.unwrap();
                assert_eq!((typ, &opened[..]), (ContentType::ApplicationData, text));
            }
        }
    }
}

/// K40: the length that is announced is the length that is sent, without overflow at any.
#[test]
fn encrypted_payload_len_is_exact() {
    for [ours, _] in ours_and_ring() {
        let mut encrypter = encrypter(ours);
        let overhead = if is_tls13(ours) { 17 } else { 16 };
        for len in (0..=MAX).chain([1 << 20, usize::MAX - overhead]) {
            assert_eq!(encrypter.encrypted_payload_len(len), len + overhead);
        }
        assert_eq!(encrypter.encrypted_payload_len(usize::MAX), usize::MAX);
        for len in [0, 1, 64, MAX] {
            let record = seal(&mut *encrypter, 0, OutboundChunks::Single(&vec![7; len]));
            assert_eq!(record.len(), encrypter.encrypted_payload_len(len));
        }
    }
}

/// K13: whole records on the wire, header included.
#[test]
fn encoded_records_equal_rings() {
    for [ours, ring] in ours_and_ring() {
        for len in [0, 1, 1350, MAX] {
            let text = paint(len);
            let [ours, ring] = [ours, ring].map(|suite| {
                encrypter(suite).encrypt(message(OutboundChunks::Single(&text)), 9).unwrap()
            });
            assert_eq!(ours.encode(), ring.encode());
        }
    }
}

/// Every (start, end) over five pieces of 0 to 7 bytes.
#[test]
fn chunks_are_gathered() {
    let text = paint(35);
    for (n, [ours, ring]) in ours_and_ring().enumerate() {
        let (mut encrypter, mut ring) = (encrypter(ours), encrypter(ring));
        let mut expected = |start: usize, end: usize| {
            seal(&mut *ring, 5, OutboundChunks::Single(&text[start..end]))
        };
        let expected: Vec<Vec<_>> =
            (0..=35).map(|start| (start..=35).map(|end| expected(start, end)).collect()).collect();
        // The best backend takes all shapes in TLS 1.3, the others a sample: the glue is one.
        let step = if n == 0 { 1 } else { 37 };
        for shape in (0..1 << 15).step_by(step) {
            let mut rest = &text[..];
            let pieces: Vec<&[u8]> =
                (0..5).map(|i| rest.split_off(..shape >> (3 * i) & 7).unwrap()).collect();
            let total = 35 - rest.len();
            for start in 0..=total {
                for end in start..=total {
                    let chunks = OutboundChunks::Multiple { chunks: &pieces, start, end };
                    let record = encrypter.encrypt(message(chunks), 5).unwrap();
                    assert!(
                        record.payload.as_ref() == expected[start][end - start],
                        "{pieces:?}[{start}..{end}]"
                    );
                }
            }
        }
    }
}

/// `Multiple` may hold one piece, none, or many; a long record may be cut anywhere.
#[test]
fn long_records_are_gathered() {
    let text = paint(3 * MAX);
    for [ours, ring] in ours_and_ring() {
        let (mut encrypter, mut ring) = (encrypter(ours), encrypter(ring));
        let whole = [&text[..]];
        let many: Vec<_> = text.chunks(97).collect();
        let uneven: Vec<_> = [1, 63, 64, 65, 4096, 16_383, 16_385]
            .iter()
            .scan(0, |at, len| {
                *at += len;
                Some(&text[*at - len..*at])
            })
            .collect();
        for chunks in [&whole[..], &many, &uneven] {
            for (start, end) in [(0, 0), (0, MAX), (1, 1 + MAX), (5000, 5001), (17_000, 20_000)] {
                let record =
                    seal(&mut *encrypter, 1, OutboundChunks::Multiple { chunks, start, end });
                let text = OutboundChunks::Single(&text[start..end]);
                assert_eq!(record, seal(&mut *ring, 1, text));
            }
        }
        let none = OutboundChunks::Multiple { chunks: &[], start: 0, end: 0 };
        assert_eq!(
            seal(&mut *encrypter, 1, none),
            seal(&mut *ring, 1, OutboundChunks::new_empty())
        );
    }
}

/// What rustls never asks for is refused, and nothing is sent.
#[test]
fn impossible_fragments_are_refused() {
    let text = paint(MAX + 1);
    let chunks = [&text[..10], &text[10..20]];
    for [ours, _] in ours_and_ring() {
        let mut encrypter = encrypter(ours);
        let mut refused = |payload| {
            let error = encrypter.encrypt(message(payload), 0).unwrap_err();
            assert_eq!(error, Error::EncryptError);
        };
        refused(OutboundChunks::Single(&text));
        refused(OutboundChunks::Multiple { chunks: &chunks, start: 0, end: 21 });
        refused(OutboundChunks::Multiple { chunks: &chunks, start: 2, end: 1 });
        refused(OutboundChunks::Multiple { chunks: &chunks, start: 0, end: usize::MAX });
        refused(OutboundChunks::Multiple { chunks: &[], start: 0, end: 1 });
    }
}

/// K38: authentic at the limit is accepted, one past it `PeerSentOversizedRecord`; forged, whatever
/// its length, is `DecryptError`.
#[test]
fn limits_come_after_authentication() {
    for [ours, ring] in ours_and_ring() {
        let mut decrypter = decrypter(ours);
        for len in [MAX, MAX + 1, MAX + 255] {
            let mut text = paint(len);
            if is_tls13(ours) {
                text.push(ContentType::ApplicationData.into());
            }
            let record = seal_any(ring, 3, &text);
            let (result, _) = open(&mut *decrypter, 3, data(&record));
            if len <= MAX {
                assert_eq!(result.unwrap().2, paint(len));
            } else {
                assert_eq!(result.unwrap_err(), Error::PeerSentOversizedRecord);
            }

            let mut forged = record;
            *forged.last_mut().unwrap() ^= 1;
            let (result, left) = open(&mut *decrypter, 3, data(&forged));
            assert_eq!(result.unwrap_err(), Error::DecryptError);
            assert!(left[..left.len() - 16].iter().all(|&byte| byte == 0));
        }
    }
}

/// K11: each of the last 17 bytes of a long record flipped; nothing outside it is touched.
#[test]
fn a_forged_record_leaves_zeros_and_nothing_else() {
    for [ours, _] in ours_and_ring() {
        let record = seal(&mut *encrypter(ours), 0, OutboundChunks::Single(&paint(15_000)));
        let mut decrypter = decrypter(ours);
        for from_end in 1..=17 {
            let mut buffer = [vec![0xa5; 64], record.clone(), vec![0xa5; 64]].concat();
            let (_, rest) = buffer.split_at_mut(64);
            let payload = &mut rest[..record.len()];
            payload[record.len() - from_end] ^= 0x40;
            let msg = InboundOpaqueMessage::new(
                ContentType::ApplicationData,
                ProtocolVersion::TLSv1_2,
                payload,
            );
            assert_eq!(decrypter.decrypt(msg, 0).unwrap_err(), Error::DecryptError);
            assert!(buffer[64..64 + record.len() - 16].iter().all(|&byte| byte == 0));
            assert_eq!(&buffer[..64], &[0xa5; 64]);
            assert_eq!(&buffer[64 + record.len()..], &[0xa5; 64]);
        }
    }
}

/// K19, K20: every hostile record gets from ours what it gets from ring's, and leaves nothing unauthenticated.
#[test]
fn hostile_records_fare_as_with_ring() {
    for [ours, ring] in ours_and_ring() {
        let (mut ours_decrypter, mut ring_decrypter) = (decrypter(ours), decrypter(ring));
        let mut compare = |seq, record: (ContentType, ProtocolVersion, &[u8])| {
            let (result, left) = open(&mut *ours_decrypter, seq, record);
            let (expected, _) = open(&mut *ring_decrypter, seq, record);
            assert_eq!(result, expected, "{record:?}");
            if result == Err(Error::DecryptError) && left.len() >= 16 {
                assert!(left[..left.len() - 16].iter().all(|&byte| byte == 0));
            }
            result
        };

        // Truncated, empty, extended, and under another sequence number.
        let record = seal_any(ring, 1, &paint(100));
        for len in 0..record.len() {
            assert_eq!(compare(1, data(&record[..len])), Err(Error::DecryptError));
        }
        for extra in 1..=17 {
            let longer = [&record[..], &vec![0; extra]].concat();
            assert_eq!(compare(1, data(&longer)), Err(Error::DecryptError));
        }
        assert_eq!(compare(2, data(&record)), Err(Error::DecryptError));

        // Every bit flipped.
        for bit in 0..8 * record.len() {
            let mut forged = record.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(compare(1, data(&forged)), Err(Error::DecryptError));
        }

        // Every type and many versions in the header; TLS 1.3 authenticates neither.
        for byte in 0..=255 {
            let _ = compare(1, (byte.into(), ProtocolVersion::TLSv1_2, &record));
            let version = ProtocolVersion::from(u16::from_be_bytes([3, byte]));
            let _ = compare(1, (ContentType::ApplicationData, version, &record));
        }

        // Every inner content type; padding to the limit and past it; nothing but padding.
        for byte in 0..=255 {
            let _ = compare(1, data(&seal_any(ring, 1, &[1, 2, 3, byte])));
        }
        for len in [1, 2, 64, MAX, MAX + 1, MAX + 2, MAX + 300] {
            let zeros = seal_any(ring, 1, &vec![0; len]);
            let result = compare(1, data(&zeros));
            if is_tls13(ours) && len <= MAX + 1 {
                assert_eq!(result, Err(PeerMisbehaved::IllegalTlsInnerPlaintext.into()));
            }
            let mut padded = vec![0; len];
            padded[0] = ContentType::ApplicationData.into();
            let _ = compare(1, data(&seal_any(ring, 1, &padded)));
            let mut full = vec![7; len];
            full[len - 1] = ContentType::ApplicationData.into();
            let _ = compare(1, data(&seal_any(ring, 1, &full)));
        }

        // All zeros, all ones, of every length near a tag's.
        for len in 0..200 {
            for byte in [0, 0xff] {
                assert_eq!(compare(1, data(&vec![byte; len])), Err(Error::DecryptError));
            }
        }
    }
}

/// TLS 1.2 passes IVs as slices: one of a wrong length gives an object that refuses every record.
#[test]
fn a_wrong_iv_length_refuses_every_record() {
    let ours = suites(&rustls_chapoly::over(ring::default_provider()));
    let SupportedCipherSuite::Tls12(suite) = ours[1] else { panic!("{ours:?}") };
    for len in [0, 4, 11, 13, 32] {
        let iv = vec![1; len];
        let mut encrypter = suite.aead_alg.encrypter(KEY.into(), &iv, &[]);
        let error = encrypter.encrypt(message(OutboundChunks::Single(b"text")), 0).unwrap_err();
        assert_eq!(error, Error::EncryptError);
        assert_eq!(encrypter.encrypted_payload_len(4), 4);

        let mut decrypter = suite.aead_alg.decrypter(KEY.into(), &iv);
        for record in [&[0; 20][..], &[]] {
            let (result, _) = open(&mut *decrypter, 0, data(record));
            assert_eq!(result.unwrap_err(), Error::DecryptError);
        }
        assert!(suite.aead_alg.extract_keys(KEY.into(), &iv, &[]).is_err());
    }
}

#[test]
fn extracted_keys_are_the_keys() {
    for [ours, _] in ours_and_ring() {
        let key = AeadKey::from(KEY);
        let secrets = match ours {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.extract_keys(key, Iv::from(IV)),
            SupportedCipherSuite::Tls12(suite) => suite.aead_alg.extract_keys(key, &IV, &[]),
        };
        let Ok(ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) = secrets else {
            panic!("secrets of another AEAD");
        };
        assert_eq!((key.as_ref(), iv.as_ref()), (&KEY[..], &IV[..]));
    }
}
