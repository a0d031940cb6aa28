//! Sends a file over real TCP on 127.0.0.1, up and down, in TLS 1.3 and TLS 1.2, through
//! ChaCha20-Poly1305 of this crate, of the unmodified base provider, and between the two.
//!
//! ```text
//! cargo run --release --example loopback
//! cargo run --release --example loopback -- --size 1GiB --base ring
//! cargo run --release --example loopback -- some.file
//! ```
//!
//! The exit code is 0 only if every SHA-256 at the far end equals the sender's. The clock covers
//! the transfer alone; digests are computed outside of it.

mod common;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use rcgen::{CertifiedIssuer, KeyPair};
use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use common::{Crypto, Identity, Result};

#[derive(Parser)]
#[command(about = "Send a file through ChaCha20-Poly1305 over TLS on this machine, and time it")]
struct Cli {
    /// The file to send; one is generated if none is given
    file: Option<PathBuf>,

    /// The size of the generated file
    #[arg(long, default_value = "256MiB", value_parser = common::parse_size)]
    size: usize,

    /// Transfers in each direction, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    #[command(flatten)]
    crypto: Crypto,
}

/// A provider that has only ChaCha20 suites, and the name to print for it.
struct Party {
    name: String,
    provider: CryptoProvider,
}

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run(Cli::parse()).await)
}

async fn run(cli: Cli) -> Result<()> {
    let data = Arc::new(match &cli.file {
        Some(path) => tokio::fs::read(path).await?,
        None => common::generated(cli.size),
    });
    let certificate = Identity::generate()?;
    let ours = Party {
        name: format!("ours, {}", cli.crypto.backend),
        provider: common::chacha_only(cli.crypto.provider()),
    };
    let base = Party {
        name: cli.crypto.base.to_string(),
        provider: common::chacha_only(cli.crypto.base.provider()),
    };
    let pairs = [(&ours, &ours), (&base, &base), (&ours, &base)];

    let digest = common::sha256(&data);
    println!("{} bytes, SHA-256 {digest}", data.len());
    let mut sink = vec![0; data.len()];
    let bar = ProgressBar::new((2 * pairs.len() * 2 * cli.rounds * data.len()) as u64)
        .with_style(ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}")?);
    for version in [&TLS13, &TLS12] {
        for (index, (client, server)) in pairs.into_iter().enumerate() {
            let (mut near, mut far) = connect(client, server, &certificate, version).await?;
            if index == 0 {
                let negotiated = common::negotiated(near.get_ref().1);
                bar.suspend(|| {
                    println!("\n{negotiated}");
                    println!("{:16}{:16}{:>12}{:>12}", "client", "server", "up MB/s", "down MB/s");
                });
            }

            let mut best = [0.0_f64; 2];
            for turn in 0..2 * cli.rounds {
                sink.fill(0); // what an earlier transfer left must not pass for this one
                let rate;
                (near, far, rate) = transfer(near, far, &data, &mut sink, &bar).await?;
                if common::sha256(&sink) != digest {
                    return Err("the file arrived changed".into());
                }
                best[turn % 2] = rate.max(best[turn % 2]);
                core::mem::swap(&mut near, &mut far); // the next turn goes the other way
            }
            bar.suspend(|| {
                println!("{:16}{:16}{:12.0}{:12.0}", client.name, server.name, best[0], best[1]);
            });
        }
    }
    bar.finish_and_clear();
    println!("\nall digests agree");
    Ok(())
}

/// Opens a TCP connection on 127.0.0.1 and shakes hands over it: the client's end, the server's.
async fn connect(
    client: &Party,
    server: &Party,
    (identity, authority): &(Identity, CertifiedIssuer<'static, KeyPair>),
    version: &'static SupportedProtocolVersion,
) -> Result<(TlsStream<TcpStream>, TlsStream<TcpStream>)> {
    let root = authority.der().clone();
    let client = common::client_config(client.provider.clone(), &[version], [root])?;
    let server = identity.server_config(server.provider.clone(), &[version])?;

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (near, (far, _)) = tokio::try_join!(TcpStream::connect(address), listener.accept())?;
    let (near, far) = tokio::try_join!(
        TlsConnector::from(Arc::new(client)).connect("localhost".try_into()?, near),
        TlsAcceptor::from(Arc::new(server)).accept(far),
    )?;
    Ok((near.into(), far.into()))
}

/// Sends `data` from one end on a task of its own and receives it at the other, into `sink`.
/// Gives both ends back, and the megabytes per second.
async fn transfer(
    mut from: TlsStream<TcpStream>,
    mut to: TlsStream<TcpStream>,
    data: &Arc<Vec<u8>>,
    sink: &mut [u8],
    bar: &ProgressBar,
) -> Result<(TlsStream<TcpStream>, TlsStream<TcpStream>, f64)> {
    let data = data.clone();
    let start = Instant::now();
    let sender = tokio::spawn(async move {
        from.write_all(&data).await?;
        from.flush().await?;
        io::Result::Ok(from)
    });
    let mut done = 0;
    while done < sink.len() {
        let received = to.read(&mut sink[done..]).await?;
        if received == 0 {
            return Err("the sender closed the connection early".into());
        }
        done += received;
        bar.inc(received as u64);
    }
    let from = sender.await??;
    Ok((from, to, common::rate(done, start.elapsed())))
}
