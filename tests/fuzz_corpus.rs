//! The fuzz targets' seeds and findings (K03), as an ordinary test: `fuzz/corpus/TARGET/*`.
#![cfg(feature = "rustls")]

#[path = "../fuzz/body/mod.rs"]
mod body;

use std::fs;
use std::path::Path;

#[test]
fn aead() {
    run("aead", body::aead::run);
}

#[test]
fn record() {
    run("record", body::record::run);
}

#[test]
fn quic() {
    run("quic", body::quic::run);
}

fn run(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // shown only when the test fails
        println!("{}", path.display());
        body(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 16, "only {inputs} inputs");
}
