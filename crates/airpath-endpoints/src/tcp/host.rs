// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A host with one TCP connection, and the endpoint that it makes together with an application.

use airpath_core::{End, FiveTuple, Pdu, Span, Time};
use airpath_packet::protocol::TCP;
use airpath_tcp::{BufferSize, Config, CongestionControl, Connection, State};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::{Bytes as ByteCount, EcnUse, TcpCongestionControl, TimestampUse};

use super::packet;
use crate::Context;
use crate::error::EndpointError;
use crate::options::Route;
use crate::record::{Record, Results};

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
    fn work(&mut self, at: Time, connection: &mut Connection, record: &mut Record) -> bool;

    /// Time at which it wants another turn, whatever arrives.
    fn next_deadline(&self) -> Option<Time>;

    /// True if it is at work.
    fn is_active(&self) -> bool;

    /// Called once before all else.
    fn begin(&mut self, at: Time);
}

/// A host and its application.
struct Host<A> {
    end: End,
    flow: u32,
    route: Route,
    tuple: FiveTuple,
    connection: Connection,
    application: A,
}

/// The same as an endpoint.
pub(super) struct HostEndpoint<A> {
    host: Host<A>,
    results: Results,
    /// True if it is at work, as of the last call.
    is_active: bool,
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
        let route = Route::new(end, context.flow, &context.options);
        let is_active = application.is_active();
        let host = Host { end, flow: context.flow, route, tuple: route.tuple(TCP), connection, application };
        HostEndpoint { host, results: context.results.clone(), is_active }
    }

    /// Lets the host do something with the record, which is locked once for all of it.
    fn with(&mut self, work: impl FnOnce(&mut Host<A>, &mut Record)) {
        let mut record = self.results.record();
        work(&mut self.host, &mut record);
        self.is_active = record.failure.is_none() && self.host.application.is_active();
    }
}

impl<A: Application> Host<A> {
    /// The application's turns, and what goes out then.
    fn run(&mut self, at: Time, record: &mut Record, out: &mut Sent) {
        while self.application.work(at, &mut self.connection, record) {}
        if self.application.is_active() && self.connection.state() == State::GivenUp {
            let seconds = GIVE_UP_AFTER.as_secs_f64();
            record.failure.get_or_insert_with(|| format!("nothing came from the other end for {seconds} s"));
        }
        let side = record.side(self.end.sends());
        if self.connection.has_segments() {
            for segment in self.connection.take_segments() {
                let pdu = packet::write(&self.route, self.flow, self.tuple, &segment);
                side.sent(pdu.len);
                out.push(pdu);
            }
        }
        side.delivery.packets_retransmitted = Some(self.connection.counts().retransmissions);
    }

    fn receive(&mut self, at: Time, pdu: &Pdu, record: &mut Record, out: &mut Sent) {
        let Some(headers) = packet::bytes_of(pdu) else { return };
        let (reception, segment) = packet::read(pdu, headers);
        record.side(self.end.other().sends()).received(at, pdu, reception);
        if let Some(segment) = segment {
            self.connection.receive(at, &segment);
            self.run(at, record, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        match (self.connection.next_deadline(), self.application.next_deadline()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

impl<A: Application> Endpoint for HostEndpoint<A> {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.with(|host, record| {
            record.start = Some(at);
            host.application.begin(at);
            match host.end {
                End::Server => host.connection.listen(),
                End::Client => host.connection.connect(at),
            }
            host.run(at, record, out);
        });
    }

    fn receive(&mut self, at: Time, pdu: Pdu, out: &mut Sent) {
        self.with(|host, record| host.receive(at, &pdu, record, out));
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        self.with(|host, record| {
            if host.next_deadline().is_some_and(|due| due <= at) {
                host.connection.advance(at);
                host.run(at, record, out);
            }
        });
    }

    fn next_deadline(&self) -> Option<Time> {
        self.host.next_deadline()
    }

    fn progress(&self) -> Progress {
        self.results.record().progress(self.host.application.is_active())
    }

    fn is_active(&self) -> bool {
        self.is_active
    }
}
