//! Every backend and every function against ring (K03).

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls_chapoly::Backend;
use rustls_chapoly::aead::{ChaCha20Poly1305, Error, TAG_LEN, Tag};

use super::{Input, pieces};

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let key = input.array::<8>().repeat(4).try_into().unwrap();
    let nonce = input.array();
    let aad_len = input.u16() % 300;
    let cuts: Vec<usize> = (0..input.byte() % 8).map(|_| input.u16()).collect();
    let flip = input.u16();
    let times = 1 + usize::from(input.byte() % 64);
    let plaintext = input.rest(times, 20_000);
    let aad: Vec<u8> = plaintext.iter().rev().chain(&[0x61; 300]).take(aad_len).copied().collect();

    let (ciphertext, tag) = ring_seal(&key, nonce, &aad, &plaintext);
    for backend in Backend::available() {
        let key = ChaCha20Poly1305::with_backend(&key, backend);

        let mut text = plaintext.clone();
        let sealed = key.seal_in_place(&nonce, &aad, &mut text).unwrap();
        assert!(text == ciphertext && sealed.as_ref() == tag, "seal_in_place, {backend}");
        key.open_in_place(&nonce, &aad, &mut text, &sealed).unwrap();
        assert!(text == plaintext, "open_in_place, {backend}");

        let mut out = vec![0xa5; plaintext.len() + TAG_LEN];
        key.seal_gather(&nonce, &aad, &pieces(&plaintext, &cuts), &mut out).unwrap();
        assert!(out[..text.len()] == ciphertext && out[text.len()..] == tag, "gather, {backend}");
        key.open_into(&nonce, &aad, &ciphertext, &sealed, &mut text).unwrap();
        assert!(text == plaintext, "open_into, {backend}");

        // one bit of ciphertext and tag
        let bit = flip % (8 * out.len());
        out[bit / 8] ^= 1 << (bit % 8);
        let (forged, tag) = out.split_last_chunk_mut::<TAG_LEN>().unwrap();
        let tag = Tag::from(*tag);
        let verdict = key.open_into(&nonce, &aad, forged, &tag, &mut text);
        assert_eq!(verdict, Err(Error::InvalidTag), "open_into, {backend}");
        let verdict = key.open_in_place(&nonce, &aad, forged, &tag);
        assert_eq!(verdict, Err(Error::InvalidTag), "open_in_place, {backend}");
        assert!(text.iter().chain(&*forged).all(|&b| b == 0), "bytes stay, {backend}");
    }
}

pub(crate) fn ring_seal(
    key: &[u8; 32],
    nonce: [u8; 12],
    aad: &[u8],
    plaintext: &[u8],
) -> (Vec<u8>, [u8; TAG_LEN]) {
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).unwrap());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let mut text = plaintext.to_vec();
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), &mut text).unwrap();
    (text, tag.as_ref().try_into().unwrap())
}
