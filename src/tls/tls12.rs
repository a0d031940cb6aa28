//! TLS 1.2 records (RFC 7905): no explicit nonce; sequence number, type, version and length are
//! the AAD (RFC 5246 section 6.2.3.3).

use std::boxed::Box;

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
    MessageEncrypter, OutboundOpaqueMessage, OutboundPlainMessage, Tls12AeadAlgorithm,
    UnsupportedOperationError, make_tls12_aad,
};
use rustls::{ConnectionTrafficSecrets, Error};

use crate::aead::{KEY_LEN, TAG_LEN};
use crate::tls::{Algorithm, IV_LEN, MAX_FRAGMENT_LEN, Refuse, TrafficKey, pieces};

impl Tls12AeadAlgorithm for Algorithm {
    fn encrypter(&self, key: AeadKey, iv: &[u8], _extra: &[u8]) -> Box<dyn MessageEncrypter> {
        match self.traffic_key(&key, iv) {
            Some(key) => Box::new(Encrypter(key)),
            None => Box::new(Refuse),
        }
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        match self.traffic_key(&key, iv) {
            Some(key) => Box::new(Decrypter(key)),
            None => Box::new(Refuse),
        }
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        KeyBlockShape { enc_key_len: KEY_LEN, fixed_iv_len: IV_LEN, explicit_nonce_len: 0 }
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        _explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        let iv: [u8; IV_LEN] = iv.try_into().map_err(|_| UnsupportedOperationError)?;
        Ok(ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv: Iv::from(iv) })
    }
}

struct Encrypter(TrafficKey);

impl MessageEncrypter for Encrypter {
    fn encrypt(
        &mut self,
        msg: OutboundPlainMessage<'_>,
        seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let pieces = pieces(&msg.payload, &[])?;
        let aad = make_tls12_aad(seq, msg.typ, msg.version, msg.payload.len());
        let payload = self.0.seal(self.0.nonce(seq), &aad, pieces)?;
        Ok(OutboundOpaqueMessage::new(msg.typ, msg.version, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len.saturating_add(TAG_LEN)
    }
}

struct Decrypter(TrafficKey);

impl MessageDecrypter for Decrypter {
    fn decrypt<'a>(
        &mut self,
        mut msg: InboundOpaqueMessage<'a>,
        seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        // A payload shorter than its tag has no plaintext length: `open` refuses it.
        let len = msg.payload.len().saturating_sub(TAG_LEN);
        let aad = make_tls12_aad(seq, msg.typ, msg.version, len);
        let len = self.0.open(self.0.nonce(seq), &aad, &mut msg.payload)?;
        if len > MAX_FRAGMENT_LEN {
            // For TLS 1.2 rustls leaves this check to the provider.
            return Err(Error::PeerSentOversizedRecord);
        }
        msg.payload.truncate(len);
        Ok(msg.into_plain_message())
    }
}
