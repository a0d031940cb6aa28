//! A small harness for comparing implementations that differ by a few percent.
//!
//! ```text
//! repeat for every round:
//!     for every entry, starting with another one each round:
//!         run it once untimed, then in timed batches until 30 us have been timed
//! per entry: the minimum and the median over the rounds
//! ```
//!
//! Rounds interleave the entries, so that a change of the clock or a noisy neighbour meets all of
//! them; rotation keeps any one from always following the same other. The minimum is what the code
//! can do, the median what it did in this run. The core's clock is measured right after each run by
//! a chain of dependent multiplies: times become cycles without trusting a nominal frequency, or
//! that the clock is the same for all (wide vectors lower it for a while).
#![allow(dead_code, reason = "every benchmark uses a part")]

use core::fmt::Write;
use core::hint::black_box;
use core::time::Duration;
use std::fs;
use std::time::{Instant, SystemTime};

/// One implementation in a comparison, measured on an arena that all entries share.
pub(crate) struct Entry<A> {
    pub(crate) name: String,
    /// Gives nanoseconds per call, usually by [`sample`].
    pub(crate) run: Box<dyn FnMut(&mut A) -> f64>,
}

/// What the rounds of one entry came to, per call: times in nanoseconds.
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) min: f64,
    pub(crate) median: f64,
    /// The median in cycles of the core (NaN where the chain's latency is unknown).
    pub(crate) cycles: f64,
}

/// The statistics of all entries.
pub(crate) struct Contest {
    pub(crate) stats: Vec<Stat>,
}

impl Contest {
    /// Runs all `entries` on `arena` once per number that `rounds` gives, at least one.
    pub(crate) fn run<A>(
        rounds: impl Iterator<Item = usize>,
        arena: &mut A,
        entries: &mut [Entry<A>],
    ) -> Self {
        let mut times = vec![Vec::new(); entries.len()];
        let mut cycles = times.clone();
        for round in rounds {
            for i in 0..entries.len() {
                let i = (i + round) % entries.len();
                let ns = (entries[i].run)(arena);
                times[i].push(ns);
                cycles[i].push(ns * clock_ghz());
            }
        }
        let stats = entries.iter().enumerate().map(|(i, entry)| {
            let median_ns = median(&mut times[i]);
            Stat {
                name: entry.name.clone(),
                min: times[i][0],
                median: median_ns,
                cycles: median(&mut cycles[i]),
            }
        });
        Self { stats: stats.collect() }
    }

    pub(crate) fn stat(&self, name: &str) -> Option<&Stat> {
        self.stats.iter().find(|stat| stat.name == name)
    }
}

/// The median; sorts the values.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds per call of `batch`, which makes `calls` calls. `refresh` prepares each batch
/// untimed; the cost of reading the clock is taken off.
pub(crate) fn sample<A>(
    arena: &mut A,
    calls: usize,
    mut refresh: impl FnMut(&mut A),
    mut batch: impl FnMut(&mut A),
) -> f64 {
    const ENOUGH: Duration = Duration::from_micros(30);
    refresh(arena);
    batch(arena);
    let (mut timed, mut batches) = (Duration::ZERO, 0);
    while timed < ENOUGH {
        refresh(arena);
        let start = Instant::now();
        batch(arena);
        timed += start.elapsed();
        batches += 1;
    }
    let ns = timed.as_nanos() as f64 / f64::from(batches) - clock_overhead_ns();
    ns / calls as f64
}

/// What a pair of clock readings adds to the time between them: the least of many.
fn clock_overhead_ns() -> f64 {
    use std::sync::LazyLock;
    static OVERHEAD: LazyLock<f64> = LazyLock::new(|| {
        let empty = (0..10_000).map(|_| Instant::now().elapsed().as_nanos());
        empty.min().unwrap_or(0) as f64
    });
    *OVERHEAD
}

/// Squares are a chain that no compiler shortens; each takes three cycles on every x86-64 of the
/// last fifteen years.
fn clock_ghz() -> f64 {
    const SQUARES: u32 = 3000;
    const CYCLES_EACH: f64 = 3.0;
    if !cfg!(target_arch = "x86_64") {
        return f64::NAN;
    }
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let start = Instant::now();
    for _ in 0..SQUARES {
        x = x.wrapping_mul(x);
    }
    black_box(x);
    let ns = start.elapsed().as_nanos() as f64 - clock_overhead_ns();
    f64::from(SQUARES) * CYCLES_EACH / ns
}

/// The line that a recorded result starts with: processor, date, command.
pub(crate) fn heading() -> String {
    let command: Vec<_> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    format!("{}, {}, arguments: {}", cpu(), date(), command.join(" "))
}

/// The processor's name as the operating system gives it.
pub(crate) fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        let line = info.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    match (field("cpu family"), field("model\t")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name,
    }
}

/// Today in UTC, by the proleptic Gregorian calendar.
pub(crate) fn date() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut days = since.as_secs() / 86_400;
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

/// All results of a run as one JSON document, for comparing runs by machine.
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn new() -> Self {
        Self(format!("{{\"heading\": {:?}, \"results\": [", heading()))
    }

    pub(crate) fn add(&mut self, op: &str, len: usize, contest: &Contest) {
        for stat in &contest.stats {
            let comma = if self.0.ends_with('[') { "" } else { "," };
            let _ = write!(
                self.0,
                "{comma}\n{{\"op\": {op:?}, \"bytes\": {len}, \"name\": {:?}, \
                 \"min_ns\": {:.2}, \"median_ns\": {:.2}",
                stat.name, stat.min, stat.median
            );
            if stat.cycles.is_finite() {
                let _ = write!(self.0, ", \"median_cycles\": {:.1}", stat.cycles);
            }
            self.0.push('}');
        }
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push_str("\n]}\n");
        self.0
    }
}
