//! QUIC packet protection and header protection (RFC 9001 section 5).

use std::boxed::Box;

use rustls::Error;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{self, HeaderProtectionKey, PacketKey};
use subtle::{ConditionallySelectable, ConstantTimeGreater};

use crate::aead::{HeaderKey, KEY_LEN, Nonce, TAG_LEN};
use crate::tls::{Algorithm, Refuse, TrafficKey};

impl quic::Algorithm for Algorithm {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        match self.traffic_key(&key, iv.as_ref()) {
            Some(key) => Box::new(key),
            None => Box::new(Refuse),
        }
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        match key.as_ref().try_into() {
            Ok(key) => Box::new(HeaderKey::new(key, self.backend())),
            Err(_) => Box::new(Refuse),
        }
    }

    fn aead_key_len(&self) -> usize {
        KEY_LEN
    }
}

impl TrafficKey {
    fn seal_packet(
        &self,
        nonce: Nonce,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        let tag = self.aead.seal_words(nonce, header, payload).map_err(|_| Error::EncryptError)?;
        let mut tag: [u8; TAG_LEN] = tag.into();
        if cfg!(any(chapoly_fault = "tag", chapoly_fault = "quic_tag")) {
            tag[0] ^= 1;
        }
        Ok(quic::Tag::from(&tag[..]))
    }

    fn open_packet<'a>(
        &self,
        nonce: Nonce,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let len = self.open(nonce, header, payload)?;
        Ok(&payload[..len])
    }
}

impl PacketKey for TrafficKey {
    fn encrypt_in_place(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        self.seal_packet(self.nonce(packet_number), header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path_id: u32,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        self.seal_packet(self.path_nonce(path_id, packet_number), header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open_packet(self.nonce(packet_number), header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path_id: u32,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.open_packet(self.path_nonce(path_id, packet_number), header, payload)
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

impl HeaderProtectionKey for HeaderKey {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let [first_mask, number_mask @ ..] = mask(self, sample, packet_number)?;
        let plain_first = *first;
        *first ^= first_mask & protected_bits(*first);
        xor_packet_number(plain_first, number_mask, packet_number);
        Ok(())
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let [first_mask, number_mask @ ..] = mask(self, sample, packet_number)?;
        *first ^= first_mask & protected_bits(*first);
        xor_packet_number(*first, number_mask, packet_number);
        Ok(())
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LEN
    }
}

/// The mask of RFC 9001 section 5.4.4, after the checks that come before any change.
fn mask(
    key: &HeaderKey,
    sample: &[u8],
    packet_number: &[u8],
) -> Result<[u8; 1 + MAX_PACKET_NUMBER_LEN], Error> {
    let sample: &[u8; SAMPLE_LEN] =
        sample.try_into().map_err(|_| Error::General("sample of invalid length".into()))?;
    if packet_number.len() > MAX_PACKET_NUMBER_LEN {
        return Err(Error::General("packet number too long".into()));
    }
    Ok(key.mask(sample))
}

/// Which bits of the first byte are protected: four in a long header, five in a short one.
fn protected_bits(first: u8) -> u8 {
    const LONG_HEADER_FORM: u8 = 0x80;
    0x0f | (!first & LONG_HEADER_FORM) >> 3
}

/// XORs as many bytes as the unprotected first byte says that the packet number has.
///
/// That length is secret (RFC 9001 section 9.5), so the loop visits every byte and no branch
/// depends on it: bytes beyond it are XORed with zero.
fn xor_packet_number(plain_first: u8, mask: [u8; MAX_PACKET_NUMBER_LEN], packet_number: &mut [u8]) {
    let last = plain_first & 0x03;
    for ((byte, mask), i) in packet_number.iter_mut().zip(mask).zip(0u8..) {
        let protected = !i.ct_gt(&last);
        *byte ^= u8::conditional_select(&0, &mask, protected);
    }
}

impl PacketKey for Refuse {
    fn encrypt_in_place(
        &self,
        _packet_number: u64,
        _header: &[u8],
        _payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(
        &self,
        _packet_number: u64,
        _header: &[u8],
        _payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

impl HeaderProtectionKey for Refuse {
    fn encrypt_in_place(
        &self,
        _sample: &[u8],
        _first: &mut u8,
        _packet_number: &mut [u8],
    ) -> Result<(), Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place(
        &self,
        _sample: &[u8],
        _first: &mut u8,
        _packet_number: &mut [u8],
    ) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LEN
    }
}

/// Bytes of ciphertext that choose the mask (RFC 9001 section 5.4.2).
const SAMPLE_LEN: usize = 16;

/// The longest encoding of a packet number (RFC 9000 section 17.1).
const MAX_PACKET_NUMBER_LEN: usize = 4;

/// More than the 2^62 packets that a connection can number (RFC 9001 section 6.6).
const CONFIDENTIALITY_LIMIT: u64 = u64::MAX;

/// Forged packets after which a connection must end (RFC 9001 section 6.6).
const INTEGRITY_LIMIT: u64 = 1 << 36;
