//! QUIC: packet protection and header protection by themselves, then whole transfers over quinn,
//! with ours at one end or both, and with a network between them that loses packets.
//!
//! Built with `--cfg chapoly_fault="quic_tag"` (or `"tag"`) the transfers must fail.
#![cfg(feature = "rustls")]

mod support;

use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, OnceLock};

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::crypto::{CryptoProvider, ring};
use rustls::quic::{Algorithm, Suite};
use rustls::version::TLS13;
use rustls::{CipherSuite, Error};
use rustls_chapoly::{Backend, over_with_backend};
use tokio::net::UdpSocket;

use support::{ECDSA, Named, bases, chacha_only, ours, paint};

const KEY: [u8; 32] = *b"thirty-two bytes of a packet key";
const IV: [u8; 12] = *b"an IV to xor";

/// A packet number fills a word, or sets its top bit, at these.
const NUMBERS: [u64; 6] = [0, 1, u32::MAX as u64, 1 << 32, (1 << 62) - 1, u64::MAX];

/// The path ids of K44.
const PATHS: [u32; 4] = [0, 1, 0x8000_0000, 0xffff_ffff];

fn quic(provider: &CryptoProvider) -> &'static dyn Algorithm {
    suite(provider, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256).quic
}

fn suite(provider: &CryptoProvider, id: CipherSuite) -> Suite {
    let suite = provider.cipher_suites.iter().find(|suite| suite.suite() == id).unwrap();
    suite.tls13().unwrap().quic_suite().unwrap()
}

/// Ours on each backend, with ring's.
fn ours_and_ring() -> impl Iterator<Item = [&'static dyn Algorithm; 2]> {
    let ring = ring::default_provider();
    Backend::available()
        .map(move |backend| [quic(&over_with_backend(ring.clone(), backend)), quic(&ring)])
}

/// K42: the packet of RFC 9001 appendix A.5.
#[test]
fn rfc_9001_a5() {
    let key = hex("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
    let iv: [u8; 12] = hex("e0459b3474bdd0e44a41c144");
    let hp = hex("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4");
    let number = 654_360_564;
    let header: [u8; 4] = hex("4200bff4");
    let protected: [u8; 21] = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");

    for [ours, _] in ours_and_ring() {
        let packet_key = ours.packet_key(key.into(), iv.into());
        let header_key = ours.header_protection_key(hp.into());

        let mut packet = [&header[..], &[1]].concat();
        let tag = packet_key.encrypt_in_place(number, &header, &mut packet[4..]).unwrap();
        packet.extend_from_slice(tag.as_ref());
        let (start, sample) = packet.split_at_mut(5);
        let (first, rest) = start.split_first_mut().unwrap();
        header_key.encrypt_in_place(sample, first, rest).unwrap();
        assert_eq!(packet, protected);

        let (start, sample) = packet.split_at_mut(5);
        let (first, rest) = start.split_first_mut().unwrap();
        header_key.decrypt_in_place(sample, first, rest).unwrap();
        let (start, payload) = packet.split_at_mut(4);
        assert_eq!(start, header);
        assert_eq!(packet_key.decrypt_in_place(number, start, payload).unwrap(), [1]);
    }
}

#[test]
fn constants() {
    for [ours, _] in ours_and_ring() {
        let key = ours.packet_key(KEY.into(), IV.into());
        assert_eq!(ours.aead_key_len(), 32);
        assert_eq!(key.tag_len(), 16);
        assert_eq!(key.confidentiality_limit(), u64::MAX);
        assert_eq!(key.integrity_limit(), 1 << 36);
        assert_eq!(ours.header_protection_key(KEY.into()).sample_len(), 16);
        assert!(!ours.fips());
    }
}

#[test]
fn packets_equal_rings_and_open() {
    let text = paint(1500);
    for [ours, ring] in ours_and_ring() {
        let [ours, ring] =
            [ours, ring].map(|algorithm| algorithm.packet_key(KEY.into(), IV.into()));
        for len in 0..=text.len() {
            let (header, number) = (&text[..len % 60], NUMBERS[len % NUMBERS.len()]);
            let [mut packet, mut expected] = [text[..len].to_vec(), text[..len].to_vec()];
            let tag = ours.encrypt_in_place(number, header, &mut packet).unwrap();
            packet.extend_from_slice(tag.as_ref());
            let tag = ring.encrypt_in_place(number, header, &mut expected).unwrap();
            expected.extend_from_slice(tag.as_ref());
            assert_eq!(packet, expected);
            assert_eq!(ours.decrypt_in_place(number, header, &mut packet), Ok(&text[..len]));
        }
    }
}

/// K44: each path has nonces of its own, and path 0 those of a connection with one path.
#[test]
fn path_ids() {
    let header = b"header";
    for [ours, ring] in ours_and_ring() {
        let [ours, ring] =
            [ours, ring].map(|algorithm| algorithm.packet_key(KEY.into(), IV.into()));
        let mut seen = Vec::new();
        for path in PATHS {
            for number in NUMBERS {
                let [mut packet, mut expected] = [paint(80), paint(80)];
                let tag =
                    ours.encrypt_in_place_for_path(path, number, header, &mut packet).unwrap();
                packet.extend_from_slice(tag.as_ref());
                let tag =
                    ring.encrypt_in_place_for_path(path, number, header, &mut expected).unwrap();
                expected.extend_from_slice(tag.as_ref());
                assert_eq!(packet, expected);
                if path == 0 {
                    let mut single = paint(80);
                    let tag = ours.encrypt_in_place(number, header, &mut single).unwrap();
                    single.extend_from_slice(tag.as_ref());
                    assert_eq!(packet, single);
                }
                assert!(!seen.contains(&packet), "a nonce was used twice");
                seen.push(packet.clone());

                for other in PATHS.into_iter().filter(|&other| other != path) {
                    let mut packet = packet.clone();
                    let opened = ours.decrypt_in_place_for_path(other, number, header, &mut packet);
                    assert_eq!(opened, Err(Error::DecryptError));
                }
                let opened = ours.decrypt_in_place_for_path(path, number, header, &mut packet);
                assert_eq!(opened, Ok(&paint(80)[..]));
            }
        }
    }
}

/// K19, K20: any bit of payload, tag, header or packet number; and what is no packet at all.
#[test]
fn forged_packets_are_refused() {
    for [ours, _] in ours_and_ring() {
        let key = ours.packet_key(KEY.into(), IV.into());
        let refused = |number, header: &[u8], packet: &[u8]| {
            let mut buffer = packet.to_vec();
            let opened = key.decrypt_in_place(number, header, &mut buffer);
            assert_eq!(opened, Err(Error::DecryptError));
            let text_len = packet.len().saturating_sub(16);
            assert!(buffer[..text_len].iter().all(|&byte| byte == 0));
            let mut buffer = packet.to_vec();
            let opened = key.decrypt_in_place_for_path(0, number, header, &mut buffer);
            assert_eq!(opened, Err(Error::DecryptError));
        };
        for len in [0, 1, 64, 1200, 1452] {
            let header = paint(20);
            let mut packet = paint(len);
            let tag = key.encrypt_in_place(7, &header, &mut packet).unwrap();
            packet.extend_from_slice(tag.as_ref());

            for bit in (0..8 * packet.len()).filter(|bit| bit % 7 == 0 || *bit > 8 * len) {
                let mut forged = packet.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                refused(7, &header, &forged);
            }
            for bit in 0..8 * header.len() {
                let mut forged = header.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                refused(7, &forged, &packet);
            }
            for bit in 0..64 {
                refused(7 ^ (1 << bit), &header, &packet);
            }
        }
        for len in 0..40 {
            refused(7, b"", &vec![0; len]);
        }
    }
}

/// Every first byte, every length of the slice, and samples that start with the last and the first
/// counter value: as ring's, and undone by its inverse.
#[test]
fn header_protection_equals_rings() {
    let mut samples = vec![[0; 16], [0xff; 16], paint(16).try_into().unwrap()];
    samples.extend([0, 1, u32::MAX - 1, u32::MAX].map(|counter: u32| {
        let mut sample = [0x5a; 16];
        sample[..4].copy_from_slice(&counter.to_le_bytes());
        sample
    }));
    for [ours, ring] in ours_and_ring() {
        let [ours, ring] =
            [ours, ring].map(|algorithm| algorithm.header_protection_key(KEY.into()));
        for sample in &samples {
            for first in 0..=255 {
                for len in 0..=4 {
                    let plain = (first, paint(len + 3)[3..].to_vec());
                    let [mut a, mut b] = [plain.clone(), plain.clone()];
                    ours.encrypt_in_place(sample, &mut a.0, &mut a.1).unwrap();
                    ring.encrypt_in_place(sample, &mut b.0, &mut b.1).unwrap();
                    assert_eq!(a, b);
                    // Beyond the encoded length nothing changes.
                    let encoded = usize::from(first & 3) + 1;
                    assert_eq!(a.1.get(encoded..), plain.1.get(encoded..));

                    ours.decrypt_in_place(sample, &mut a.0, &mut a.1).unwrap();
                    assert_eq!(a, plain);

                    let [mut a, mut b] = [plain.clone(), plain];
                    ours.decrypt_in_place(sample, &mut a.0, &mut a.1).unwrap();
                    ring.decrypt_in_place(sample, &mut b.0, &mut b.1).unwrap();
                    assert_eq!(a, b);
                }
            }
        }
    }
}

#[test]
fn malformed_header_protection_changes_nothing() {
    for [ours, ring] in ours_and_ring() {
        let [ours, ring] =
            [ours, ring].map(|algorithm| algorithm.header_protection_key(KEY.into()));
        for (sample_len, number_len) in
            (0..40).filter(|&len| len != 16).map(|len| (len, 4)).chain((5..20).map(|len| (16, len)))
        {
            let (sample, number) = (paint(sample_len), paint(number_len));
            let (mut first, mut changed) = (0xc3, number.clone());
            let error = ours.encrypt_in_place(&sample, &mut first, &mut changed).unwrap_err();
            assert_eq!((first, &changed), (0xc3, &number));
            let expected = ring.encrypt_in_place(&sample, &mut first, &mut changed).unwrap_err();
            assert_eq!(error, expected);
            let error = ours.decrypt_in_place(&sample, &mut first, &mut changed).unwrap_err();
            assert_eq!((first, &changed, error), (0xc3, &number, expected));
        }
    }
}

/// K42: 10 MB each way between every pair of which one is ours, with nothing but ChaCha20-Poly1305.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers() {
    for ours in ours() {
        let mut pairs = vec![[ours.clone(), ours.clone()]];
        if ours.name.contains(&format!("({})", Backend::best())) {
            for peer in bases() {
                pairs.push([ours.clone(), peer.clone()]);
                pairs.push([peer, ours.clone()]);
            }
        }
        for [client, server] in pairs {
            let server = serve(&server);
            let addr = server.local_addr().unwrap();
            transfer(&client, &server, addr).await;
        }
    }
}

/// 10 MB each way through a network that loses, repeats and reorders packets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_survive_a_bad_network() {
    for ours in ours() {
        let server = serve(&ours);
        let relay = Relay::start(server.local_addr().unwrap()).await;
        transfer(&ours, &server, relay.addr).await;
        for fault in [&relay.faults.lost, &relay.faults.repeated, &relay.faults.reordered] {
            assert!(fault.load(Ordering::Relaxed) > 20, "{:?}", relay.faults);
        }
    }
}

const TRANSFER: usize = 10_000_000;

/// A server that only has ChaCha20-Poly1305, but for the Initial packets.
fn serve(named: &Named) -> Endpoint {
    let tls = ECDSA.server(&chacha_only(named.provider.clone()), &TLS13);
    let tls = QuicServerConfig::with_initial(Arc::new(tls), initial(&named.provider)).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap()
}

/// RFC 9001 section 5.2: Initial packets are protected with AES-128-GCM whatever is negotiated.
fn initial(provider: &CryptoProvider) -> Suite {
    suite(provider, CipherSuite::TLS13_AES_128_GCM_SHA256)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(20).try_into().unwrap()));
    Arc::new(transport)
}

/// Both ends send and receive at once; the client updates the keys halfway.
async fn transfer(client: &Named, server: &Endpoint, addr: SocketAddr) {
    let tls = ECDSA.client(&chacha_only(client.provider.clone()), &TLS13);
    let tls = QuicClientConfig::with_initial(Arc::new(tls), initial(&client.provider)).unwrap();
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();

    let text = Arc::new(paint(TRANSFER));
    let server = {
        let (server, text) = (server.clone(), text.clone());
        tokio::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            let (send, receive) = connection.accept_bi().await.unwrap();
            both_ways(&connection, send, receive, &text, false).await;
            connection.closed().await;
        })
    };
    let connection = endpoint.connect_with(config, addr, "localhost").unwrap().await.unwrap();
    let (send, receive) = connection.open_bi().await.unwrap();
    both_ways(&connection, send, receive, &text, true).await;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    server.await.unwrap();
}

async fn both_ways(
    connection: &Connection,
    mut send: quinn::SendStream,
    mut receive: quinn::RecvStream,
    text: &Arc<Vec<u8>>,
    update_keys: bool,
) {
    let sender = {
        let (text, connection) = (text.clone(), connection.clone());
        async move {
            let (start, end) = text.split_at(TRANSFER / 2);
            send.write_all(start).await.unwrap();
            if update_keys {
                connection.force_key_update();
            }
            send.write_all(end).await.unwrap();
            send.finish().unwrap();
            send.stopped().await.unwrap();
        }
    };
    let receiver = async move {
        let received = receive.read_to_end(TRANSFER).await.unwrap();
        assert!(received == **text, "other bytes arrived");
    };
    tokio::join!(sender, receiver);
}

/// Passes datagrams between one client and a server, badly.
struct Relay {
    addr: SocketAddr,
    faults: Arc<Faults>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

#[derive(Debug, Default)]
struct Faults {
    lost: AtomicUsize,
    repeated: AtomicUsize,
    reordered: AtomicUsize,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let near = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        let far = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
        far.connect(server).await.unwrap();
        let addr = near.local_addr().unwrap();
        let faults = Arc::new(Faults::default());
        let client = Arc::new(OnceLock::new());
        let to_server = {
            let (near, far, faults, client) =
                (near.clone(), far.clone(), faults.clone(), client.clone());
            tokio::spawn(async move {
                let mut link = Link::new(1, &faults);
                let mut buffer = [0; 65_536];
                loop {
                    let (len, from) = near.recv_from(&mut buffer).await.unwrap();
                    let _ = client.set(from);
                    for packet in link.pass(&buffer[..len]) {
                        far.send(&packet).await.unwrap();
                    }
                }
            })
        };
        let to_client = {
            let faults = faults.clone();
            tokio::spawn(async move {
                let mut link = Link::new(2, &faults);
                let mut buffer = [0; 65_536];
                loop {
                    let len = far.recv(&mut buffer).await.unwrap();
                    let client = *client.get().expect("the client speaks first");
                    for packet in link.pass(&buffer[..len]) {
                        near.send_to(&packet, client).await.unwrap();
                    }
                }
            })
        };
        Self { addr, faults, tasks: [to_server, to_client] }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.tasks.iter().for_each(|task| task.abort());
    }
}

/// One direction of the relay: of a hundred packets one is lost, one repeated, one held back until
/// the next has passed.
struct Link<'a> {
    random: u64,
    held: Option<Vec<u8>>,
    faults: &'a Faults,
}

impl<'a> Link<'a> {
    fn new(seed: u64, faults: &'a Faults) -> Self {
        Self { random: seed, held: None, faults }
    }

    fn pass(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        // Knuth's MMIX generator: the same faults in every run over the same packets.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let count = |fault: &AtomicUsize| fault.fetch_add(1, Ordering::Relaxed);
        let mut out = Vec::new();
        match (self.random >> 33) % 100 {
            0 => {
                count(&self.faults.lost);
            }
            1 => {
                count(&self.faults.repeated);
                out.extend([packet.to_vec(), packet.to_vec()]);
            }
            2 if self.held.is_none() => {
                self.held = Some(packet.to_vec());
                return out;
            }
            _ => out.push(packet.to_vec()),
        }
        if let Some(held) = self.held.take_if(|_| !out.is_empty()) {
            count(&self.faults.reordered);
            out.push(held);
        }
        out
    }
}

fn hex<const N: usize>(digits: &str) -> [u8; N] {
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
        .collect();
    bytes.try_into().unwrap()
}
