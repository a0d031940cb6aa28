//! Fetches an https:// URL to a file or to standard output.
//!
//! ```text
//! cargo run --release --example client -- https://127.0.0.1:8443/some.file --root ca.pem
//! ```
//!
//! What was negotiated goes to standard error. The exit code is 1, after one line that says why,
//! for a refused certificate, a server without ChaCha20-Poly1305 (with `--chacha-only`), a host
//! that cannot be reached, and a stream that ends too early; a file then does not get its name.

mod common;

use core::time::Duration;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConfig, Error};
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use common::{Crypto, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let stream = connect(&cli).await?;
    eprintln!("{}", common::negotiated(stream.get_ref().1));
    let response = get(stream, &cli.url).await?;
    if !response.status().is_success() {
        return Err(format!("the server answered {}", response.status()).into());
    }
    let Some(output) = cli.output else {
        return copy(response, tokio::io::stdout()).await;
    };
    let mut part = output.clone().into_os_string();
    part.push(".part");
    let copied = copy(response, File::create(&part).await?).await;
    match copied {
        Ok(()) => tokio::fs::rename(part, output).await?,
        Err(_) => tokio::fs::remove_file(part).await?,
    }
    copied
}

#[derive(Parser)]
#[command(about = "Fetch a file over HTTPS")]
struct Cli {
    url: Uri,
    /// Write here instead of to standard output
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Trust the authorities in this PEM file instead of the platform's
    #[arg(long)]
    root: Option<PathBuf>,
    /// Speak TLS 1.2 only
    #[arg(long)]
    tls12: bool,
    /// Offer no suite but ChaCha20-Poly1305
    #[arg(long)]
    chacha_only: bool,
    #[command(flatten)]
    crypto: Crypto,
}

async fn connect(cli: &Cli) -> Result<TlsStream<TcpStream>> {
    let host = match (cli.url.scheme_str(), cli.url.host()) {
        (Some("https"), Some(host)) => host.trim_matches(['[', ']']),
        _ => return Err("not an https:// URL".into()),
    };
    let port = cli.url.port_u16().unwrap_or(443);
    let connector = TlsConnector::from(Arc::new(config(cli)?));
    let name = ServerName::try_from(host.to_owned())?;

    let stream = timeout(PATIENCE, TcpStream::connect((host, port)))
        .await
        .map_err(io::Error::from)
        .flatten()
        .map_err(|error| format!("cannot reach {host} port {port}: {error}"))?;
    stream.set_nodelay(true)?;
    Ok(timeout(PATIENCE, connector.connect(name, stream)).await?.map_err(explain)?)
}

fn config(cli: &Cli) -> Result<ClientConfig> {
    let roots = match &cli.root {
        Some(path) => CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let provider = if cli.chacha_only {
        common::chacha_only(&cli.crypto.provider())
    } else {
        rustls_chapoly::chacha_first(cli.crypto.provider())
    };
    let versions: &[_] = if cli.tls12 { &[&TLS12] } else { &[&TLS13, &TLS12] };
    let mut config = common::client_config(provider, versions, roots)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A failed handshake in the words of somebody who runs a client.
fn explain(error: io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidCertificate(reason)) => {
            format!("the server's certificate is refused: {reason}")
        }
        Some(Error::AlertReceived(AlertDescription::HandshakeFailure)) => {
            String::from("the server has none of the offered suites (no ChaCha20-Poly1305?)")
        }
        _ => format!("the handshake failed: {error}"),
    }
}

async fn get(stream: TlsStream<TcpStream>, url: &Uri) -> Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let host = url.authority().map_or("", |authority| authority.as_str());
    let request = Request::get(path).header(HOST, host).body(Empty::<Bytes>::new())?;
    Ok(sender.send_request(request).await?)
}

async fn copy(mut response: Response<Incoming>, mut output: impl AsyncWrite + Unpin) -> Result<()> {
    let mut done = 0;
    while let Some(frame) = response.frame().await {
        let frame = frame.map_err(|error| format!("cut short after {done} bytes: {error}"))?;
        if let Ok(data) = frame.into_data() {
            output.write_all(&data).await?;
            done += data.len();
        }
    }
    output.flush().await?;
    eprintln!("{done} bytes");
    Ok(())
}

/// How long connecting and the handshake may take, each.
const PATIENCE: Duration = Duration::from_secs(10);
