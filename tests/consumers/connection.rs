//! A connection in memory, for the consumers that have a whole provider.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};

/// Connects `provider` to itself, moves data both ways, and gives the suite that was negotiated.
pub fn negotiate(
    provider: CryptoProvider,
    version: &'static SupportedProtocolVersion,
) -> CipherSuite {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(provider);
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();

    let mut client =
        ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    client.writer().write_all(b"ping").unwrap();
    server.writer().write_all(b"pong").unwrap();
    while client.wants_write() || server.wants_write() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut &wire[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    let mut received = [0; 4];
    server.reader().read_exact(&mut received).unwrap();
    assert_eq!(&received, b"ping");
    client.reader().read_exact(&mut received).unwrap();
    assert_eq!(&received, b"pong");
    client.negotiated_cipher_suite().unwrap().suite()
}
