#![no_main]

#[path = "../body/mod.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::quic::run(data));
