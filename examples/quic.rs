//! Sends a file over QUIC on 127.0.0.1 and gets it back, on several streams, with a key update in
//! mid-transfer; every packet after the Initial ones is protected by ChaCha20-Poly1305.
//!
//! ```text
//! cargo run --release --example quic
//! cargo run --release --example quic -- serve
//! cargo run --release --example quic -- get some.file
//! ```
//!
//! Initial packets are AES-128-GCM by definition (RFC 9001, section 5.2). quinn takes that suite
//! apart from the provider, through `with_initial`, so a provider without AES can be used.

mod common;

use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, Subcommand};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, Incoming, ServerConfig};
use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::quic::Suite;
use rustls::version::TLS13;
use tokio::time::timeout;

use common::{Crypto, Identity, Payload, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { command, address, ca, payload, crypto } = Cli::parse();
    match command {
        None => compare(payload.load()?, &crypto).await?,
        Some(Command::Serve) => {
            let (identity, authority) = Identity::generate()?;
            let endpoint = serve(address, &identity, &crypto.provider())?;
            std::fs::write(ca, authority.pem())?;
            println!("listening on {}", endpoint.local_addr()?);
            println!("{SUITE:?} only, backend {} over {}", crypto.backend, crypto.base);
            tokio::signal::ctrl_c().await?;
            endpoint.close(0_u32.into(), b"shutting down");
            endpoint.wait_idle().await;
        }
        Some(Command::Get(payload)) => {
            let root = CertificateDer::from_pem_file(ca)?;
            let rate = exchange(address, root, &crypto.provider(), payload.load()?).await?;
            println!("{SUITE:?}, backend {}, {rate:.0} MB/s each way", crypto.backend);
        }
    }
    Ok(())
}

#[derive(Parser)]
#[command(about = "Send a file through ChaCha20-Poly1305 over QUIC, get it back, and time it")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The authority of the server's certificate, PEM: written by `serve`, trusted by `get`
    #[arg(long, global = true, default_value = "ca.pem")]
    ca: PathBuf,
    /// Where `serve` listens, and where `get` finds it
    #[arg(long, global = true, default_value = "127.0.0.1:4433")]
    address: SocketAddr,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    crypto: Crypto,
}

/// Without a command, both ends run here: ours, the unmodified base, and ours against the base.
#[derive(Subcommand)]
enum Command {
    /// Send back what arrives, until Ctrl-C
    Serve,
    /// Send a file to a server, get it back and compare
    Get(Payload),
}

async fn compare(data: &'static [u8], crypto: &Crypto) -> Result<()> {
    let (identity, authority) = Identity::generate()?;
    println!("{SUITE:?}, {} bytes, SHA-256 {}", data.len(), common::sha256(data));
    println!("{:16}{:16}{:>16}", "client", "server", "MB/s each way");
    for [client, server] in crypto.pairs() {
        let endpoint = serve("127.0.0.1:0".parse()?, &identity, &server.provider)?;
        let root = authority.der().clone();
        let rate = exchange(endpoint.local_addr()?, root, &client.provider, data).await?;
        println!("{:16}{:16}{rate:16.0}", client.name, server.name);
    }
    println!("\nall digests agree");
    Ok(())
}

/// Starts a server that sends back what arrives on each stream, until its endpoint is closed.
fn serve(listen: SocketAddr, identity: &Identity, provider: &CryptoProvider) -> Result<Endpoint> {
    let mut tls = identity.server_config(common::chacha_only(provider), &[&TLS13])?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let tls = QuicServerConfig::with_initial(tls.into(), initial(provider)?)?;
    let endpoint = Endpoint::server(ServerConfig::with_crypto(Arc::new(tls)), listen)?;
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(echo(incoming));
        }
    });
    Ok(endpoint)
}

async fn echo(incoming: Incoming) -> Result<()> {
    let connection = incoming.await?;
    loop {
        let (mut send, mut receive) = connection.accept_bi().await?;
        tokio::spawn(async move { tokio::io::copy(&mut receive, &mut send).await });
    }
}

/// Sends `data` in parts, each on a stream of its own, and receives what comes back.
/// Gives the megabytes per second of one direction; both are busy at once.
async fn exchange(
    server: SocketAddr,
    root: CertificateDer<'static>,
    provider: &CryptoProvider,
    data: &'static [u8],
) -> Result<f64> {
    let mut tls = common::client_config(common::chacha_only(provider), &[&TLS13], [root])?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let tls = QuicClientConfig::with_initial(tls.into(), initial(provider)?)?;
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::new(Arc::new(tls));
    let connecting = endpoint.connect_with(config, server, "localhost")?;
    let connection = timeout(Duration::from_secs(10), connecting).await??;

    let start = Instant::now();
    let mut streams = Vec::new();
    for (index, part) in data.chunks(data.len().div_ceil(STREAMS).max(1)).enumerate() {
        streams.push(tokio::spawn(round_trip(connection.clone(), part, index == 0)));
    }
    let mut back = Vec::with_capacity(data.len());
    for stream in streams {
        back.extend(stream.await??);
    }
    let rate = common::rate(data.len(), start.elapsed());
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    if common::sha256(&back) != common::sha256(data) {
        return Err("the file came back changed".into());
    }
    Ok(rate)
}

/// Sends a part and gives what comes back. The first forces a key update when half of it is back.
async fn round_trip(connection: Connection, part: &'static [u8], first: bool) -> Result<Vec<u8>> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let sending = tokio::spawn(async move { send.write_all(part).await }); // its end is the part's
    let mut back = vec![0; part.len()];
    let (early, late) = back.split_at_mut(part.len() / 2);
    receive.read_exact(early).await?;
    if first {
        connection.force_key_update();
    }
    receive.read_exact(late).await?;
    sending.await??;
    Ok(back)
}

/// The suite that protects Initial packets, whatever is negotiated later.
fn initial(provider: &CryptoProvider) -> Result<Suite> {
    let aes = CipherSuite::TLS13_AES_128_GCM_SHA256;
    let suite = provider.cipher_suites.iter().find(|suite| suite.suite() == aes);
    let quic = suite.and_then(|suite| suite.tls13()?.quic_suite());
    quic.ok_or_else(|| "the base has no AES-128-GCM for Initial packets".into())
}

const SUITE: CipherSuite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;

/// So many streams carry a part of the file each.
const STREAMS: usize = 8;

const ALPN: &[u8] = b"echo";
