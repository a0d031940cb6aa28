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
use core::time::Duration;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use http_body_util::channel::Channel;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_LENGTH, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
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
use tokio_rustls::TlsAcceptor;

use common::{Crypto, Identity, Result};

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

#[tokio::main]
async fn main() -> ExitCode {
    common::exit(run(Cli::parse()).await)
}

async fn run(cli: Cli) -> Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(config(&cli)?));
    let root: Arc<Path> = cli.directory.into();
    let listener = TcpListener::bind(cli.listen).await?;
    println!("listening on https://{}", listener.local_addr()?);
    println!("ChaCha20-Poly1305 backend {} over {}", cli.crypto.backend, cli.crypto.base);

    let shutdown = GracefulShutdown::new();
    // One listener for all rounds: a new one would miss a Ctrl-C that came beside a connection.
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            interrupted = &mut interrupt => break interrupted?,
        };
        let (acceptor, root, watcher) = (acceptor.clone(), root.clone(), shutdown.watcher());
        tokio::spawn(async move {
            if let Err(error) = serve(stream, peer, acceptor, root, watcher).await {
                eprintln!("{peer} {error}");
            }
        });
    }
    drop(listener);
    match timeout(PATIENCE, shutdown.shutdown()).await {
        Ok(()) => println!("every connection has ended"),
        Err(_) => println!("cut off what was still running after {PATIENCE:?}"),
    }
    Ok(())
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
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    root: Arc<Path>,
    watcher: Watcher,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = timeout(PATIENCE, acceptor.accept(stream)).await??;
    println!("{peer} {}", common::negotiated(stream.get_ref().1));
    let service = service_fn(move |request| respond(root.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new()) // a header that does not come within 30 s ends the connection
        .serve_connection(TokioIo::new(stream), service);
    Ok(watcher.watch(connection).await?)
}

async fn respond(root: Arc<Path>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    // One plain file name is all that a path may be: nothing can climb out of the directory.
    let name = Path::new(request.uri().path().trim_start_matches('/'));
    let mut components = name.components();
    let plain =
        matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));

    let mut response = Response::new(Channel::new(1).1);
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    let file = if plain { File::open(root.join(name)).await.ok() } else { None };
    let metadata = match &file {
        Some(file) => file.metadata().await.ok(),
        None => None,
    };
    match (file, metadata) {
        (Some(file), Some(metadata)) if metadata.is_file() => {
            response.headers_mut().insert(CONTENT_LENGTH, metadata.len().into());
            if request.method() == Method::GET {
                *response.body_mut() = stream(file, metadata.len());
            }
        }
        _ => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(response)
}

/// The first `len` bytes of a file, read piece by piece as the connection takes them. A file that
/// turns out shorter, or an error, cuts the connection off, which the client can tell.
fn stream(file: File, len: u64) -> Body {
    let (mut sender, body) = Channel::new(2);
    tokio::spawn(async move {
        let mut file = file.take(len);
        loop {
            let mut piece = Vec::with_capacity(PIECE_LEN);
            match file.read_buf(&mut piece).await {
                Ok(0) => return,
                Ok(_) if sender.send_data(piece.into()).await.is_err() => return,
                Ok(_) => {}
                Err(error) => return sender.abort(error),
            }
        }
    });
    body
}

type Body = Channel<Bytes, io::Error>;

/// How long a handshake, and at Ctrl-C a running download, may take.
const PATIENCE: Duration = Duration::from_secs(10);

const PIECE_LEN: usize = 64 << 10;
