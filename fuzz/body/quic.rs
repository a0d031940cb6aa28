//! QUIC packets (RFC 9001): hostile ones and those that the peer sealed, with and without a path, and
//! header protection, against rustls' own ring provider.

use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{HeaderProtectionKey, PacketKey};
use rustls::{CipherSuite, Error, SupportedCipherSuite};
use rustls_chapoly::aead::TAG_LEN;

use super::{Input, providers};

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let key = [input.byte(); 32];
    let iv: [u8; 12] = input.array();
    let path = u32::from_le_bytes(input.array());
    let number = u64::from_le_bytes(input.array());
    let header_len = usize::from(input.byte() % 40);
    let sample = input.array::<18>();
    let sample = &sample[..15 + usize::from(input.byte() % 4)];
    let first = input.byte();
    let packet_number = input.array::<5>();
    let packet_number = &packet_number[..usize::from(input.byte() % 6)];
    let times = 1 + usize::from(input.byte());
    let text = input.rest(times, 3000);
    let header: Vec<u8> = data.iter().copied().cycle().take(header_len.min(data.len())).collect();

    let (peer, all_ours) = providers();
    let peer = Keys::new(peer, key, iv);
    let mut sealed = text.clone();
    let tag = peer.seal(path, number, &header, &mut sealed);
    sealed.extend(tag);
    for (backend, ours) in all_ours {
        let ours = Keys::new(ours, key, iv);
        let mut packet = text.clone();
        let tag = ours.seal(path, number, &header, &mut packet);
        packet.extend(tag);
        assert!(packet == sealed, "seal, {backend}");
        assert_eq!(ours.open(path, number, &header, &mut packet), Ok(text.clone()), "{backend}");

        let mut hostile = text.clone();
        let refused = ours.open(path, number, &header, &mut hostile);
        assert_eq!(refused, Err(Error::DecryptError), "{backend}");
        let left = hostile.len().saturating_sub(TAG_LEN);
        if hostile.len() >= TAG_LEN {
            assert!(hostile[..left].iter().all(|&b| b == 0), "bytes stay, {backend}");
        }

        for protect in [true, false] {
            let expected = peer.header(protect, sample, first, packet_number);
            let header = ours.header(protect, sample, first, packet_number);
            assert_eq!(header, expected, "header protection, {backend}");
        }
    }
}

struct Keys {
    packet: Box<dyn PacketKey>,
    header: Box<dyn HeaderProtectionKey>,
}

impl Keys {
    fn new(provider: &CryptoProvider, key: [u8; 32], iv: [u8; 12]) -> Self {
        let suites = provider.cipher_suites.iter();
        let quic = suites
            .filter(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256)
            .find_map(SupportedCipherSuite::tls13)
            .and_then(|suite| suite.quic)
            .unwrap();
        Self {
            packet: quic.packet_key(AeadKey::from(key), Iv::from(iv)),
            header: quic.header_protection_key(AeadKey::from(key)),
        }
    }

    /// Path 0 goes through the function without a path.
    fn seal(&self, path: u32, number: u64, header: &[u8], text: &mut [u8]) -> Vec<u8> {
        let tag = match path {
            0 => self.packet.encrypt_in_place(number, header, text),
            _ => self.packet.encrypt_in_place_for_path(path, number, header, text),
        };
        tag.unwrap().as_ref().to_vec()
    }

    fn open(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        packet: &mut [u8],
    ) -> Result<Vec<u8>, Error> {
        let text = match path {
            0 => self.packet.decrypt_in_place(number, header, packet),
            _ => self.packet.decrypt_in_place_for_path(path, number, header, packet),
        };
        text.map(<[u8]>::to_vec)
    }

    /// First byte and packet number after protection was put on or taken off.
    fn header(
        &self,
        protect: bool,
        sample: &[u8],
        mut first: u8,
        number: &[u8],
    ) -> Result<(u8, Vec<u8>), Error> {
        let mut number = number.to_vec();
        let done = match protect {
            true => self.header.encrypt_in_place(sample, &mut first, &mut number),
            false => self.header.decrypt_in_place(sample, &mut first, &mut number),
        };
        done.map(|()| (first, number))
    }
}
