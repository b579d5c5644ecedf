// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A host with one QUIC connection, and the endpoint that it makes together with an application.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use airpath_core::{Ecn, End, Pdu, Time};
use airpath_virtual::{Endpoint as VirtualEndpoint, Progress, Sent};
use bytes::{Bytes, BytesMut};
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Transmit};

use crate::Context;
use crate::datagram::{bytes_of, datagram};
use crate::error::EndpointError;
use crate::ip::{self, HEADER_BYTES, Protection, Reception};
use crate::options::Route;
use crate::quic::certificate::SERVER_NAME;
use crate::quic::transfer::Transfer;
use crate::quic::transport::{Transport, purpose};
use crate::record::Results;
use crate::report::QuicReport;

/// One end of a QUIC connection with its application.
pub(super) struct HostEndpoint {
    end: End,
    flow: u32,
    /// Route of its packets.
    route: Route,
    base: Instant,
    endpoint: Endpoint,
    /// Configuration of the connection; none for the server, and for the client once it has connected.
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    application: Transfer,
    results: Results,
    deadline: Option<Time>,
    sent: u64,
    buffer: Vec<u8>,
}

impl HostEndpoint {
    pub(super) fn new(
        end: End,
        transport: &Transport,
        application: Transfer,
        base: Instant,
        context: &Context,
    ) -> Result<HostEndpoint, EndpointError> {
        let key = context.key(end, purpose(end));
        let config = Arc::new(transport.endpoint(key));
        let (client, server) = match end {
            End::Client => (Some(transport.client(key)?), None),
            End::Server => (None, Some(Arc::new(transport.server()?))),
        };
        Ok(HostEndpoint {
            end,
            flow: context.flow,
            route: Route::new(end, context.flow, &context.options),
            base,
            endpoint: Endpoint::new(config, server, true, None),
            client,
            connection: None,
            application,
            results: context.results.clone(),
            deadline: None,
            sent: 0,
            buffer: Vec::new(),
        })
    }

    fn instant(&self, at: Time) -> Instant {
        self.base + Duration::from_nanos(at.nanos())
    }

    fn time(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.base).as_nanos();
        Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    fn connect(&mut self, at: Time) {
        let Some(config) = self.client.take() else { return };
        let (now, remote) = (self.instant(at), SocketAddr::from(self.route.destination));
        match self.endpoint.connect(now, config, remote, SERVER_NAME) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.results.record().failure = Some(error.to_string()),
        }
    }

    /// Takes a datagram's payload.
    fn take(&mut self, at: Time, payload: &[u8], ecn: Ecn, out: &mut Sent) {
        let now = self.instant(at);
        let (remote, local) = (SocketAddr::from(self.route.destination), IpAddr::V4(self.route.source.0));
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        match self.endpoint.handle(now, remote, Some(local), ecn, BytesMut::from(payload), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            self.send(&transmit, &buffer, out);
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.send(&transmit, &buffer, out),
            None => {}
        }
        self.buffer = buffer;
    }

    fn send(&mut self, transmit: &Transmit, buffer: &[u8], out: &mut Sent) {
        let payload = &buffer[..transmit.size];
        let len = HEADER_BYTES + payload.len();
        let ecn = match transmit.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let bytes =
            ip::write(&self.route, Protection::Udp, ecn, self.sent as u16, len, |place| place.copy_from_slice(payload));
        self.sent += 1;
        self.results.record().side(self.end.sends()).sent(len as u32);
        let tuple = self.route.tuple(Protection::Udp.number());
        out.push(Pdu { ecn, ..datagram(self.flow, tuple, len as u32, HEADER_BYTES, Some(bytes)) });
    }

    /// Lets everybody have a turn until nobody has anything to do.
    fn run(&mut self, at: Time, out: &mut Sent) {
        let now = self.instant(at);
        let Some((handle, mut connection)) = self.connection.take() else { return };
        if self.application.is_over(at, &self.results) {
            connection.close(now, Transfer::closing_code(), Bytes::new());
        }
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        loop {
            let mut idle = true;
            while let Some(event) = connection.poll() {
                self.application.hear(event, &mut connection, &self.results);
                idle = false;
            }
            self.application.work(at, &mut connection, &self.results);
            while let Some(event) = connection.poll_endpoint_events() {
                idle = false;
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    connection.handle_event(event);
                }
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                idle = false;
                self.send(&transmit, &buffer, out);
                buffer.clear();
            }
            self.buffer = buffer;
            if idle {
                break;
            }
        }
        // A timer that is due already has had its turn, and has it again as soon as time goes on.
        let next = Time::from_nanos(at.nanos() + 1);
        self.deadline = connection.poll_timeout().map(|due| self.time(due).max(next));
        let stats = connection.stats().path;
        let report = QuicReport {
            lost_packets: stats.lost_packets,
            lost_bytes: stats.lost_bytes,
            congestion_events: stats.congestion_events,
            congestion_window_bytes: stats.cwnd,
            round_trip_ns: stats.rtt.as_nanos() as u64,
            datagram_bytes: stats.current_mtu,
        };
        let mut record = self.results.record();
        let reports = record.quic.get_or_insert_default();
        match self.end {
            End::Client => reports.client = report,
            End::Server => reports.server = report,
        }
        drop(record);
        self.connection = Some((handle, connection));
    }
}

impl VirtualEndpoint for HostEndpoint {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.application.begin(at);
        self.connect(at);
        self.run(at, out);
    }

    fn receive(&mut self, at: Time, pdu: Pdu, out: &mut Sent) {
        let Some(bytes) = bytes_of(&pdu) else { return };
        let (verdict, payload) = ip::judge(&pdu, bytes, &self.route.reversed(), Protection::Udp);
        self.results.record().side(self.end.other().sends()).received(at, &pdu, verdict);
        if verdict != Reception::Rejected {
            self.take(at, &payload, pdu.ecn, out);
            self.run(at, out);
        }
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        if self.next_deadline().is_some_and(|due| due <= at) {
            self.run(at, out);
            // Without a connection there is nothing to close.
            self.application.is_over(at, &self.results);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        match (self.deadline, self.application.next_deadline()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn progress(&self) -> Progress {
        self.results.record().progress(self.application.is_active())
    }
}
