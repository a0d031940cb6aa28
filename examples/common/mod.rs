//! What the TLS and QUIC examples share: the provider and the data chosen on the command line, a
//! throw-away certificate for this machine, digests, and the words for what was negotiated.

#![allow(dead_code)] // every example compiles this file and uses its part of it

use core::error::Error;
use core::fmt::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, CommonState, RootCertStore, ServerConfig, SupportedProtocolVersion};
use rustls_chapoly::Backend;

pub(crate) type Result<T, E = Failure> = core::result::Result<T, E>;

/// Any error. What `main` returns is shown by `Debug`: here, in one line with its causes.
pub(crate) struct Failure(Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// The command-line choice of a provider.
#[derive(Args)]
pub(crate) struct Crypto {
    /// The provider that supplies everything but ChaCha20-Poly1305
    #[arg(long, global = true, value_enum, default_value_t = Base::AwsLcRs)]
    pub(crate) base: Base,

    /// The implementation of ChaCha20-Poly1305: avx512, avx2, ssse3 or portable
    #[arg(long, global = true, default_value_t = Backend::best())]
    pub(crate) backend: Backend,
}

impl Crypto {
    /// Our ChaCha20-Poly1305 in the chosen base.
    pub(crate) fn provider(&self) -> CryptoProvider {
        rustls_chapoly::over_with_backend(self.base.provider(), self.backend)
    }

    /// Who talks to whom when speeds are compared: each a client and a server.
    pub(crate) fn pairs(&self) -> [[Party; 2]; 3] {
        let ours = Party { name: format!("ours, {}", self.backend), provider: self.provider() };
        let base = Party { name: self.base.to_string(), provider: self.base.provider() };
        [[ours.clone(), ours.clone()], [base.clone(), base.clone()], [ours, base]]
    }
}

/// A provider, and the name to print for it.
#[derive(Clone)]
pub(crate) struct Party {
    pub(crate) name: String,
    pub(crate) provider: CryptoProvider,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Base {
    AwsLcRs,
    Ring,
}

impl Base {
    pub(crate) fn provider(self) -> CryptoProvider {
        match self {
            Self::AwsLcRs => aws_lc_rs::default_provider(),
            Self::Ring => ring::default_provider(),
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AwsLcRs => "aws-lc-rs",
            Self::Ring => "ring",
        })
    }
}

/// The provider with its ChaCha20 suites alone, so that nothing else can be negotiated.
pub(crate) fn chacha_only(provider: &CryptoProvider) -> CryptoProvider {
    let mut provider = provider.clone();
    provider.cipher_suites.retain(|suite| {
        suite.suite().as_str().is_some_and(|name| name.contains("CHACHA20_POLY1305"))
    });
    provider
}

/// A client that trusts `roots`.
pub(crate) fn client_config(
    provider: CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
    roots: impl IntoIterator<Item = CertificateDer<'static>>,
) -> Result<ClientConfig> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots);
    Ok(ClientConfig::builder_with_provider(provider.into())
        .with_protocol_versions(versions)?
        .with_root_certificates(store)
        .with_no_client_auth())
}

/// What a server shows: its certificate chain, and the key to it.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new certificate for localhost and 127.0.0.1, and the authority that signed it.
    pub(crate) fn generate() -> Result<(Self, CertifiedIssuer<'static, KeyPair>)> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.distinguished_name.push(DnType::CommonName, "rustls-chapoly example authority");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let key = KeyPair::generate()?;
        let names = ["localhost".into(), "127.0.0.1".into()];
        let leaf = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Ok((Self { chain: vec![leaf.der().clone()], key }, authority))
    }

    pub(crate) fn server_config(
        &self,
        provider: CryptoProvider,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<ServerConfig> {
        Ok(ServerConfig::builder_with_provider(provider.into())
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?)
    }
}

/// Protocol, suite and key exchange of a finished handshake.
pub(crate) fn negotiated(connection: &CommonState) -> String {
    let mut text = String::new();
    if let Some(version) = connection.protocol_version() {
        let _ = write!(text, "{version:?}");
    }
    if let Some(suite) = connection.negotiated_cipher_suite() {
        let _ = write!(text, " {:?}", suite.suite());
    }
    if let Some(group) = connection.negotiated_key_exchange_group() {
        let _ = write!(text, " {:?}", group.name());
    }
    text
}

/// The SHA-256 of `data` in hexadecimal.
pub(crate) fn sha256(data: &[u8]) -> String {
    let mut text = String::new();
    for byte in ::ring::digest::digest(&::ring::digest::SHA256, data).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The command-line choice of what is sent.
#[derive(Args)]
pub(crate) struct Payload {
    /// The file to send; one is generated if none is given
    file: Option<PathBuf>,

    /// The size of the generated file
    #[arg(long, default_value = "256MiB", value_parser = parse_size)]
    size: usize,
}

impl Payload {
    /// The bytes to send, which live as long as the program. Those generated have a period that
    /// divides no block length.
    pub(crate) fn load(&self) -> Result<&'static [u8]> {
        let bytes = match &self.file {
            Some(path) => std::fs::read(path)?,
            None => (0..251).cycle().take(self.size).collect(),
        };
        Ok(bytes.leak())
    }
}

/// Reads "4096", "64KiB", "256MiB" or "1GiB".
fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => return Err(format!("unknown unit {other:?}: use KiB, MiB or GiB")),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| String::from("not a size that fits this machine"))
}

/// Megabytes (10^6) per second.
pub(crate) fn rate(bytes: usize, time: core::time::Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}
