// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A host with one TCP connection, and the endpoint that it makes together with an application.

use airpath_core::{Direction, End, Payload, Pdu, Time};
use airpath_packet::checksum;
use airpath_packet::protocol::TCP;
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::{Bytes as ByteCount, TcpCongestionControl};
use bytes::Bytes;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpEndpoint};

use crate::Context;
use crate::datagram::bytes_of;
use crate::error::EndpointError;
use crate::ip::{IPV4_BYTES, Reception};
use crate::options::Route;
use crate::record::Results;
use crate::tcp::wire::Wire;

/// Bytes of an IPv4 and a TCP header without options.
const HEADER_BYTES: u64 = 40;
const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;
/// The least MTU of an IPv4 link (RFC 791).
const LEAST_MTU_BYTES: u32 = 68;
/// Time for which it sends in vain before it gives up, as Linux does with 15 retransmissions (at least 100 s by
/// RFC 9293, section 3.8.3).
const GIVE_UP_AFTER: Duration = Duration::from_millis(924_600);

/// Settings of a connection, the same at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    congestion_control: CongestionControl,
    mtu_bytes: usize,
    window_bytes: usize,
    nagle: bool,
}

impl Settings {
    pub(super) fn new(
        congestion_control: TcpCongestionControl,
        mss: Option<ByteCount>,
        window: ByteCount,
        nagle: bool,
        context: &Context,
    ) -> Result<Settings, EndpointError> {
        let mtu_bytes = context.options.mtu_bytes;
        if mtu_bytes < LEAST_MTU_BYTES {
            let (protocol, reason) = ("TCP", "RFC 791, section 3.2");
            return Err(EndpointError::MtuTooSmall { protocol, least_bytes: LEAST_MTU_BYTES, reason, mtu_bytes });
        }
        let packet_bytes = mss.map_or(u64::from(mtu_bytes), |mss| mss.0 + HEADER_BYTES).min(u64::from(mtu_bytes));
        Ok(Settings {
            congestion_control: match congestion_control {
                TcpCongestionControl::None => CongestionControl::None,
                TcpCongestionControl::Reno => CongestionControl::Reno,
                TcpCongestionControl::Cubic => CongestionControl::Cubic,
            },
            // A stack without an option for it takes the largest segment from its device.
            mtu_bytes: packet_bytes as usize,
            window_bytes: window.0 as usize,
            nagle,
        })
    }
}

/// A host with one TCP connection.
pub(super) struct Host {
    end: End,
    flow: u32,
    route: Route,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    wire: Wire,
    deadline: Option<Time>,
}

impl Host {
    fn new(end: End, settings: &Settings, context: &Context) -> Host {
        let mut wire = Wire::new(settings.mtu_bytes);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = context.key(end, "tcp").bits(0, 0);
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        let route = Route::new(end, context.flow, &context.options);
        interface.update_ip_addrs(|addresses| {
            let prefix = airpath_core::end::IPV4_PREFIX_LENGTH;
            // The list was empty, so there is room.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(route.source.0), prefix));
        });
        let buffer = || SocketBuffer::new(vec![0; settings.window_bytes]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(settings.congestion_control);
        socket.set_nagle_enabled(settings.nagle);
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Host { end, flow: context.flow, route, interface, sockets, handle, wire, deadline: None }
    }

    /// True if it waited in vain for an answer, and has given the connection up.
    fn has_given_up(&self) -> bool {
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        socket.timeout().is_some() && socket.state() == State::Closed
    }

    fn open(&mut self) -> Result<(), String> {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        match self.end {
            End::Server => socket.listen(self.route.source.1).map_err(|error| error.to_string()),
            End::Client => {
                let remote = IpEndpoint::new(IpAddress::Ipv4(self.route.destination.0), self.route.destination.1);
                let context = self.interface.context();
                socket.connect(context, remote, self.route.source.1).map_err(|error| error.to_string())
            }
        }
    }

    /// Runs the stack at `at`; `work` is the application's turn, and says whether it did anything.
    fn run(&mut self, at: Time, mut work: impl FnMut(&mut Socket<'static>) -> bool) {
        let now = microseconds(at);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        // The stack would also give up a connection that has nothing to say for so long.
        let waits = socket.send_queue() > 0 || matches!(socket.state(), State::SynSent | State::SynReceived);
        socket.set_timeout(waits.then_some(GIVE_UP_AFTER));
        loop {
            self.interface.poll(now, &mut self.wire, &mut self.sockets);
            if !work(self.sockets.get_mut(self.handle)) {
                break;
            }
        }
        let next = (at.nanos() / NANOSECONDS_PER_MICROSECOND + 1) * NANOSECONDS_PER_MICROSECOND;
        self.deadline = self.interface.poll_at(now, &self.sockets).map(|due| {
            // What is due in the microsecond that has begun is due with the next.
            let due = (due.total_micros().max(0) as u64).saturating_mul(NANOSECONDS_PER_MICROSECOND);
            Time::from_nanos(due.max(next))
        });
    }
}

fn microseconds(at: Time) -> Instant {
    Instant::from_micros((at.nanos() / NANOSECONDS_PER_MICROSECOND) as i64)
}

/// User of a connection.
pub(super) trait Application: Send {
    /// The application's turn at `at`: reads and writes; whether it did anything.
    fn work(&mut self, at: Time, socket: &mut Socket<'static>, results: &Results) -> bool;

    /// Time at which it wants another turn, whatever arrives.
    fn next_deadline(&self) -> Option<Time>;

    /// True if it is at work.
    fn is_active(&self) -> bool;

    /// Called once before all else.
    fn begin(&mut self, at: Time);
}

/// A host and its application as an endpoint.
pub(super) struct HostEndpoint<A> {
    host: Host,
    application: A,
    results: Results,
}

impl<A: Application> HostEndpoint<A> {
    pub(super) fn new(end: End, settings: &Settings, application: A, context: &Context) -> HostEndpoint<A> {
        HostEndpoint { host: Host::new(end, settings, context), application, results: context.results.clone() }
    }

    fn run(&mut self, at: Time, out: &mut Sent) {
        let (application, results) = (&mut self.application, &self.results);
        self.host.run(at, |socket| application.work(at, socket, results));
        let mut record = self.results.record();
        if application.is_active() && self.host.has_given_up() {
            let seconds = GIVE_UP_AFTER.total_millis() as f64 / 1e3;
            record.failure.get_or_insert_with(|| format!("nothing came from the other end for {seconds} s"));
        }
        let side = record.side(self.host.end.sends());
        for packet in self.host.wire.sent.drain(..) {
            let len = packet.bytes.len() as u32;
            side.sent(len);
            let header_len = packet.header_bytes as u16;
            let payload = Payload::Whole(packet.bytes.into());
            let tuple = self.host.route.tuple(TCP);
            out.push(Pdu { len, header_len, flow: self.host.flow, tuple, payload, ..Pdu::default() });
        }
        side.delivery.packets_retransmitted = Some(self.host.wire.retransmitted);
    }

    fn arrival(&self) -> Direction {
        self.host.end.other().sends()
    }
}

impl<A: Application> Endpoint for HostEndpoint<A> {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.application.begin(at);
        if let Err(error) = self.host.open() {
            self.results.record().failure = Some(error);
        }
        self.run(at, out);
    }

    fn receive(&mut self, at: Time, pdu: Pdu, out: &mut Sent) {
        let Some(bytes) = bytes_of(&pdu) else { return };
        let (verdict, bytes) = damaged(&pdu, bytes);
        self.results.record().side(self.arrival()).received(at, &pdu, verdict);
        if verdict != Reception::Rejected {
            self.host.wire.received.push_back(bytes);
            self.run(at, out);
        }
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        if self.next_deadline().is_some_and(|due| due <= at) {
            self.run(at, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        match (self.host.deadline, self.application.next_deadline()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn progress(&self) -> Progress {
        self.results.record().progress(self.application.is_active())
    }
}

/// The bytes of a packet as they left the link, and whether the stack's checksums would take them.
fn damaged(pdu: &Pdu, bytes: &Bytes) -> (Reception, Bytes) {
    let Some(damage) = &pdu.damage else { return (Reception::Intact, bytes.clone()) };
    let mut packet = bytes.to_vec();
    damage.apply(&mut packet);
    let taken = packet.len() == bytes.len() && has_good_checksums(&packet);
    (if taken { Reception::Damaged } else { Reception::Rejected }, packet.into())
}

fn has_good_checksums(packet: &[u8]) -> bool {
    let Some((ip, transport)) = packet.split_at_checked(IPV4_BYTES) else { return false };
    let pseudo_header = checksum::pseudo_header_sum(&ip[12..20], transport.len(), TCP);
    checksum::checksum(ip) == 0 && checksum::fold(pseudo_header + checksum::sum(transport)) == 0xffff
}
