//! ChaCha20-Poly1305 through the public API, every backend beside every peer in one run.
//!
//! `docs/bench/README.md` says how to run it and how to read it.

mod harness;
mod peers;

use core::fmt;
use core::hint::black_box;
use core::str::FromStr;
use std::fs;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use rustls_chapoly::Backend;
use rustls_chapoly::aead::ChaCha20Poly1305;

use harness::{Contest, Entry, Json, sample};
use peers::slots::{AAD, KEY, Slots};
use peers::{Ours, Peer};

#[derive(Parser)]
struct Options {
    /// Backends to measure [default: all that this CPU has].
    #[arg(long, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Operations to measure [default: all].
    #[arg(long, value_delimiter = ',')]
    op: Vec<Op>,
    /// Message lengths in bytes [default: the edges of blocks, tiles, packets and records].
    #[arg(long, value_delimiter = ',')]
    size: Vec<usize>,
    /// Lengths FIRST..LAST/STEP, and the largest step over the line between the neighbours 256
    /// bytes below and above.
    #[arg(long, conflicts_with = "size")]
    sweep: Option<Sweep>,
    /// Rounds, each with one sample of about 30 us of every implementation.
    #[arg(long, default_value = "301", value_parser = rounds)]
    rounds: usize,
    /// Fewer rounds: under two minutes in all.
    #[arg(long)]
    quick: bool,
    /// Ours only.
    #[arg(long)]
    alone: bool,
    /// Also write every figure to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// What `cargo bench` passes.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Op {
    /// `seal_in_place`
    Seal,
    /// `open_in_place`
    Open,
    /// `seal_gather` of n - 1 and 1 bytes beside a copy of both and `seal_in_place`
    Gather,
    /// A new key and one `seal_in_place`
    New,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seal => "seal_in_place",
            Self::Open => "open_in_place",
            Self::Gather => "seal_gather",
            Self::New => "new + seal_in_place",
        })
    }
}

#[derive(Clone, Copy)]
struct Sweep {
    first: usize,
    last: usize,
    step: usize,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (first, rest) = text.split_once("..")?;
            let (last, step) = rest.split_once('/')?;
            Some((first.parse().ok()?, last.parse().ok()?, step.parse().ok().filter(|&s| s > 0)?))
        };
        let (first, last, step) = parse().ok_or("not of the form 512..4096/64")?;
        Ok(Self { first, last, step })
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "not a positive number".into())
}

const SIZES: [usize; 25] = [
    0, 16, 17, 64, 65, 128, 129, 192, 256, 257, 512, 768, 1024, 1025, 1280, 1350, 1500, 1536, 2048,
    2560, 4096, 4097, 16384, 16385, 65536,
];
/// How far a sweep looks for the neighbours of a length.
const NEIGHBOUR: usize = 256;

fn main() {
    let mut options = Options::parse();
    if options.backend.is_empty() {
        options.backend = Backend::available().collect();
    }
    if options.op.is_empty() {
        options.op = Op::value_variants().to_vec();
    }
    if options.quick {
        options.rounds = 31;
    }
    if let Some(Sweep { first, last, step }) = options.sweep {
        let first = first.saturating_sub(NEIGHBOUR);
        options.size = (first..=last + NEIGHBOUR).step_by(step).collect();
    } else if options.size.is_empty() {
        options.size = SIZES.to_vec();
    }

    println!("{}", harness::heading());
    println!("{}", LEGEND);
    let mut json = Json::new();
    for &op in &options.op {
        let sizes = if op == Op::New { &[64][..] } else { &options.size };
        let results: Vec<_> = sizes.iter().map(|&len| (len, measure(op, len, &options))).collect();
        for (len, contest) in &results {
            json.add(&op.to_string(), *len, contest);
        }
        for backend in &options.backend {
            match op {
                Op::Gather => print_gather(*backend, &results),
                _ => print_table(op, *backend, &results),
            }
            if options.sweep.is_some() {
                print_largest_step(*backend, &results);
            }
        }
    }
    if let Some(path) = options.json {
        fs::write(&path, json.finish()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

const LEGEND: &str = "\
ns: minimum and median of one call; c/B: core cycles per byte by the median;
ratios: the peer's minimum / ours, so that more than 1 means that ours is faster";

/// One operation at one length by all that the options ask for.
fn measure(op: Op, len: usize, options: &Options) -> Contest {
    let mut slots = Slots::new(len, &mut peers::Ring::new(&KEY));
    let mut entries = Entries { op, slots: &mut slots, list: Vec::new() };
    for &backend in &options.backend {
        match op {
            Op::Gather if len == 0 => {}
            Op::Gather => entries.add_gather(backend),
            _ => entries.add(&backend.to_string(), Ours::on(backend, &KEY)),
        }
    }
    if !options.alone && op != Op::Gather {
        entries.add_peers(options.backend.iter().any(|b| b.to_string() == "portable"));
    }
    let mut list = entries.list;
    Contest::run(0..options.rounds, &mut slots, &mut list)
}

/// The competitors of one contest, each checked on the contest's messages when it joins.
struct Entries<'a> {
    op: Op,
    slots: &'a mut Slots,
    list: Vec<Entry<Slots>>,
}

impl Entries<'_> {
    fn add<P: Peer>(&mut self, name: &str, peer: P) {
        self.list.push(match self.op {
            Op::Open => self.slots.open_entry(name, peer),
            Op::New => self.slots.new_entry(name, peer),
            Op::Seal | Op::Gather => self.slots.seal_entry(name, peer),
        });
    }

    fn add_gather(&mut self, backend: Backend) {
        let calls = self.slots.calls;
        let mut add = |name: String, seal: fn(&ChaCha20Poly1305, &[u8; 12], &[u8], &mut [u8])| {
            let key = ChaCha20Poly1305::with_backend(&KEY, backend);
            let run = Box::new(move |slots: &mut Slots| {
                sample(
                    slots,
                    calls,
                    |_| (),
                    |slots| slots.gather(|nonce, source, out| seal(&key, nonce, source, out)),
                )
            });
            self.list.push(Entry { name, run });
        };
        add(backend.to_string(), |key, nonce, source, out| {
            let (most, last) = source.split_at(source.len() - 1);
            key.seal_gather(nonce, &AAD, black_box(&[most, last]), out).expect("a fitting output");
        });
        add(format!("{backend} copy"), |key, nonce, source, out| {
            let (most, last) = black_box(source.split_at(source.len() - 1));
            let (text, tag) = out.split_at_mut(source.len());
            text[..most.len()].copy_from_slice(most);
            text[most.len()..].copy_from_slice(last);
            let sealed = key.seal_in_place(nonce, &AAD, text).expect("a length in range");
            tag.copy_from_slice(sealed.as_ref());
        });
    }

    /// All peers that run here; those without SIMD code of their own only beside `portable`.
    fn add_peers(&mut self, portable: bool) {
        self.add("ring", peers::Ring::new(&KEY));
        self.add("aws-lc-rs", peers::AwsLc::new(&KEY));
        self.add("RustCrypto", peers::RustCrypto::new(&KEY));
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if peers::Graviola::runs_here() {
            self.add("graviola", peers::Graviola::new(&KEY));
        }
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        {
            use peers::dynamic::{Ipsec, OpenSsl};
            if OpenSsl::installed() {
                self.add("OpenSSL", OpenSsl::new(&KEY));
            }
            if Ipsec::<true>::installed() {
                self.add("ipsec-mb direct", Ipsec::<false>::new(&KEY));
                self.add("ipsec-mb job", Ipsec::<true>::new(&KEY));
            }
        }
        if portable {
            self.add("libcrux", peers::Libcrux::new(&KEY));
            self.add("orion", peers::Orion::new(&KEY));
        }
    }
}

fn print_table(op: Op, backend: Backend, results: &[(usize, Contest)]) {
    let name = backend.to_string();
    println!("\n{op}, {name}");
    println!(" bytes  min ns  med ns   c/B    ring  aws-lc  best other       libcrux  orion");
    for (len, contest) in results {
        let Some(ours) = contest.stat(&name) else { continue };
        let ratio = |peer: &str| contest.stat(peer).map_or(f64::NAN, |stat| stat.min / ours.min);
        let is_other =
            |peer: &str| peer.parse::<Backend>().is_err() && peer != "ring" && peer != "aws-lc-rs";
        let others = contest.stats.iter().filter(|stat| is_other(&stat.name));
        let best = others.min_by(|a, b| a.min.total_cmp(&b.min));
        let (best_ratio, best) =
            best.map_or((f64::NAN, "-"), |stat| (stat.min / ours.min, stat.name.as_str()));
        println!(
            "{len:6} {:7.1} {:7.1} {:6.3} {:6.2} {:6.2} {best_ratio:6.2} {best:15} {:6.2} {:6.2}",
            ours.min,
            ours.median,
            ours.cycles / *len as f64,
            ratio("ring"),
            ratio("aws-lc-rs"),
            ratio("libcrux"),
            ratio("orion"),
        );
    }
    print_steady_state(&name, results);
}

/// The slope between the two longest usual messages: what a byte costs without the fixed parts.
fn print_steady_state(name: &str, results: &[(usize, Contest)]) {
    let cycles = |len: usize| {
        let (_, contest) = results.iter().find(|(n, _)| *n == len)?;
        Some(contest.stat(name)?.cycles)
    };
    if let (Some(short), Some(long)) = (cycles(16384), cycles(65536)) {
        let slope = (long - short) / (65536.0 - 16384.0);
        println!("steady state, 16 KiB to 64 KiB: {slope:.3} cycles per byte");
    }
}

fn print_gather(backend: Backend, results: &[(usize, Contest)]) {
    println!("\nseal_gather (n - 1 and 1 bytes), {backend}, beside copy + seal_in_place");
    println!(" bytes  min ns  med ns  copy min  copy med  ratio min  ratio med");
    for (len, contest) in results {
        let (name, copy) = (backend.to_string(), format!("{backend} copy"));
        let Some((ours, copy)) = contest.stat(&name).zip(contest.stat(&copy)) else { continue };
        println!(
            "{len:6} {:7.1} {:7.1}  {:8.1}  {:8.1}  {:9.3}  {:9.3}",
            ours.min,
            ours.median,
            copy.min,
            copy.median,
            copy.min / ours.min,
            copy.median / ours.median,
        );
    }
}

fn print_largest_step(backend: Backend, results: &[(usize, Contest)]) {
    // in cycles: between two lengths the clock may change by more than a step
    let time = |len: usize| {
        let (_, contest) = results.iter().find(|(n, _)| *n == len)?;
        Some(contest.stat(&backend.to_string())?.cycles)
    };
    let step = |len: usize| {
        let line = (time(len.checked_sub(NEIGHBOUR)?)? + time(len + NEIGHBOUR)?) / 2.0;
        Some((len, (time(len)? / line - 1.0) * 100.0))
    };
    let steps = results.iter().filter_map(|(len, _)| step(*len));
    if let Some((len, percent)) = steps.max_by(|a, b| a.1.total_cmp(&b.1)) {
        println!("largest step: {len} bytes cost {percent:.1} % over the line between neighbours");
    }
}
