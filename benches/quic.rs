//! QUIC packets through rustls' traits beside the providers of ring and aws-lc-rs: sealing and
//! opening a payload in place, and one header protection mask.

mod glue;
mod harness;

use core::hint::black_box;

use rustls::CipherSuite;
use rustls::quic::{Algorithm, PacketKey};

use glue::{AES, Report};
use harness::{Entry, sample};

const LENS: [usize; 4] = [64, 1200, 1350, 1452];

/// Packets per timed batch, each in a buffer of its own.
const PACKETS: usize = 8;

fn main() {
    let mut report = Report::start();
    for len in LENS {
        let mut packets = packets(len);
        let entries = algorithms(&report)
            .map(|(name, algorithm)| seal_entry(name, algorithm.packet_key(KEY.into(), IV.into())))
            .collect();
        report.contest("seal", len, &mut packets, entries);
        let entries = algorithms(&report)
            .map(|(name, algorithm)| {
                open_entry(name, &*algorithm.packet_key(KEY.into(), IV.into()), algorithm, len)
            })
            .collect();
        report.contest("open", len, &mut packets, entries);
    }
    let mut packets = packets(64);
    let entries =
        algorithms(&report).map(|(name, algorithm)| mask_entry(name, algorithm)).collect();
    report.contest("header mask", 16, &mut packets, entries);
    report.finish();
}

fn algorithms(report: &Report) -> impl Iterator<Item = (String, &'static dyn Algorithm)> {
    let competitors = report.competitors();
    let quic = |suite: rustls::SupportedCipherSuite| {
        suite.tls13().and_then(|suite| suite.quic).expect("every competitor has QUIC")
    };
    let aes = competitors.last().map(|aws| {
        (AES.to_owned(), quic(aws.only(CipherSuite::TLS13_AES_256_GCM_SHA384).cipher_suites[0]))
    });
    let chacha = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    competitors
        .into_iter()
        .map(move |it| (it.name.clone(), quic(it.only(chacha).cipher_suites[0])))
        .chain(aes)
}

/// Buffers at changing offsets from a cache line, as packets lie in a datagram.
fn packets(len: usize) -> Vec<Vec<u8>> {
    (0..PACKETS).map(|i| (0..OFFSET * i + len + TAG).map(|i| (i % 251) as u8).collect()).collect()
}

/// A short header, its connection id of 8 bytes, and a packet number of 4.
const HEADER: [u8; 13] = [0x43; 13];

fn seal_entry(name: String, key: Box<dyn PacketKey>) -> Entry<Vec<Vec<u8>>> {
    let mut number = 0;
    let run = move |packets: &mut Vec<Vec<u8>>| {
        sample(
            packets,
            PACKETS,
            |_| (),
            |packets| {
                for (i, packet) in packets.iter_mut().enumerate() {
                    let end = packet.len() - TAG;
                    let payload = &mut packet[OFFSET * i..end];
                    let tag = key.encrypt_in_place(number, &HEADER, payload);
                    number += 1;
                    packet[end..].copy_from_slice(tag.expect("a payload in range").as_ref());
                }
            },
        )
    };
    Entry { name, run: Box::new(run) }
}

/// Each sample opens fresh copies of the same packets; copying them is not timed.
fn open_entry(
    name: String,
    seal: &dyn PacketKey,
    algorithm: &'static dyn Algorithm,
    len: usize,
) -> Entry<Vec<Vec<u8>>> {
    let mut sealed = packets(len);
    for ((i, number), packet) in sealed.iter_mut().enumerate().map(|(i, p)| ((i, i as u64), p)) {
        let end = packet.len() - TAG;
        let tag = seal.encrypt_in_place(number, &HEADER, &mut packet[OFFSET * i..end]);
        packet[end..].copy_from_slice(tag.expect("a payload in range").as_ref());
    }
    let key = algorithm.packet_key(KEY.into(), IV.into());
    let run = move |packets: &mut Vec<Vec<u8>>| {
        sample(
            packets,
            PACKETS,
            |packets| {
                for (packet, sealed) in packets.iter_mut().zip(&sealed) {
                    packet.copy_from_slice(sealed);
                }
            },
            |packets| {
                for (i, packet) in packets.iter_mut().enumerate() {
                    let payload = &mut packet[OFFSET * i..];
                    let opened = key.decrypt_in_place(i as u64, &HEADER, payload);
                    black_box(opened.expect("an authentic packet"));
                }
            },
        )
    };
    Entry { name, run: Box::new(run) }
}

fn mask_entry(name: String, algorithm: &'static dyn Algorithm) -> Entry<Vec<Vec<u8>>> {
    let key = algorithm.header_protection_key(KEY.into());
    let run = move |packets: &mut Vec<Vec<u8>>| {
        sample(
            packets,
            PACKETS,
            |_| (),
            |packets| {
                for (i, packet) in packets.iter_mut().enumerate() {
                    let (start, sample) = packet[OFFSET * i..].split_at_mut(5);
                    let (first, number) = start.split_first_mut().expect("five bytes");
                    key.encrypt_in_place(&sample[..16], first, number).expect("a sample of 16");
                }
            },
        )
    };
    Entry { name, run: Box::new(run) }
}

const TAG: usize = 16;
const OFFSET: usize = 13;
const KEY: [u8; 32] = [0x42; 32];
const IV: [u8; 12] = [0x24; 12];
