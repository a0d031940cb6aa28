//! A small HTTPS/1.1 file server: GET and HEAD of the files of one directory.
//!
//! ```text
//! cargo run --release --example server -- some/directory
//! ```
//!
//! Without `--cert` and `--key` it makes a certificate for localhost and 127.0.0.1 and writes the
//! authority that signed it to `--ca-out`, for `client --root` and `curl --cacert`. Each
//! connection is announced with what it negotiated. Ctrl-C lets running downloads end.

mod common;

use core::net::SocketAddr;
use core::pin::pin;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use http_body_util::channel::{Channel, Sender};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_LENGTH};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, http};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::{Accept, TlsAcceptor};

use common::{Crypto, Identity, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let acceptor = TlsAcceptor::from(Arc::new(config(&cli)?));
    let listener = TcpListener::bind(cli.listen).await?;
    println!("listening on https://{}", listener.local_addr()?);
    println!("ChaCha20-Poly1305 backend {} over {}", cli.crypto.backend, cli.crypto.base);

    let dir: Arc<Path> = cli.directory.into();
    let shutdown = GracefulShutdown::new();
    // One listener for all rounds: a new one would miss a Ctrl-C that came beside a connection.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            interrupted = &mut interrupt => break interrupted?,
        };
        let serving = serve(acceptor.accept(stream), dir.clone(), shutdown.watcher());
        tokio::spawn(async move { serving.await.map_err(|error| eprintln!("{peer} {error:?}")) });
    }
    drop(listener);
    match timeout(PATIENCE, shutdown.shutdown()).await {
        Ok(()) => println!("every connection has ended"),
        Err(_) => println!("cut off what was still running after {PATIENCE:?}"),
    }
    Ok(())
}

#[derive(Parser)]
#[command(about = "Serve the files of one directory over HTTPS")]
struct Cli {
    /// The directory whose files are served
    #[arg(default_value = ".")]
    directory: PathBuf,
    #[arg(long, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// The certificate chain, PEM
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// The private key, PEM
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
    /// Where the authority of a generated certificate is written
    #[arg(long, default_value = "ca.pem")]
    ca_out: PathBuf,
    /// Speak TLS 1.2 only
    #[arg(long)]
    tls12: bool,
    #[command(flatten)]
    crypto: Crypto,
}

fn config(cli: &Cli) -> Result<ServerConfig> {
    let identity = if let (Some(cert), Some(key)) = (&cli.cert, &cli.key) {
        let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
        Identity { chain, key: PrivateKeyDer::from_pem_file(key)? }
    } else {
        let (identity, authority) = Identity::generate()?;
        std::fs::write(&cli.ca_out, authority.pem())?;
        identity
    };
    let versions: &[_] = if cli.tls12 { &[&TLS12] } else { &[&TLS13, &TLS12] };
    let mut config = identity.server_config(cli.crypto.provider(), versions)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Serves one connection until it ends, or until the request after a Ctrl-C.
async fn serve(handshake: Accept<TcpStream>, dir: Arc<Path>, watcher: Watcher) -> Result<()> {
    let stream = timeout(PATIENCE, handshake).await??;
    let (tcp, tls) = stream.get_ref();
    tcp.set_nodelay(true)?;
    println!("{} {}", tcp.peer_addr()?, common::negotiated(tls));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new()) // a header that does not come within 30 s ends the connection
        .serve_connection(TokioIo::new(stream), service_fn(|request| respond(&dir, request)));
    Ok(watcher.watch(connection).await?)
}

async fn respond(dir: &Path, request: Request<Incoming>) -> http::Result<Response<Channel<Bytes>>> {
    let (sender, body) = Channel::new(2);
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let response = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED);
        return response.header(ALLOW, "GET, HEAD").body(body);
    }
    let Some((file, len)) = open(dir, request.uri().path()).await else {
        return Response::builder().status(StatusCode::NOT_FOUND).body(body);
    };
    tokio::spawn(send(file, len, sender)); // hyper drops the body of an answer to HEAD
    Response::builder().header(CONTENT_LENGTH, len).body(body)
}

/// Opens a file of the directory itself. One plain name is all that a path may be: nothing can
/// climb out.
async fn open(dir: &Path, path: &str) -> Option<(File, u64)> {
    let name = Path::new(path.trim_start_matches('/'));
    if name.file_name()? != name {
        return None;
    }
    let file = File::open(dir.join(name)).await.ok()?;
    let metadata = file.metadata().await.ok()?;
    metadata.is_file().then_some((file, metadata.len()))
}

/// Sends the first `len` bytes of a file as the connection takes them. An error, or a file that
/// turns out shorter, cuts the connection off, which the client can tell.
async fn send(file: File, len: u64, mut body: Sender<Bytes>) -> Result<()> {
    let mut file = file.take(len);
    loop {
        let mut piece = Vec::with_capacity(64 << 10);
        if file.read_buf(&mut piece).await? == 0 {
            return Ok(());
        }
        body.send_data(piece.into()).await?;
    }
}

/// How long a handshake, and at Ctrl-C a running download, may take.
const PATIENCE: Duration = Duration::from_secs(10);
