//! What the TLS and QUIC tests share: certificates, configurations, connections in memory.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{IoSlice, Read, Write};
use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig,
    ServerConnection, SupportedProtocolVersion,
};
use rustls_chapoly::{Backend, over_with_backend};

/// A provider under test or a peer, with a name for failure messages.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) provider: CryptoProvider,
}

/// The providers that we wrap, and that serve as peers.
pub(crate) fn bases() -> [Named; 2] {
    let named = |name: &str, provider| Named { name: name.into(), provider };
    [named("ring", ring::default_provider()), named("aws-lc-rs", aws_lc_rs::default_provider())]
}

/// Ours over every base on every backend.
pub(crate) fn ours() -> Vec<Named> {
    let over = |base: Named| {
        Backend::available().map(move |backend| Named {
            name: format!("ours ({backend}) over {}", base.name),
            provider: over_with_backend(base.provider.clone(), backend),
        })
    };
    bases().into_iter().flat_map(over).collect()
}

/// Ours over ring on the best backend.
pub(crate) fn ours_over_ring() -> CryptoProvider {
    rustls_chapoly::over(ring::default_provider())
}

/// `provider` with nothing but its ChaCha20-Poly1305 suites.
pub(crate) fn chacha_only(mut provider: CryptoProvider) -> CryptoProvider {
    provider.cipher_suites.retain(|suite| is_chacha20(suite.suite()));
    provider
}

pub(crate) fn is_chacha20(suite: CipherSuite) -> bool {
    format!("{suite:?}").contains("CHACHA20_POLY1305")
}

pub(crate) struct Identity {
    pub(crate) name: &'static str,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

pub(crate) static ECDSA: LazyLock<Identity> =
    LazyLock::new(|| Identity::new("ECDSA", KeyPair::generate().unwrap()));

pub(crate) static RSA: LazyLock<Identity> = LazyLock::new(|| {
    Identity::new("RSA", KeyPair::from_pem(include_str!("../data/rsa-key.pem")).unwrap())
});

impl Identity {
    fn new(name: &'static str, key: KeyPair) -> Self {
        let params = CertificateParams::new(["localhost".into()]).unwrap();
        let chain = vec![params.self_signed(&key).unwrap().into()];
        Self { name, chain, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() }
    }

    pub(crate) fn server(
        &self,
        provider: &CryptoProvider,
        version: &'static SupportedProtocolVersion,
    ) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .unwrap()
    }

    pub(crate) fn client(
        &self,
        provider: &CryptoProvider,
        version: &'static SupportedProtocolVersion,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.chain[0].clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::in_memory_sessions(8);
        config
    }
}

/// A client and a server whose bytes pass through memory.
pub(crate) struct Pair {
    pub(crate) client: ClientConnection,
    pub(crate) server: ServerConnection,
}

impl Pair {
    /// Not yet shaken hands.
    pub(crate) fn new(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Self {
        let mut pair = Self {
            client: ClientConnection::new(client.clone(), "localhost".try_into().unwrap()).unwrap(),
            server: ServerConnection::new(server.clone()).unwrap(),
        };
        pair.client.set_buffer_limit(None);
        pair.server.set_buffer_limit(None);
        pair
    }

    /// After a handshake.
    pub(crate) fn connect(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Self {
        let mut pair = Self::new(client, server);
        pair.shuttle().unwrap();
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
        pair
    }

    /// Carries bytes both ways until both ends are silent.
    pub(crate) fn shuttle(&mut self) -> Result<(), rustls::Error> {
        while self.client.wants_write() || self.server.wants_write() {
            carry(&mut self.client, &mut self.server)?;
            carry(&mut self.server, &mut self.client)?;
        }
        Ok(())
    }
}

/// Carries what `from` has to send to `to`; gives the bytes.
pub(crate) fn carry<A, B>(
    from: &mut ConnectionCommon<A>,
    to: &mut ConnectionCommon<B>,
) -> Result<Vec<u8>, rustls::Error>
where
    A: rustls::SideData,
    B: rustls::SideData,
{
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).unwrap();
    }
    let mut rest = &wire[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(wire)
}

/// Sends `pieces` in one vectored write, and checks that they arrive.
pub(crate) fn transfer<A, B>(
    from: &mut ConnectionCommon<A>,
    to: &mut ConnectionCommon<B>,
    pieces: &[&[u8]],
) where
    A: rustls::SideData,
    B: rustls::SideData,
{
    let sent = pieces.concat();
    let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    assert_eq!(from.writer().write_vectored(&slices).unwrap(), sent.len());
    let mut received = Vec::new();
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).unwrap();
    }
    let mut rest = &wire[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets().unwrap();
        let mut buffer = [0; 4096];
        while let Ok(n) = to.reader().read(&mut buffer) {
            received.extend_from_slice(&buffer[..n]);
            if n == 0 {
                break;
            }
        }
    }
    assert!(received == sent, "{} bytes arrived as {} others", sent.len(), received.len());
}

/// Bytes with period 251, so that swapped blocks show.
pub(crate) fn paint(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}
