//! Sends a file over QUIC on 127.0.0.1 and gets it back, on several streams, with a key update in
//! mid-transfer; every packet after the Initial ones is protected by ChaCha20-Poly1305.
//!
//! ```text
//! cargo run --release --example quic
//! cargo run --release --example quic -- serve --listen 127.0.0.1:4433
//! cargo run --release --example quic -- get 127.0.0.1:4433 --root ca.pem
//! ```
//!
//! Initial packets are AES-128-GCM by definition (RFC 9001, section 5.2). quinn takes that suite
//! apart from the provider, through `with_initial`, so a provider without AES can be used.

mod common;

use core::net::SocketAddr;
use core::ops::Range;
use core::time::Duration;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, Subcommand};
use indicatif::ProgressBar;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream, TransportConfig};
use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::quic::Suite;
use rustls::version::TLS13;

use common::{Crypto, Identity, Result};

#[derive(Parser)]
#[command(about = "Send a file through ChaCha20-Poly1305 over QUIC, get it back, and time it")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// The file to send; one is generated if none is given
    #[arg(long, global = true)]
    file: Option<PathBuf>,

    /// The size of the generated file
    #[arg(long, global = true, default_value = "64MiB", value_parser = common::parse_size)]
    size: usize,

    #[command(flatten)]
    crypto: Crypto,
}

/// Without a command, both ends run here: ours, the unmodified base, and ours against the base.
#[derive(Subcommand)]
enum Command {
    /// Send back what arrives, until Ctrl-C
    Serve {
        #[arg(long, default_value = "127.0.0.1:4433")]
        listen: SocketAddr,

        /// Where the authority of the generated certificate is written
        #[arg(long, default_value = "ca.pem")]
        ca_out: PathBuf,
    },
    /// Send a file to a server, get it back and compare
    Get {
        server: SocketAddr,

        /// The authorities to trust, PEM
        #[arg(long, default_value = "ca.pem")]
        root: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run(Cli::parse()).await)
}

async fn run(cli: Cli) -> Result<()> {
    let ours = cli.crypto.provider();
    match &cli.command {
        None => both(&cli).await,
        Some(Command::Serve { listen, ca_out }) => {
            let (identity, authority) = Identity::generate()?;
            let endpoint = bind(*listen, &identity, &ours)?;
            std::fs::write(ca_out, authority.pem())?;
            println!("listening on {}", endpoint.local_addr()?);
            println!("{SUITE:?} only, backend {} over {}", cli.crypto.backend, cli.crypto.base);
            tokio::select! {
                () = accept(endpoint.clone()) => {}
                interrupt = tokio::signal::ctrl_c() => interrupt?,
            }
            endpoint.close(0_u32.into(), b"shutting down");
            endpoint.wait_idle().await;
            Ok(())
        }
        Some(Command::Get { server, root }) => {
            let roots = CertificateDer::pem_file_iter(root)?.flatten().collect();
            let rate = exchange(*server, roots, &ours, data(&cli)?).await?;
            println!("{SUITE:?}, backend {}, {rate:.0} MB/s each way", cli.crypto.backend);
            Ok(())
        }
    }
}

fn data(cli: &Cli) -> Result<Arc<[u8]>> {
    Ok(match &cli.file {
        Some(path) => std::fs::read(path)?.into(),
        None => common::generated(cli.size).into(),
    })
}

async fn both(cli: &Cli) -> Result<()> {
    let data = data(cli)?;
    let (identity, authority) = Identity::generate()?;
    let ours = (format!("ours, {}", cli.crypto.backend), cli.crypto.provider());
    let base = (cli.crypto.base.to_string(), cli.crypto.base.provider());
    println!("{SUITE:?}, {} bytes, SHA-256 {}", data.len(), common::sha256(&data));
    println!("{:16}{:16}{:>16}", "client", "server", "MB/s each way");
    for (client, server) in [(&ours, &ours), (&base, &base), (&ours, &base)] {
        let endpoint = bind("127.0.0.1:0".parse()?, &identity, &server.1)?;
        let address = endpoint.local_addr()?;
        tokio::spawn(accept(endpoint));
        let roots = vec![authority.der().clone()];
        let rate = exchange(address, roots, &client.1, data.clone()).await?;
        println!("{:16}{:16}{rate:16.0}", client.0, server.0);
    }
    println!("\nall digests agree");
    Ok(())
}

/// Sends `data` in parts, each on a stream of its own, and receives what comes back.
/// Gives the megabytes per second of one direction; both are busy at once.
async fn exchange(
    server: SocketAddr,
    roots: Vec<CertificateDer<'static>>,
    provider: &CryptoProvider,
    data: Arc<[u8]>,
) -> Result<f64> {
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(client_config(provider, roots)?);
    let connection = endpoint.connect(server, "localhost")?.await?;

    let bar = ProgressBar::new(data.len() as u64);
    let part_len = data.len().div_ceil(STREAMS).max(1);
    let start = Instant::now();
    let mut parts = Vec::new();
    for from in (0..data.len()).step_by(part_len) {
        let range = from..data.len().min(from + part_len);
        parts.push(tokio::spawn(round_trip(connection.clone(), data.clone(), range)));
    }
    let mut back = Vec::with_capacity(data.len());
    for part in parts {
        back.extend(part.await??);
        bar.set_position(back.len() as u64);
    }
    let rate = common::rate(data.len(), start.elapsed());
    bar.finish_and_clear();
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    if common::sha256(&back) != common::sha256(&data) {
        return Err("the file came back changed".into());
    }
    Ok(rate)
}

/// Sends one part on a stream of its own and gives what comes back on it. The first part forces a
/// key update when half of it is back.
async fn round_trip(
    connection: Connection,
    data: Arc<[u8]>,
    range: Range<usize>,
) -> Result<Vec<u8>> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let mut echo = vec![0; range.len()];
    let (first, second) = echo.split_at_mut(range.len() / 2);
    let sending = async {
        send.write_all(&data[range.clone()]).await?;
        Result::<_>::Ok(send.finish()?)
    };
    let receiving = async {
        receive.read_exact(first).await?;
        if range.start == 0 {
            connection.force_key_update();
        }
        Ok(receive.read_exact(second).await?)
    };
    tokio::try_join!(sending, receiving)?;
    Ok(echo)
}

/// Answers every connection until the endpoint is closed.
async fn accept(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(echo(send, receive));
            }
        });
    }
}

async fn echo(mut send: SendStream, mut receive: RecvStream) -> Result<()> {
    while let Some(chunk) = receive.read_chunk(64 << 10, true).await? {
        send.write_chunk(chunk.bytes).await?;
    }
    Ok(send.finish()?)
}

fn bind(listen: SocketAddr, identity: &Identity, provider: &CryptoProvider) -> Result<Endpoint> {
    let mut tls = identity.server_config(common::chacha_only(provider.clone()), &[&TLS13])?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let tls = QuicServerConfig::with_initial(tls.into(), initial(provider)?)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport()?);
    Ok(Endpoint::server(config, listen)?)
}

fn client_config(
    provider: &CryptoProvider,
    roots: Vec<CertificateDer<'static>>,
) -> Result<quinn::ClientConfig> {
    let chacha = common::chacha_only(provider.clone());
    let mut tls = common::client_config(chacha, &[&TLS13], roots)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let tls = QuicClientConfig::with_initial(tls.into(), initial(provider)?)?;
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(transport()?);
    Ok(config)
}

/// The suite that protects Initial packets, whatever is negotiated later.
fn initial(provider: &CryptoProvider) -> Result<Suite> {
    provider
        .cipher_suites
        .iter()
        .find(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
        .and_then(|suite| suite.tls13()?.quic_suite())
        .ok_or_else(|| "the base has no AES-128-GCM for Initial packets".into())
}

/// An end whose packets cannot be opened hears nothing: it gives up after this time.
fn transport() -> Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    config.max_idle_timeout(Some(Duration::from_secs(5).try_into()?));
    Ok(Arc::new(config))
}

const SUITE: CipherSuite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;

/// So many streams carry a part of the file each.
const STREAMS: usize = 8;

const ALPN: &[u8] = b"echo";
