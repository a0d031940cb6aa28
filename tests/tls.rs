//! Whole TLS connections: ours against ours and against the providers of ring and aws-lc-rs, as
//! client and as server, in every way that a connection can start and go on.
//!
//! Built with `--cfg chapoly_fault="tag"` the handshakes must fail: that shows that it is our code
//! that runs in them.
#![cfg(feature = "rustls")]

mod support;

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::ServerSessionMemoryCache;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ConnectionTrafficSecrets, HandshakeKind, SupportedProtocolVersion};

use support::{
    ECDSA, Identity, Named, Pair, RSA, bases, carry, chacha_only, ours, ours_over_ring, paint,
    transfer,
};

/// Every pair of which one side at least is ours: (client, server).
fn pairings() -> Vec<[Named; 2]> {
    let mut pairings = Vec::new();
    for ours in ours() {
        for peer in bases() {
            pairings.push([ours.clone(), peer.clone()]);
            pairings.push([peer, ours.clone()]);
        }
        pairings.push([ours.clone(), ours]);
    }
    pairings
}

fn suite(version: &SupportedProtocolVersion, identity: &Identity) -> CipherSuite {
    if *version == TLS13 {
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
    } else if identity.name == "RSA" {
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
    } else {
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    }
}

/// Data in both directions, in the sizes at which records begin and end.
fn exchange(pair: &mut Pair) {
    let text = paint(40_000);
    let two_hundred: Vec<&[u8]> = (0..200).map(|i| &text[i..2 * i]).collect();
    let few: [&[u8]; 5] = [&text[..1], &[], &text[..16_383], &text[3..4], &text[5..70]];
    for pieces in [&[&text[..1]][..], &[&text[..16_384]], &[&text], &few, &two_hundred] {
        transfer(&mut pair.client, &mut pair.server, pieces);
        transfer(&mut pair.server, &mut pair.client, pieces);
    }
}

/// A clean end: close_notify both ways.
fn close(mut pair: Pair) {
    pair.client.send_close_notify();
    pair.server.send_close_notify();
    pair.shuttle().unwrap();
    assert_eq!(pair.client.reader().read(&mut [0]).unwrap(), 0);
    assert_eq!(pair.server.reader().read(&mut [0]).unwrap(), 0);
}

#[test]
fn full_and_resumed_handshakes() {
    for [client, server] in pairings() {
        for version in [&TLS12, &TLS13] {
            for identity in [&*ECDSA, &*RSA] {
                let what = (&client.name, &server.name, version, identity.name);
                let client =
                    Arc::new(identity.client(&chacha_only(client.provider.clone()), version));
                let server = Arc::new(identity.server(&server.provider, version));
                for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
                    let mut pair = Pair::connect(&client, &server);
                    assert_eq!(pair.client.handshake_kind(), Some(kind), "{what:?}");
                    let negotiated = pair.server.negotiated_cipher_suite().unwrap().suite();
                    assert_eq!(negotiated, suite(version, identity), "{what:?}");
                    exchange(&mut pair);
                    close(pair);
                }
            }
        }
    }
}

#[test]
fn early_data_accepted_and_rejected() {
    for [client, server] in pairings() {
        let mut client = ECDSA.client(&chacha_only(client.provider), &TLS13);
        client.enable_early_data = true;
        let client = Arc::new(client);
        let mut server = ECDSA.server(&server.provider, &TLS13);
        server.max_early_data_size = 60_000;
        // A server that has forgotten the session, and must skip what it cannot decrypt.
        let mut forgetful = server.clone();
        forgetful.session_storage = ServerSessionMemoryCache::new(8);
        let (server, forgetful) = (Arc::new(server), Arc::new(forgetful));

        close(Pair::connect(&client, &server));
        for (server, accepted) in [(&server, true), (&forgetful, false)] {
            let mut pair = Pair::new(&client, server);
            let early = paint(18_000);
            pair.client.early_data().unwrap().write_all(&early).unwrap();
            pair.shuttle().unwrap();
            assert_eq!(pair.client.is_early_data_accepted(), accepted);
            let mut received = Vec::new();
            if let Some(mut early_data) = pair.server.early_data() {
                early_data.read_to_end(&mut received).unwrap();
            }
            assert!(received == if accepted { &early[..] } else { &[] });
            exchange(&mut pair);
            close(pair);
        }
    }
}

/// K41: keys are updated a thousand times, with data between, and the ends stay in step.
#[test]
fn key_updates() {
    let providers = ours().into_iter().map(|ours| [ours.clone(), ours]);
    let mixed = bases()
        .into_iter()
        .map(|base| [Named { name: "ours".into(), provider: ours_over_ring() }, base]);
    for [client, server] in providers.chain(mixed) {
        let client = Arc::new(ECDSA.client(&chacha_only(client.provider), &TLS13));
        let server = Arc::new(ECDSA.server(&server.provider, &TLS13));
        let mut pair = Pair::connect(&client, &server);
        let text = paint(100);
        for i in 0..1_000 {
            if i % 2 == 0 {
                pair.client.refresh_traffic_keys().unwrap();
            } else {
                pair.server.refresh_traffic_keys().unwrap();
            }
            pair.shuttle().unwrap();
            transfer(&mut pair.client, &mut pair.server, &[&text[..i % 100]]);
            transfer(&mut pair.server, &mut pair.client, &[&text[i % 100..]]);
        }
        close(pair);
    }
}

/// K40: no record on the wire is longer than allowed, and none but the last is shorter.
#[test]
fn max_fragment_size_is_respected() {
    for (version, overhead) in [(&TLS12, 16), (&TLS13, 17)] {
        for max_fragment_size in [32, 512, 16_384 + 5] {
            let provider = chacha_only(ours_over_ring());
            let mut client = ECDSA.client(&provider, version);
            client.max_fragment_size = Some(max_fragment_size);
            let server = ECDSA.server(&provider, version);
            let mut pair = Pair::connect(&Arc::new(client), &Arc::new(server));

            pair.client.writer().write_all(&paint(16_384)).unwrap();
            let wire = carry(&mut pair.client, &mut pair.server).unwrap();
            let (mut rest, mut left) = (&wire[..], 16_384);
            while let [_, _, _, a, b, body @ ..] = rest {
                let len = usize::from(u16::from_be_bytes([*a, *b]));
                // rustls counts the five bytes of the record header.
                assert_eq!(len, left.min(max_fragment_size - 5) + overhead);
                left -= len - overhead;
                rest = &body[len..];
            }
            assert_eq!((left, rest), (0, &[][..]));
        }
    }
}

/// What kTLS needs: with the extracted secrets another implementation reads our next record, and
/// writes the one that we read next.
#[test]
fn extracted_secrets_continue_the_connection() {
    for version in [&TLS12, &TLS13] {
        for Named { provider, .. } in ours() {
            let mut client = ECDSA.client(&chacha_only(provider.clone()), version);
            client.enable_secret_extraction = true;
            let server = Arc::new(ECDSA.server(&provider, version));
            let mut pair = Pair::connect(&Arc::new(client), &server);
            exchange(&mut pair);

            let Pair { client, mut server } = pair;
            let secrets = client.dangerous_extract_secrets().unwrap();

            server.writer().write_all(b"from our server").unwrap();
            let mut wire = Vec::new();
            server.write_tls(&mut wire).unwrap();
            assert_eq!(ring_open(secrets.rx, version, wire), b"from our server");

            let (seq, secrets) = secrets.tx;
            let record = ring_seal((seq, &secrets), version, APPLICATION_DATA, b"from ring");
            server.read_tls(&mut &record[..]).unwrap();
            server.process_new_packets().unwrap();
            let mut received = [0; 9];
            server.reader().read_exact(&mut received).unwrap();
            assert_eq!(&received, b"from ring");
        }
    }
}

/// What comes after close_notify is treated as with ring's provider.
#[test]
fn records_after_close_notify() {
    for version in [&TLS12, &TLS13] {
        let fare = |provider: CryptoProvider| {
            let mut client = ECDSA.client(&chacha_only(provider.clone()), version);
            client.enable_secret_extraction = true;
            let server = Arc::new(ECDSA.server(&provider, version));
            let Pair { client, mut server } = Pair::connect(&Arc::new(client), &server);
            let (seq, secrets) = client.dangerous_extract_secrets().unwrap().tx;

            const WARNING_CLOSE_NOTIFY: [u8; 2] = [1, 0];
            let alert = ring_seal((seq, &secrets), version, ALERT, &WARNING_CLOSE_NOTIFY);
            let late = ring_seal((seq + 1, &secrets), version, APPLICATION_DATA, b"late");
            let mut forged = late.clone();
            forged[6] ^= 1;
            [alert, late, forged].map(|record| {
                server.read_tls(&mut &record[..]).unwrap();
                let processed = format!("{:?}", server.process_new_packets());
                let read = server.reader().read(&mut [0; 10]).map_err(|error| error.kind());
                (processed, read)
            })
        };
        let [ring, _] = bases();
        let expected = fare(ring.provider);
        assert_eq!(expected[0].1, Ok(0));
        for ours in ours() {
            assert_eq!(fare(ours.provider), expected);
        }
    }
}

const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;

/// One record of application data, decrypted by ring alone.
fn ring_open(
    (seq, secrets): (u64, ConnectionTrafficSecrets),
    version: &SupportedProtocolVersion,
    mut record: Vec<u8>,
) -> Vec<u8> {
    let payload = record.split_off(5);
    let (key, nonce) = ring_key(seq, &secrets);
    let aad = aad(seq, version, payload.len() - 16, record[..].try_into().unwrap());
    let mut text = payload;
    let len = key.open_in_place(nonce, ring::aead::Aad::from(aad), &mut text).unwrap().len();
    text.truncate(len);
    if *version == TLS13 {
        assert_eq!(text.pop(), Some(APPLICATION_DATA));
    }
    text
}

/// One record, encrypted by ring alone.
fn ring_seal(
    (seq, secrets): (u64, &ConnectionTrafficSecrets),
    version: &SupportedProtocolVersion,
    content_type: u8,
    text: &[u8],
) -> Vec<u8> {
    let mut payload = text.to_vec();
    if *version == TLS13 {
        payload.push(content_type);
    }
    let outer_type = if *version == TLS13 { APPLICATION_DATA } else { content_type };
    let mut record = vec![outer_type, 3, 3, 0, (payload.len() + 16) as u8];
    let (key, nonce) = ring_key(seq, secrets);
    let aad = aad(seq, version, payload.len(), record[..].try_into().unwrap());
    key.seal_in_place_append_tag(nonce, ring::aead::Aad::from(aad), &mut payload).unwrap();
    record.append(&mut payload);
    record
}

fn ring_key(
    seq: u64,
    secrets: &ConnectionTrafficSecrets,
) -> (ring::aead::LessSafeKey, ring::aead::Nonce) {
    let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else {
        panic!("secrets of another AEAD");
    };
    let key = ring::aead::UnboundKey::new(&ring::aead::CHACHA20_POLY1305, key.as_ref()).unwrap();
    let mut nonce: [u8; 12] = iv.as_ref().try_into().unwrap();
    nonce[4..].iter_mut().zip(seq.to_be_bytes()).for_each(|(n, s)| *n ^= s);
    (ring::aead::LessSafeKey::new(key), ring::aead::Nonce::assume_unique_for_key(nonce))
}

/// The AAD of RFC 9846 section 5.2 or of RFC 5246 section 6.2.3.3.
fn aad(seq: u64, version: &SupportedProtocolVersion, text_len: usize, header: [u8; 5]) -> Vec<u8> {
    if *version == TLS13 {
        return header.to_vec();
    }
    let text_len = (text_len as u16).to_be_bytes();
    [&seq.to_be_bytes(), &header[..3], &text_len].concat()
}
