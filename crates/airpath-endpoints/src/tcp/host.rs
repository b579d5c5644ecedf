// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A host with one TCP connection, and the endpoint that it makes together with an application.

use airpath_core::{Direction, End, Payload, Pdu, Span, Time};
use airpath_packet::protocol::TCP;
use airpath_tcp::{BufferSize, Config, CongestionControl, Connection, Segment, State};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::{Bytes as ByteCount, EcnUse, TcpCongestionControl, TimestampUse};

use super::packet;
use crate::Context;
use crate::datagram::bytes_of;
use crate::error::EndpointError;
use crate::options::Route;
use crate::record::Results;

/// Bytes of an IPv4 and a TCP header without options.
const HEADER_BYTES: u64 = 40;
/// The least MTU of an IPv4 link (RFC 791).
const LEAST_MTU_BYTES: u32 = 68;
/// Time for which it sends in vain before it gives up, as Linux does with 15 retransmissions (at least 100 s by
/// RFC 9293, section 3.8.3).
const GIVE_UP_AFTER: Span = Span::from_millis(924_600);

/// Settings of a connection, the same at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    congestion_control: CongestionControl,
    maximum_segment_bytes: u16,
    receive_buffer: BufferSize,
    nagle: bool,
    timestamps: bool,
    ecn: bool,
}

/// The same as a workload writes them.
pub(super) struct Keys {
    pub congestion_control: TcpCongestionControl,
    pub mss: Option<ByteCount>,
    pub window: Option<ByteCount>,
    pub nagle: bool,
    pub timestamps: TimestampUse,
    pub ecn: EcnUse,
}

impl Settings {
    pub(super) fn new(keys: &Keys, context: &Context) -> Result<Settings, EndpointError> {
        let mtu_bytes = context.options.mtu_bytes;
        if mtu_bytes < LEAST_MTU_BYTES {
            let (protocol, reason) = ("TCP", "RFC 791, section 3.2");
            return Err(EndpointError::MtuTooSmall { protocol, least_bytes: LEAST_MTU_BYTES, reason, mtu_bytes });
        }
        let largest = u64::from(mtu_bytes) - HEADER_BYTES;
        let largest = keys.mss.map_or(largest, |mss| mss.0.min(largest));
        Ok(Settings {
            congestion_control: match keys.congestion_control {
                TcpCongestionControl::None => CongestionControl::None,
                TcpCongestionControl::Reno => CongestionControl::Reno,
                TcpCongestionControl::Cubic => CongestionControl::Cubic,
            },
            maximum_segment_bytes: u16::try_from(largest).unwrap_or(u16::MAX),
            receive_buffer: keys.window.map_or(BufferSize::Automatic, |bytes| BufferSize::Fixed(bytes.0)),
            nagle: keys.nagle,
            timestamps: keys.timestamps == TimestampUse::Yes,
            ecn: keys.ecn == EcnUse::Yes,
        })
    }
}

/// User of a connection.
pub(super) trait Application: Send {
    /// The application's turn at `at`: reads and writes; whether it did anything.
    fn work(&mut self, at: Time, connection: &mut Connection, results: &Results) -> bool;

    /// Time at which it wants another turn, whatever arrives.
    fn next_deadline(&self) -> Option<Time>;

    /// True if it is at work.
    fn is_active(&self) -> bool;

    /// Called once before all else.
    fn begin(&mut self, at: Time);
}

/// A host and its application as an endpoint.
pub(super) struct HostEndpoint<A> {
    end: End,
    flow: u32,
    route: Route,
    connection: Connection,
    /// Segments on their way out, to be written together.
    segments: Vec<Segment>,
    application: A,
    results: Results,
}

impl<A: Application> HostEndpoint<A> {
    pub(super) fn new(end: End, settings: &Settings, application: A, context: &Context) -> HostEndpoint<A> {
        let key = context.key(end, "tcp");
        let connection = Connection::new(Config {
            congestion_control: settings.congestion_control,
            maximum_segment_bytes: settings.maximum_segment_bytes,
            receive_buffer: settings.receive_buffer,
            nagle: settings.nagle,
            timestamps: settings.timestamps,
            ecn: settings.ecn,
            initial_sequence: key.bits(0, 0) as u32,
            initial_timestamp: key.bits(1, 0) as u32,
            give_up_after: GIVE_UP_AFTER,
        });
        HostEndpoint {
            end,
            flow: context.flow,
            route: Route::new(end, context.flow, &context.options),
            connection,
            segments: Vec::new(),
            application,
            results: context.results.clone(),
        }
    }

    /// The application's turns, and what goes out then.
    fn run(&mut self, at: Time, out: &mut Sent) {
        while self.application.work(at, &mut self.connection, &self.results) {}
        self.segments.extend(self.connection.take_segments());
        let mut record = self.results.record();
        if self.application.is_active() && self.connection.state() == State::GivenUp {
            let seconds = GIVE_UP_AFTER.as_secs_f64();
            record.failure.get_or_insert_with(|| format!("nothing came from the other end for {seconds} s"));
        }
        let side = record.side(self.end.sends());
        if !self.segments.is_empty() {
            let tuple = self.route.tuple(TCP);
            for packet in packet::write(&self.route, &self.segments) {
                let len = packet.bytes.len() as u32;
                side.sent(len);
                let (header_len, ecn, payload) = (packet.header_bytes, packet.ecn, Payload::Whole(packet.bytes));
                out.push(Pdu { len, header_len, ecn, flow: self.flow, tuple, payload, ..Pdu::default() });
            }
            self.segments.clear();
        }
        side.delivery.packets_retransmitted = Some(self.connection.counts().retransmissions);
    }

    fn arrival(&self) -> Direction {
        self.end.other().sends()
    }
}

impl<A: Application> Endpoint for HostEndpoint<A> {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.application.begin(at);
        match self.end {
            End::Server => self.connection.listen(),
            End::Client => self.connection.connect(at),
        }
        self.run(at, out);
    }

    fn receive(&mut self, at: Time, pdu: Pdu, out: &mut Sent) {
        let Some(bytes) = bytes_of(&pdu) else { return };
        let (reception, segment) = packet::read(&pdu, bytes);
        self.results.record().side(self.arrival()).received(at, &pdu, reception);
        if let Some(segment) = segment {
            self.connection.receive(at, &segment);
            self.run(at, out);
        }
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        if self.next_deadline().is_some_and(|due| due <= at) {
            self.connection.advance(at);
            self.run(at, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        match (self.connection.next_deadline(), self.application.next_deadline()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn progress(&self) -> Progress {
        self.results.record().progress(self.application.is_active())
    }
}
