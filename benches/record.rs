//! One TLS record through rustls' traits, allocation included, beside the providers of ring and
//! aws-lc-rs.
//!
//! Addresses vary from call to call, and every record has a sequence number of its own. The
//! `layout` rows do the opposite: they hold the source at the named distance below the destination
//! modulo 4096, where some C libraries' `memcpy` is more than ten times slower than elsewhere. To
//! take that trap away from everyone, run under
//! `GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000`.

mod glue;
mod harness;

use core::hint::black_box;

use rustls::crypto::cipher::{
    InboundOpaqueMessage, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundOpaqueMessage, OutboundPlainMessage,
};
use rustls::{CipherSuite, ContentType, ProtocolVersion, SupportedCipherSuite};

use glue::{AES, Report};
use harness::{Entry, sample};

const LENS: [usize; 6] = [64, 256, 1024, 1350, 4096, 16_384];

/// How far below the destination, modulo 4096, the source lies; the last is out of harm's way.
const DISTANCES: [usize; 5] = [1, 5, 16, 33, 2048];

fn main() {
    let mut report = Report::start();
    for (version, chacha, aes) in [
        (
            "TLS 1.3",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS13_AES_256_GCM_SHA384,
        ),
        (
            "TLS 1.2",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
    ] {
        for len in LENS {
            let suites = |report: &Report| {
                let competitors = report.competitors();
                let aes =
                    competitors.last().map(|aws| (AES.to_owned(), aws.only(aes).cipher_suites[0]));
                let named = competitors
                    .iter()
                    .map(|it| (it.name.clone(), it.only(chacha).cipher_suites[0]));
                named.chain(aes).collect::<Vec<_>>()
            };
            let mut arena = Arena::new(len);
            for (op, cuts) in [("encrypt", &[][..]), ("encrypt 3 chunks", &[len / 4, len - 1])] {
                let entries = suites(&report)
                    .into_iter()
                    .map(|(name, suite)| arena.encrypt_entry(name, suite, cuts));
                let entries = entries.collect();
                report.contest(&format!("{version} {op}"), len, &mut arena, entries);
            }
            let entries = suites(&report)
                .into_iter()
                .map(|(name, suite)| arena.decrypt_entry(name, suite))
                .collect();
            report.contest(&format!("{version} decrypt"), len, &mut arena, entries);
        }
        let mut arena = Arena::new(16_384);
        for distance in DISTANCES {
            let entries = report
                .competitors()
                .into_iter()
                .map(|it| layout_entry(it.name.clone(), it.only(chacha).cipher_suites[0], distance))
                .collect();
            arena.misses = 0;
            report.contest(&format!("{version} layout {distance}"), 16_384, &mut arena, entries);
            if arena.misses > 0 {
                println!("calls that met another layout: {}", arena.misses);
            }
        }
    }
    report.finish();
}

/// Plaintext to read from at changing addresses, and records that are kept for a while, so that
/// the allocator gives changing addresses too.
struct Arena {
    source: Vec<u8>,
    at: usize,
    kept: Vec<Option<OutboundOpaqueMessage>>,
    next: usize,
    len: usize,
    calls: usize,
    /// Calls of [`layout_entry`] that met another layout than they were to.
    misses: usize,
}

impl Arena {
    fn new(len: usize) -> Self {
        Self {
            source: (0..POOL).map(|i| (i % 251) as u8).collect(),
            at: 0,
            kept: (0..13).map(|_| None).collect(),
            next: 0,
            len,
            calls: (8192 / len).clamp(4, 32),
            misses: 0,
        }
    }

    /// The place of the next plaintext: every offset modulo 64 and modulo 4096 in turn.
    fn advance(&mut self) -> usize {
        self.at = (self.at + self.len + 1093) % (POOL - self.len);
        self.at
    }

    fn keep(&mut self, record: OutboundOpaqueMessage) {
        let slots = self.kept.len();
        self.kept[self.next % slots] = Some(record);
        self.next += 1;
    }

    fn encrypt_entry(
        &self,
        name: String,
        suite: SupportedCipherSuite,
        cuts: &[usize],
    ) -> Entry<Self> {
        let mut encrypter = encrypter(suite);
        let (mut seq, calls) = (0, self.calls);
        let (cuts, len) = (cuts.to_vec(), self.len);
        let run = move |arena: &mut Self| {
            sample(
                arena,
                calls,
                |_| (),
                |arena| {
                    for _ in 0..calls {
                        let at = arena.advance();
                        let text = &arena.source[at..at + len];
                        let record = if let [a, b] = cuts[..] {
                            let chunks = [&text[..a], &text[a..b], &text[b..]];
                            let payload = OutboundChunks::new(black_box(&chunks));
                            encrypter.encrypt(message(payload), seq)
                        } else {
                            encrypter.encrypt(message(OutboundChunks::Single(text)), seq)
                        };
                        seq += 1;
                        arena.keep(record.expect("a record in range"));
                    }
                },
            )
        };
        Entry { name, run: Box::new(run) }
    }

    /// Opens copies of `calls` records, each with its sequence number.
    fn decrypt_entry(&self, name: String, suite: SupportedCipherSuite) -> Entry<Self> {
        let (mut encrypter, mut decrypter) = (encrypter(suite), decrypter(suite));
        let text = &self.source[..self.len];
        let records: Vec<_> = (0..self.calls as u64)
            .map(|seq| {
                let payload = OutboundChunks::Single(text);
                encrypter.encrypt(message(payload), seq).expect("a record in range")
            })
            .collect();
        let mut buffers: Vec<_> = records.iter().map(|it| it.payload.as_ref().to_vec()).collect();
        let run = move |arena: &mut Self| {
            sample(
                arena,
                records.len(),
                |_| (),
                |_| {
                    // The copy is timed: an opened record cannot be opened again, and this keeps
                    // what a batch finds in the caches alike for all.
                    for ((seq, record), buffer) in (0..).zip(&records).zip(&mut buffers) {
                        buffer.copy_from_slice(record.payload.as_ref());
                        let msg = InboundOpaqueMessage::new(record.typ, record.version, buffer);
                        let opened = decrypter.decrypt(msg, seq).expect("an authentic record");
                        black_box(opened.payload);
                    }
                },
            )
        };
        Entry { name, run: Box::new(run) }
    }
}

/// Encrypts with the source `distance` bytes below the destination modulo 4096.
///
/// The destination is the allocator's, which gives a buffer just freed again: the last one tells
/// where the next will be.
fn layout_entry(name: String, suite: SupportedCipherSuite, distance: usize) -> Entry<Arena> {
    let mut encrypter = encrypter(suite);
    let mut seq = 0;
    let mut destination = 0;
    let run = move |arena: &mut Arena| {
        let (len, calls) = (arena.len, arena.calls);
        sample(
            arena,
            calls,
            |_| (),
            |arena| {
                for _ in 0..calls {
                    let base = arena.source.as_ptr().addr();
                    let at = destination_offset(destination, distance, base);
                    let text = &arena.source[at..at + len];
                    let payload = OutboundChunks::Single(text);
                    let record = encrypter.encrypt(message(payload), seq);
                    seq += 1;
                    let record = record.expect("a record in range");
                    let actual = record.payload.as_ref().as_ptr().addr();
                    let expected = seq == 1 || actual % PAGE == destination % PAGE;
                    arena.misses += usize::from(!expected);
                    destination = actual;
                }
            },
        )
    };
    Entry { name, run: Box::new(run) }
}

/// The offset from `base` that is `distance` below `destination`, modulo a page.
fn destination_offset(destination: usize, distance: usize, base: usize) -> usize {
    destination.wrapping_sub(distance).wrapping_sub(base) % PAGE
}

fn message(payload: OutboundChunks<'_>) -> OutboundPlainMessage<'_> {
    OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_2,
        payload,
    }
}

fn encrypter(suite: SupportedCipherSuite) -> Box<dyn MessageEncrypter> {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(KEY.into(), IV.into()),
        SupportedCipherSuite::Tls12(suite) => {
            let shape = suite.aead_alg.key_block_shape();
            let (iv, extra) = (&IV[..shape.fixed_iv_len], &IV[..shape.explicit_nonce_len]);
            suite.aead_alg.encrypter(KEY.into(), iv, extra)
        }
    }
}

fn decrypter(suite: SupportedCipherSuite) -> Box<dyn MessageDecrypter> {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(KEY.into(), IV.into()),
        SupportedCipherSuite::Tls12(suite) => {
            let shape = suite.aead_alg.key_block_shape();
            suite.aead_alg.decrypter(KEY.into(), &IV[..shape.fixed_iv_len])
        }
    }
}

const PAGE: usize = 4096;

/// Half of a usual second-level cache.
const POOL: usize = 256 << 10;
const KEY: [u8; 32] = [0x42; 32];
const IV: [u8; 12] = [0x24; 12];
