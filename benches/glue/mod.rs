//! What the benchmarks of records, connections and packets share: options, competitors, a table.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use rustls::CipherSuite;
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls_chapoly::{Backend, over_with_backend};

use crate::harness::{self, Contest, Entry, Json};

#[derive(Parser)]
pub(crate) struct Options {
    /// Backends to measure [default: all that this CPU has].
    #[arg(long, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Rounds, each with one sample of about 30 us of every implementation.
    #[arg(long, default_value_t = 301)]
    rounds: usize,
    /// Fewer rounds: under two minutes in all.
    #[arg(long)]
    quick: bool,
    /// Also write every figure to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// What `cargo bench` passes.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A provider that takes part, under the name of our backend or of its base.
pub(crate) struct Competitor {
    pub(crate) name: String,
    pub(crate) provider: CryptoProvider,
}

impl Competitor {
    /// The provider with the suite `id` alone.
    pub(crate) fn only(&self, id: CipherSuite) -> CryptoProvider {
        let mut provider = self.provider.clone();
        provider.cipher_suites.retain(|suite| suite.suite() == id);
        assert_eq!(provider.cipher_suites.len(), 1, "{} lacks {id:?}", self.name);
        provider
    }
}

/// Runs the contests of one benchmark, and prints and keeps what they come to.
pub(crate) struct Report {
    options: Options,
    json: Json,
}

impl Report {
    /// Reads the command line.
    pub(crate) fn start() -> Self {
        let mut options = Options::parse();
        if options.backend.is_empty() {
            options.backend = Backend::available().collect();
        }
        if options.quick {
            options.rounds = 31;
        }
        println!("{}", harness::heading());
        println!("minimum and median of one call; ratios: the peer's minimum / ours");
        println!("{HEADER}");
        Self { options, json: Json::new() }
    }

    /// Ours on each backend over ring, then the providers of ring and aws-lc-rs.
    pub(crate) fn competitors(&self) -> Vec<Competitor> {
        let named = |name: &str, provider| Competitor { name: name.into(), provider };
        let ours = |backend: &Backend| {
            named(&backend.to_string(), over_with_backend(ring::default_provider(), *backend))
        };
        let mut all: Vec<_> = self.options.backend.iter().map(ours).collect();
        all.push(named("ring", ring::default_provider()));
        all.push(named("aws-lc-rs", aws_lc_rs::default_provider()));
        all
    }

    /// One row per backend.
    pub(crate) fn contest<A>(
        &mut self,
        op: &str,
        len: usize,
        arena: &mut A,
        mut entries: Vec<Entry<A>>,
    ) {
        let contest = Contest::run(0..self.options.rounds, arena, &mut entries);
        for backend in &self.options.backend {
            let Some(ours) = contest.stat(&backend.to_string()) else { continue };
            let ratio =
                |peer: &str| contest.stat(peer).map_or(f64::NAN, |stat| stat.min / ours.min);
            println!(
                "{op:26} {len:6} {:9} {:9.1} {:9.1} {:6.2} {:6.2} {:6.2} {:9.0}",
                backend.to_string(),
                ours.min,
                ours.median,
                ratio("ring"),
                ratio("aws-lc-rs"),
                ratio(AES),
                len as f64 / ours.min * 1000.0,
            );
        }
        self.json.add(op, len, &contest);
    }

    /// Writes the figures where the command line wants them.
    pub(crate) fn finish(self) {
        if let Some(path) = self.options.json {
            fs::write(&path, self.json.finish())
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
}

/// The name of aws-lc-rs' AES-256-GCM, shown for the choice between the two.
pub(crate) const AES: &str = "AES-256-GCM";

const HEADER: &str = "\
operation                   bytes backend      min ns    med ns   ring aws-lc    AES      MB/s";
