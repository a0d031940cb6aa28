//! TLS 1.3 records (RFC 9846 section 5.2): the content type is the last byte of the plaintext.

use std::boxed::Box;

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
    make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

use crate::aead::{KEY_LEN, TAG_LEN};
use crate::tls::{Algorithm, Refuse, TrafficKey, pieces};

impl Tls13AeadAlgorithm for Algorithm {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        match self.traffic_key(&key, iv.as_ref()) {
            Some(key) => Box::new(Encrypter(key)),
            None => Box::new(Refuse),
        }
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        match self.traffic_key(&key, iv.as_ref()) {
            Some(key) => Box::new(Decrypter(key)),
            None => Box::new(Refuse),
        }
    }

    fn key_len(&self) -> usize {
        KEY_LEN
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Ok(ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv })
    }
}

struct Encrypter(TrafficKey);

impl MessageEncrypter for Encrypter {
    fn encrypt(
        &mut self,
        msg: OutboundPlainMessage<'_>,
        seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let content_type = [msg.typ.into()];
        let pieces = pieces(&msg.payload, &content_type)?;
        let aad = make_tls13_aad(self.encrypted_payload_len(msg.payload.len()));
        let payload = self.0.seal(self.0.nonce(seq), &aad, pieces)?;
        // The outer type and version are fixed (RFC 9846 section 5.2).
        Ok(OutboundOpaqueMessage::new(
            ContentType::ApplicationData,
            ProtocolVersion::TLSv1_2,
            payload,
        ))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len.saturating_add(1 + TAG_LEN)
    }
}

struct Decrypter(TrafficKey);

impl MessageDecrypter for Decrypter {
    fn decrypt<'a>(
        &mut self,
        mut msg: InboundOpaqueMessage<'a>,
        seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let aad = make_tls13_aad(msg.payload.len());
        let len = self.0.open(self.0.nonce(seq), &aad, &mut msg.payload)?;
        msg.payload.truncate(len);
        msg.into_tls13_unpadded_message()
    }
}
