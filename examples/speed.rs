//! Twenty seconds on your own CPU: ours beside ring and aws-lc-rs, as the README's table.
//!
//! `cargo bench --bench aead` measures more; `docs/bench/README.md` says how both work.

#[path = "../benches/harness/mod.rs"]
mod harness;
#[path = "../benches/peers/mod.rs"]
mod peers;

use core::time::Duration;
use std::time::Instant;

use clap::Parser;
use rustls_chapoly::Backend;

use harness::Contest;
use peers::slots::{KEY, Slots};
use peers::{AwsLc, Ours, Peer, Ring};

#[derive(Parser)]
struct Options {
    /// The backend to measure [default: the best that this CPU has].
    #[arg(long)]
    backend: Option<Backend>,
}

const SIZES: [usize; 8] = [16, 64, 256, 1024, 1350, 4096, 16384, 65536];
const TIME: Duration = Duration::from_secs(20);

fn main() {
    let backend = Options::parse().backend.unwrap_or_else(Backend::best);
    println!("{}, {}, `cargo run --release --example speed`:\n", harness::cpu(), harness::date());
    println!("| bytes | seal, {backend} | ring | aws-lc-rs | open, {backend} | ring | aws-lc-rs |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for len in SIZES {
        let mut slots = Slots::new(len, &mut Ring::new(&KEY));
        let ours = || Ours::on(backend, &KEY);
        let seal = [
            slots.seal_entry("ours", ours()),
            slots.seal_entry("ring", Ring::new(&KEY)),
            slots.seal_entry("aws-lc-rs", AwsLc::new(&KEY)),
        ];
        let open = [
            slots.open_entry("ours", ours()),
            slots.open_entry("ring", Ring::new(&KEY)),
            slots.open_entry("aws-lc-rs", AwsLc::new(&KEY)),
        ];
        let cells = [seal, open].map(|mut entries| {
            let end = Instant::now() + TIME / (2 * SIZES.len() as u32);
            let rounds = (0..).take_while(|_| Instant::now() < end);
            cells(len, &Contest::run(rounds, &mut slots, &mut entries))
        });
        println!("| {len} | {} |", cells.join(" | "));
    }
    println!(
        "\nNanoseconds per message and gigabytes per second; then how many times longer the other takes."
    );
}

/// Our time and throughput, then each peer's time in units of ours.
fn cells(len: usize, contest: &Contest) -> String {
    let ours = contest.stats[0].min;
    let mut cells = format!("{ours:.0} ns, {:.2} GB/s", len as f64 / ours);
    for peer in &contest.stats[1..] {
        cells += &format!(" | {:.2}x", peer.min / ours);
    }
    cells
}
