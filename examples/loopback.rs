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
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use rcgen::{CertifiedIssuer, KeyPair};
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use common::{Crypto, Identity, Party, Payload, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let data = cli.payload.load()?;
    let digest = common::sha256(data);
    let certificate = Identity::generate()?;
    let pairs = cli.crypto.pairs();

    println!("{} bytes, SHA-256 {digest}", data.len());
    let mut sink = vec![0; data.len()];
    let bar = ProgressBar::new((2 * pairs.len() * 2 * cli.rounds * data.len()) as u64)
        .with_style(ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}")?);
    for version in [&TLS13, &TLS12] {
        for (index, pair) in pairs.iter().enumerate() {
            let (mut near, mut far) = connect(pair, &certificate, version).await?;
            if index == 0 {
                bar.suspend(|| {
                    println!("\n{}", common::negotiated(near.get_ref().1));
                    println!("{:16}{:16}{:>12}{:>12}", "client", "server", "up MB/s", "down MB/s");
                });
            }

            let mut best = [0.0_f64; 2];
            for turn in 0..2 * cli.rounds {
                sink.fill(0); // what an earlier transfer left must not pass for this one
                let rate;
                (near, far, rate) = transfer(near, far, data, &mut sink, &bar).await?;
                if common::sha256(&sink) != digest {
                    return Err("the file arrived changed".into());
                }
                best[turn % 2] = rate.max(best[turn % 2]);
                core::mem::swap(&mut near, &mut far); // the next turn goes the other way
            }
            let ([client, server], [up, down]) = (pair, best);
            bar.suspend(|| println!("{:16}{:16}{up:12.0}{down:12.0}", client.name, server.name));
        }
    }
    bar.finish_and_clear();
    println!("\nall digests agree");
    Ok(())
}

#[derive(Parser)]
#[command(about = "Send a file through ChaCha20-Poly1305 over TLS on this machine, and time it")]
struct Cli {
    #[command(flatten)]
    payload: Payload,
    /// Transfers in each direction, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    crypto: Crypto,
}

/// Opens a TCP connection on 127.0.0.1 and shakes hands over it: the client's end, the server's.
async fn connect(
    [client, server]: &[Party; 2],
    (identity, authority): &(Identity, CertifiedIssuer<'static, KeyPair>),
    version: &'static SupportedProtocolVersion,
) -> Result<(TlsStream<TcpStream>, TlsStream<TcpStream>)> {
    let root = authority.der().clone();
    let client = common::client_config(common::chacha_only(&client.provider), &[version], [root])?;
    let server = identity.server_config(common::chacha_only(&server.provider), &[version])?;

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
    data: &'static [u8],
    sink: &mut [u8],
    bar: &ProgressBar,
) -> Result<(TlsStream<TcpStream>, TlsStream<TcpStream>, f64)> {
    let start = Instant::now();
    let sender = tokio::spawn(async move {
        from.write_all(data).await?;
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
