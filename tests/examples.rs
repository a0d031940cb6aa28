//! The examples, run as processes the way a user runs them: what they print, what they write,
//! and how they fail.
//!
//! Plain `cargo test` builds them. `--test`, `--examples` and `--all-targets` do not: before those,
//! `cargo build --profile test --examples`, or the examples are missing or old.
#![cfg(feature = "rustls")]

use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use rustls_chapoly::Backend;

#[test]
fn loopback_on_every_backend_and_base() {
    for base in ["aws-lc-rs", "ring"] {
        for backend in Backend::available() {
            let backend = backend.to_string();
            let args = ["--size", "4MiB", "--rounds", "1", "--base", base, "--backend", &backend];
            let text = stdout(&run("loopback", &args));

            assert!(text.contains(&painted_digest(4 << 20)), "{text}");
            assert!(text.contains("TLSv1_3 TLS13_CHACHA20_POLY1305_SHA256 X25519"), "{text}");
            assert!(
                text.contains("TLSv1_2 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 X25519"),
                "{text}"
            );
            for client in [format!("ours, {backend}"), base.to_owned()] {
                let rows = text.lines().filter(|line| line.starts_with(&client)).count();
                assert!(rows >= 2, "{text}");
            }
            assert!(text.ends_with("all digests agree\n"), "{text}");
        }
    }
}

#[test]
fn loopback_of_a_file() {
    let dir = directory("loopback_of_a_file");
    let file = dir.join("sent");
    for len in [0, 1, 16_385] {
        fs::write(&file, painted(len)).unwrap();
        let text = stdout(&run("loopback", &[file.to_str().unwrap()]));
        assert!(text.starts_with(&format!("{len} bytes, SHA-256 {}", painted_digest(len))));
        assert!(text.ends_with("all digests agree\n"), "{text}");
    }
    fails("loopback", &["no such file"], 1, "No such file");
}

#[test]
fn arguments_that_cannot_be_met() {
    fails("loopback", &["--backend", "mmx"], 2, "no backend has this name");
    fails("loopback", &["--base", "openssl"], 2, "possible values: aws-lc-rs, ring");
    fails("loopback", &["--size", "4MB"], 2, "unknown unit");
    fails("loopback", &["--size", "99999999999GiB"], 2, "not a size");
    fails("server", &["--cert", "only.pem"], 2, "--key");
    fails("client", &["http://127.0.0.1/"], 1, "not an https:// URL");
}

#[test]
fn client_fetches_from_server() {
    let dir = directory("client_fetches_from_server");
    let root = root_of(&dir);
    for (index, base) in ["aws-lc-rs", "ring"].into_iter().enumerate() {
        let server = Server::start(&dir, &["--base", base]);
        for backend in Backend::available() {
            let backend = backend.to_string();
            for (tls12, suite) in [
                (&["--chacha-only"][..], "TLSv1_3 TLS13_CHACHA20_POLY1305_SHA256"),
                (&["--tls12"], "TLSv1_2 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
            ] {
                // An empty file, one of a record and a byte, and one that needs many.
                for len in [0, 16_385, 1_000_000 + index] {
                    fs::write(dir.join("served"), painted(len)).unwrap();
                    let url = server.url("served");
                    let args = [&["--root", &root, "--backend", &backend, &url], tls12].concat();
                    let output = run("client", &args);
                    assert!(output.status.success(), "{output:?}");
                    assert_eq!(output.stdout, painted(len));
                    let negotiated = String::from_utf8(output.stderr).unwrap();
                    assert!(negotiated.starts_with(suite), "{negotiated}");
                }
            }
        }
    }
}

#[test]
fn client_writes_a_file() {
    let dir = directory("client_writes_a_file");
    let output = dir.join("fetched");
    fs::write(dir.join("served"), painted(100_000)).unwrap();
    let server = Server::start(&dir, &["--tls12"]);
    let url = server.url("served");
    stdout(&run("client", &[&url, "--root", &root_of(&dir), "-o", output.to_str().unwrap()]));
    assert_eq!(fs::read(output).unwrap(), painted(100_000));
}

#[test]
fn server_serves_one_directory_only() {
    let dir = directory("server_serves_one_directory_only");
    let inner = dir.join("inner");
    fs::create_dir_all(inner.join("below")).unwrap();
    fs::write(dir.join("secret"), "secret").unwrap();
    let root = root_of(&inner);
    let server = Server::start(&inner, &[]);
    for path in ["absent", "", "below", "../secret", "below/../../secret", "%2e%2e/secret", "//"] {
        fails("client", &[&server.url(path), "--root", &root], 1, "404 Not Found");
    }
}

#[test]
fn client_refuses_a_certificate() {
    let dir = directory("client_refuses_a_certificate");
    let strangers = directory("client_refuses_a_certificate_of_another");
    let server = Server::start(&dir, &[]);
    let _stranger = Server::start(&strangers, &[]);
    let args = [&server.url("x"), "--root", &root_of(&strangers)];
    fails("client", &args, 1, "certificate is refused");
    fails("client", &[&server.url("x")], 1, "certificate is refused");
}

#[test]
fn client_meets_a_server_without_chacha20() {
    let dir = directory("client_meets_a_server_without_chacha20");
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| !format!("{suite:?}").contains("CHACHA20"));
    let address = hostile_server(provider, &dir, b"HTTP/1.1 204 No Content\r\n\r\n", true);
    let (url, root) = (format!("https://{address}/"), root_of(&dir));
    for versions in [&[][..], &["--tls12"]] {
        let args = [&[&url, "--root", &root, "--chacha-only"], versions].concat();
        fails("client", &args, 1, "no ChaCha20-Poly1305?");
    }
    // The same server is fine for a client that may use AES.
    assert!(run("client", &[&url, "--root", &root]).status.success());
}

#[test]
fn client_cannot_reach_the_host() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fails("client", &[&format!("https://{address}/")], 1, "cannot reach 127.0.0.1 port");
}

#[test]
fn client_notices_a_truncated_stream() {
    let dir = directory("client_notices_a_truncated_stream");
    let output = dir.join("fetched");
    // Less than announced, whether or not the TLS stream ends properly; a length that only the
    // end of the stream tells, and no close_notify; an unfinished chunk.
    for (answer, close_notify) in [
        (&b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"[..], true),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", false),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nshort", false),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nshort", true),
    ] {
        let address = hostile_server(ring::default_provider(), &dir, answer, close_notify);
        let (url, root) = (format!("https://{address}/"), root_of(&dir));
        fails("client", &[&url, "--root", &root], 1, "cut short after 5 bytes");
        let args = [&url, "--root", &root, "-o", output.to_str().unwrap()];
        fails("client", &args, 1, "cut short after 5 bytes");
        assert!(!output.exists() && !dir.join("fetched.part").exists());
    }
}

#[cfg(unix)]
#[test]
fn server_ends_cleanly_at_ctrl_c() {
    let dir = directory("server_ends_cleanly_at_ctrl_c");
    let len = 64 << 20; // more than pipe and socket buffers hold
    fs::write(dir.join("served"), painted(len)).unwrap();
    let mut server = Server::start(&dir, &[]);
    let mut client = Command::new(example("client"))
        .args([&server.url("served"), "--root", &root_of(&dir)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut download = client.stdout.take().unwrap();
    let mut fetched = vec![0; 1];
    download.read_exact(&mut fetched).unwrap();

    interrupt(&server.process);
    let deadline = Instant::now() + DEADLINE;
    while TcpStream::connect(&server.address).is_ok() {
        assert!(Instant::now() < deadline, "the server still accepts connections");
        thread::sleep(Duration::from_millis(10));
    }
    download.read_to_end(&mut fetched).unwrap();
    assert!(client.wait().unwrap().success());
    assert!(fetched == painted(len), "the running download was damaged");

    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("every connection has ended\n"), "{rest}");
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}

#[test]
fn quic_on_every_backend_and_base() {
    for base in ["aws-lc-rs", "ring"] {
        for backend in Backend::available() {
            let backend = backend.to_string();
            let args = ["--size", "1MiB", "--base", base, "--backend", &backend];
            let text = stdout(&run("quic", &args));
            assert!(text.starts_with("TLS13_CHACHA20_POLY1305_SHA256, 1048576 bytes"), "{text}");
            assert!(text.contains(&painted_digest(1 << 20)), "{text}");
            assert!(text.contains(&format!("\nours, {backend}")), "{text}");
            assert!(text.ends_with("all digests agree\n"), "{text}");
        }
    }
}

#[cfg(unix)]
#[test]
fn quic_between_two_processes() {
    let dir = directory("quic_between_two_processes");
    let root = root_of(&dir);
    let mut server = Server::spawn("quic", &["serve", "--address", "127.0.0.1:0", "--ca", &root]);
    let get = ["get", "--address", &server.address, "--ca", &root];
    fails("quic", &[&get[..], &["--size", "300KB"]].concat(), 2, "unknown unit");
    let file = dir.join("sent");
    fs::write(&file, painted(300_000)).unwrap();
    for payload in [["--size", "300KiB"], ["--base=ring", file.to_str().unwrap()]] {
        let text = stdout(&run("quic", &[&get[..], &payload].concat()));
        assert!(text.starts_with("TLS13_CHACHA20_POLY1305_SHA256, backend"), "{text}");
    }

    interrupt(&server.process);
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}

/// A `server`, or `quic serve`, on a free port; ended with the test.
struct Server {
    process: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(dir: &Path, args: &[&str]) -> Self {
        let root = root_of(dir);
        let fixed = [dir.to_str().unwrap(), "--listen", "127.0.0.1:0", "--ca-out", &root];
        Self::spawn("server", &[&fixed, args].concat())
    }

    fn spawn(name: &str, args: &[&str]) -> Self {
        let mut process =
            Command::new(example(name)).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address =
            line.trim().trim_start_matches("listening on ").trim_start_matches("https://");
        Self { address: address.to_owned(), process, stdout }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Shakes hands, reads a request, sends `answer` as it stands and closes, for every connection;
/// writes its certificate where `root_of` finds it.
fn hostile_server(
    provider: CryptoProvider,
    dir: &Path,
    answer: &'static [u8],
    close_notify: bool,
) -> String {
    let identity = rcgen::generate_simple_self_signed(["127.0.0.1".into()]).unwrap();
    fs::write(root_of(dir), identity.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut tls = ServerConnection::new(config.clone()).unwrap();
            let mut socket = socket.unwrap();
            // A handshake that the client rightly refuses ends here with an error.
            let _ = answer_once(&mut tls, &mut socket, answer, close_notify);
        }
    });
    address
}

fn answer_once(
    tls: &mut ServerConnection,
    socket: &mut TcpStream,
    answer: &[u8],
    close_notify: bool,
) -> std::io::Result<()> {
    let mut stream = rustls::Stream::new(tls, socket);
    let mut request = BufReader::new(&mut stream).lines();
    while !request.next().unwrap_or(Ok(String::new()))?.is_empty() {}
    drop(request);
    stream.write_all(answer)?;
    if close_notify {
        tls.send_close_notify();
        tls.write_tls(socket)?;
    }
    socket.shutdown(Shutdown::Write)?;
    socket.read_to_end(&mut Vec::new())?;
    Ok(())
}

fn run(name: &str, args: &[&str]) -> Output {
    Command::new(example(name)).args(args).output().unwrap()
}

/// The standard output of a run that has to succeed.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A run has to fail with `code`, and to say why on standard error.
fn fails(name: &str, args: &[&str], code: i32, reason: &str) {
    let output = run(name, args);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(reason), "{name} {args:?} said: {text}");
    assert!(!text.contains("panicked"), "{text}");
}

/// The examples lie beside the directory of the test executables.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let path = this.ancestors().nth(2).unwrap().join("examples").join(name);
    let path = path.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{path:?} is missing: run plain `cargo test`, or build the examples");
    path
}

/// An empty directory of the test's own.
fn directory(test: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn root_of(dir: &Path) -> String {
    dir.join("ca.pem").to_str().unwrap().to_owned()
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn interrupt(process: &Child) {
    // SAFETY: kill has no memory effects here, and the child, not yet waited for, owns its id.
    let result = unsafe { libc::kill(process.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(result, 0);
}

/// What the examples send when no file is given.
fn painted(len: usize) -> Vec<u8> {
    (0..251).cycle().take(len).collect()
}

fn painted_digest(len: usize) -> String {
    let digest = ::ring::digest::digest(&::ring::digest::SHA256, &painted(len));
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Far more than any of this takes.
const DEADLINE: Duration = Duration::from_secs(30);
