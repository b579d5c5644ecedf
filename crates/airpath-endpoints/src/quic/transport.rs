// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Set-up of QUIC connections: TLS, the transport's parameters, and seeded random numbers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use airpath_core::{DrawKey, End};
use airpath_workload::QuicCongestionControl;
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TimeSource,
    TransportConfig,
};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::Context;
use crate::error::EndpointError;
use crate::ip::HEADER_BYTES;
use crate::quic::certificate::{CERTIFICATE, key};

/// The least datagram that a path must carry (RFC 9000, section 14).
const LEAST_DATAGRAM_BYTES: u16 = 1_200;
const LEAST_MTU_BYTES: u32 = LEAST_DATAGRAM_BYTES as u32 + HEADER_BYTES as u32;
/// The length of connection identifiers: quinn's own choices.
const IDENTIFIER_BYTES: usize = 8;
/// Silence after which a connection is given up: as long as for a TCP connection here.
const GIVE_UP_AFTER_MS: u32 = 924_600;
const FIRST_IDENTIFIER_BYTES: usize = 20;
/// Start of the certificate's validity, and a little more.
const WALL_CLOCK: Duration = Duration::from_secs(1_800_000_000);

/// Common parts of both ends of a connection.
pub(super) struct Transport {
    config: Arc<TransportConfig>,
    provider: Arc<CryptoProvider>,
}

impl Transport {
    pub(super) fn new(
        congestion_control: QuicCongestionControl,
        context: &Context,
    ) -> Result<Transport, EndpointError> {
        let mtu_bytes = context.options.mtu_bytes;
        if mtu_bytes < LEAST_MTU_BYTES {
            let (protocol, reason) = ("QUIC", "RFC 9000, section 14: 1200 bytes without the headers of IP and UDP");
            return Err(EndpointError::MtuTooSmall { protocol, least_bytes: LEAST_MTU_BYTES, reason, mtu_bytes });
        }
        let mut config = TransportConfig::default();
        let most = u16::try_from(mtu_bytes - HEADER_BYTES as u32).unwrap_or(u16::MAX);
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(most);
        config.mtu_discovery_config((most > LEAST_DATAGRAM_BYTES).then_some(discovery));
        // Without a limit, an end that nothing reaches would try for ever.
        config.max_idle_timeout(Some(quinn_proto::IdleTimeout::from(quinn_proto::VarInt::from_u32(GIVE_UP_AFTER_MS))));
        config.enable_segmentation_offload(false);
        match congestion_control {
            QuicCongestionControl::NewReno => {
                config.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
            }
            QuicCongestionControl::Cubic => {
                config.congestion_controller_factory(Arc::new(CubicConfig::default()));
            }
        }
        // One suite and one group, so that no handshake depends on the processor.
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
        provider.kx_groups = vec![ring::kx_group::X25519];
        Ok(Transport { config: Arc::new(config), provider: Arc::new(provider) })
    }

    /// The configuration of an endpoint that draws by `key`.
    pub(super) fn endpoint(&self, key: DrawKey) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        let mut seed = [0; 32];
        for (step, word) in seed.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&key.bits(step as u64, 0).to_le_bytes());
        }
        config.rng_seed(Some(seed));
        let identifiers = key.child("connection identifiers", 0);
        config.cid_generator(move || Box::new(Identifiers { key: identifiers, made: 0 }));
        config
    }

    /// The client's side of TLS.
    pub(super) fn client(&self, key: DrawKey) -> Result<ClientConfig, EndpointError> {
        let builder = rustls::ClientConfig::builder_with_provider(self.provider.clone());
        let mut tls = builder
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(EndpointError::tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OurServer { provider: self.provider.clone() }))
            .with_no_client_auth();
        tls.resumption = Resumption::disabled();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(EndpointError::tls)?));
        config.transport_config(self.config.clone());
        let first = key.child("first connection identifier", 0);
        config.initial_dst_cid_provider(Arc::new(move || identifier(first, 0, FIRST_IDENTIFIER_BYTES)));
        Ok(config)
    }

    /// The server's side of TLS.
    pub(super) fn server(&self) -> Result<ServerConfig, EndpointError> {
        let tls = rustls::ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(EndpointError::tls)?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(&CERTIFICATE[..])], PrivatePkcs8KeyDer::from(key()).into())
            .map_err(EndpointError::tls)?;
        let mut config =
            ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).map_err(EndpointError::tls)?));
        config.transport_config(self.config.clone());
        config.time_source(Arc::new(FixedTime));
        Ok(config)
    }
}

/// The name of the end whose draws these are.
pub(super) fn purpose(end: End) -> &'static str {
    match end {
        End::Client => "quic client",
        End::Server => "quic server",
    }
}

fn identifier(key: DrawKey, which: u64, length: usize) -> ConnectionId {
    let words = (0..3).flat_map(|attempt| key.bits(which, attempt).to_le_bytes());
    let bytes: Vec<u8> = words.take(length).collect();
    ConnectionId::new(&bytes)
}

/// Draws connection identifiers.
struct Identifiers {
    key: DrawKey,
    made: u64,
}

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        self.made += 1;
        identifier(self.key, self.made, IDENTIFIER_BYTES)
    }

    fn cid_len(&self) -> usize {
        IDENTIFIER_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A wall clock that stands still: tokens are of the same age in every run.
struct FixedTime;

impl TimeSource for FixedTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + WALL_CLOCK
    }
}

/// Takes the one certificate that there is, whatever the date, and checks signatures made with it.
#[derive(Debug)]
struct OurServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OurServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match end_entity.as_ref() == &CERTIFICATE[..] {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
