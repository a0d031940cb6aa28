//! Whole TLS connections in memory: what a `write` and a `read` cost beside the providers of ring
//! and aws-lc-rs, rustls' own share and its copies included.

mod glue;
mod harness;

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};

use glue::{AES, Competitor, Report};
use harness::{Entry, sample};

/// Writes per timed batch.
const WRITES: usize = 4;

fn main() {
    let mut report = Report::start();
    for (name, version, chacha, aes) in [
        (
            "TLS 1.3",
            &TLS13,
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS13_AES_256_GCM_SHA384,
        ),
        (
            "TLS 1.2",
            &TLS12,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
    ] {
        for len in [16_384, 1024] {
            let mut arena: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            for (op, entry) in
                [("send", Connection::send as Start), ("receive", Connection::receive)]
            {
                let competitors = report.competitors();
                let connect = |it: &Competitor, suite| Connection::new(it.only(suite), version);
                let mut entries: Vec<_> = competitors
                    .iter()
                    .map(|it| entry(connect(it, chacha), it.name.clone()))
                    .collect();
                let aws = competitors.last().map(|it| connect(it, aes));
                entries.extend(aws.map(|connection| entry(connection, AES.into())));
                report.contest(&format!("{name} {op}"), len, &mut arena, entries);
            }
        }
    }
    report.finish();
}

type Start = fn(Connection, String) -> Entry<Vec<u8>>;

struct Connection {
    client: ClientConnection,
    server: ServerConnection,
    wire: Vec<u8>,
}

impl Connection {
    fn new(provider: CryptoProvider, version: &'static SupportedProtocolVersion) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".into()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a certificate");
        let provider = Arc::new(provider);
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[version])
            .expect("a suite of this version")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .expect("a key that fits the certificate");
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("a suite of this version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let mut this = Self {
            client: ClientConnection::new(Arc::new(client), name).expect("a configuration"),
            server: ServerConnection::new(Arc::new(server)).expect("a configuration"),
            wire: Vec::with_capacity(1 << 20),
        };
        while this.client.wants_write() || this.server.wants_write() {
            this.flush();
            this.absorb(&mut []);
            let mut wire = Vec::new();
            while this.server.wants_write() {
                this.server.write_tls(&mut wire).expect("room");
            }
            let mut rest = &wire[..];
            while !rest.is_empty() {
                this.client.read_tls(&mut rest).expect("bytes");
                this.client.process_new_packets().expect("an honest peer");
            }
        }
        this
    }

    /// Times the client: its writes, and its records to the wire.
    fn send(mut self, name: String) -> Entry<Vec<u8>> {
        let run = move |text: &mut Vec<u8>| {
            sample(
                text,
                WRITES,
                |_| (),
                |text| {
                    for _ in 0..WRITES {
                        self.client.writer().write_all(text).expect("room");
                        self.flush();
                    }
                },
            )
        };
        Entry { name, run: Box::new(run) }
    }

    /// Times the server: the records from the wire, and its reads. One write's records at a time,
    /// so that the copies from the wire are the same for all.
    fn receive(mut self, name: String) -> Entry<Vec<u8>> {
        let mut buffer = Vec::new();
        let run = move |text: &mut Vec<u8>| {
            let this = core::cell::RefCell::new(&mut self);
            buffer.resize(text.len(), 0);
            let buffer = &mut buffer;
            sample(
                text,
                1,
                |text| {
                    let mut this = this.borrow_mut();
                    this.client.writer().write_all(text).expect("room");
                    this.flush();
                },
                |_| this.borrow_mut().absorb(buffer),
            )
        };
        Entry { name, run: Box::new(run) }
    }

    fn flush(&mut self) {
        self.wire.clear();
        while self.client.wants_write() {
            self.client.write_tls(&mut self.wire).expect("room");
        }
    }

    /// Reads plaintext until `buffer` is full.
    fn absorb(&mut self, buffer: &mut [u8]) {
        let (mut rest, mut at) = (&self.wire[..], 0);
        while !rest.is_empty() {
            self.server.read_tls(&mut rest).expect("bytes");
            self.server.process_new_packets().expect("an honest peer");
            while at < buffer.len() {
                let Ok(n) = self.server.reader().read(&mut buffer[at..]) else { break };
                at += n;
            }
        }
        assert_eq!(at, buffer.len());
    }
}
