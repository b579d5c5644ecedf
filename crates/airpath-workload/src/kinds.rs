// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Every kind of workload with its keys and their defaults: the only declaration of them.
//!
//! `from` names the end that sends the data. Lengths called `size` and `mtu` are those of IP packets,
//! as everywhere in Airpath; `bytes`, `request` and `response` are the application's.

use std::net::IpAddr;
use std::path::PathBuf;

use airpath_core::{End, Probability, Rate, Span};

use crate::macros::{key_default, key_read, key_serialize, key_type, key_write, kinds};
use crate::value::{
    Bytes, Count, EcnUse, MediaControl, Period, QuicCongestionControl, TcpCongestionControl, TimestampUse, UdpProtocol,
    Value,
};

/// Bytes of an IPv4 header without options and of a UDP or UDP-Lite header.
pub const IP_AND_UDP_BYTES: u64 = 28;
/// Bytes of an RTP header without extensions (RFC 3550).
pub const RTP_BYTES: u64 = 12;

/// Bytes of an RTP header of adaptive media, with the time of sending and the place in the frame.
pub const ADAPTIVE_RTP_BYTES: u64 = 28;

/// RMIN of RFC 8698.
const LEAST_MEDIA_RATE: Rate = Rate::new(150_000).unwrap();
/// RMAX of RFC 8698.
const GREATEST_MEDIA_RATE: Rate = Rate::new(1_500_000).unwrap();

kinds! {
    /// A bulk transfer over one TCP connection, which the client opens.
    Tcp = "tcp" {
        /// Amount to transfer; without it and `duration`, as much as the run has time for.
        bytes: Bytes => optional,
        /// Duration of sending.
        duration: Span => optional,
        /// The end that sends.
        from: End => default(End::Server),
        /// The sender's congestion control.
        cc: TcpCongestionControl => default(TcpCongestionControl::Cubic),
        /// The largest segment; without it, what the MTU allows.
        mss: Bytes => optional,
        /// The receiver's buffer, which is the largest window it offers; without it, one that grows to 6 MB.
        recv_window: Bytes => optional,
        /// Timestamps (RFC 7323), 12 bytes of each segment.
        timestamps: TimestampUse => default(TimestampUse::Yes),
        /// ECN (RFC 3168).
        ecn: EcnUse => default(EcnUse::No),
    }

    /// Requests and responses in turn over one TCP connection, which the client opens.
    Request = "request" {
        /// Number of requests.
        count: Count => default(Count(1)),
        /// The length of a request.
        request: Bytes => default(Bytes(100)),
        /// The length of a response.
        response: Bytes => required,
        /// Pause of the client between a response and its next request.
        think: Span => default(Span::ZERO),
        /// The congestion control of both ends.
        cc: TcpCongestionControl => default(TcpCongestionControl::Cubic),
        /// The largest segment; without it, what the MTU allows.
        mss: Bytes => optional,
        /// The receivers' buffers, which are the largest windows they offer; without it, ones that grow to 6 MB.
        recv_window: Bytes => optional,
        /// Timestamps (RFC 7323), 12 bytes of each segment.
        timestamps: TimestampUse => default(TimestampUse::Yes),
        /// ECN (RFC 3168).
        ecn: EcnUse => default(EcnUse::No),
    }

    /// A bulk transfer over one stream of a QUIC connection, which the client opens.
    Quic = "quic" {
        /// Amount to transfer; without it and `duration`, as much as the run has time for.
        bytes: Bytes => optional,
        /// Duration of sending.
        duration: Span => optional,
        /// The end that sends.
        from: End => default(End::Server),
        /// The sender's congestion control.
        cc: QuicCongestionControl => default(QuicCongestionControl::Cubic),
    }

    /// Datagrams of one size at a constant rate.
    Cbr = "cbr" {
        /// The rate of their IP packets; this or `interval`.
        rate: Rate => optional,
        /// The time from one to the next; this or `rate`.
        interval: Span => optional,
        /// The length of the IP packets.
        size: Bytes => required,
        /// The end that sends.
        from: End => default(End::Server),
        /// UDP or UDP-Lite.
        protocol: UdpProtocol => default(UdpProtocol::Udp),
        /// Bytes covered by UDP-Lite's checksum, including its 8-byte header; without it, all.
        coverage: Bytes => optional,
        /// Duration of the flow.
        duration: Span => optional,
        /// Number of packets to send.
        packets: Count => optional,
        /// Number of bytes of IP packets to send.
        bytes: Bytes => optional,
    }

    /// Datagrams of one size as a Poisson process: the times between them are independent and
    /// exponentially distributed.
    Poisson = "poisson" {
        /// The mean rate of their IP packets; this or `interval`.
        rate: Rate => optional,
        /// The mean time from one to the next; this or `rate`.
        interval: Span => optional,
        /// The length of the IP packets.
        size: Bytes => required,
        /// The end that sends.
        from: End => default(End::Server),
        /// UDP or UDP-Lite.
        protocol: UdpProtocol => default(UdpProtocol::Udp),
        /// Bytes covered by UDP-Lite's checksum, including its 8-byte header; without it, all.
        coverage: Bytes => optional,
        /// Duration of the flow.
        duration: Span => optional,
        /// Number of packets to send.
        packets: Count => optional,
        /// Number of bytes of IP packets to send.
        bytes: Bytes => optional,
    }

    /// Datagrams at a constant rate during periods that alternate with silence; a period's rest of an
    /// interval is carried over into the next.
    OnOff = "on-off" {
        /// Duration of sending periods: a time, or "exponential 1 s" for times of that mean.
        on: Period => required,
        /// Duration of silent periods: a time, or "exponential 1 s" for times of that mean.
        off: Period => required,
        /// The rate of the IP packets while sending; this or `interval`.
        rate: Rate => optional,
        /// The time from one to the next while sending; this or `rate`.
        interval: Span => optional,
        /// The length of the IP packets.
        size: Bytes => required,
        /// The end that sends.
        from: End => default(End::Server),
        /// UDP or UDP-Lite.
        protocol: UdpProtocol => default(UdpProtocol::Udp),
        /// Bytes covered by UDP-Lite's checksum, including its 8-byte header; without it, all.
        coverage: Bytes => optional,
        /// Duration of the flow.
        duration: Span => optional,
        /// Number of packets to send.
        packets: Count => optional,
        /// Number of bytes of IP packets to send.
        bytes: Bytes => optional,
    }

    /// Datagrams as fast as the link takes them, so that its queue is never empty.
    Saturate = "saturate" {
        /// The length of the IP packets; without it, the MTU.
        size: Bytes => optional,
        /// Maximum number of packets inside the link; choose more than the link holds in transit.
        window: Count => default(Count(1_000)),
        /// The end that sends.
        from: End => default(End::Server),
        /// UDP or UDP-Lite.
        protocol: UdpProtocol => default(UdpProtocol::Udp),
        /// Bytes covered by UDP-Lite's checksum, including its 8-byte header; without it, all.
        coverage: Bytes => optional,
        /// Duration of the flow.
        duration: Span => optional,
        /// Number of packets to send.
        packets: Count => optional,
        /// Number of bytes of IP packets to send.
        bytes: Bytes => optional,
    }

    /// A video of frames in groups, cut into RTP packets (RFC 3550) and played at a fixed delay.
    Media = "media" {
        /// Number of frames per second.
        frames_per_second: Count => default(Count(25)),
        /// The mean rate of the frames, without the headers of packets.
        bitrate: Rate => required,
        /// Frames in a group, of which the first is an intra frame.
        gop: Count => default(Count(12)),
        /// Average size of an intra frame relative to other frames.
        i_ratio: Count => default(Count(4)),
        /// Maximum deviation of a frame's size from the mean; uniformly drawn.
        variation: Probability => default(Probability::ZERO),
        /// The largest IP packet; without it, the link's MTU.
        mtu: Bytes => optional,
        /// Playout delay after the capture of a frame; packets that arrive later are late.
        playout: Span => default(Span::from_millis(200)),
        /// The end that sends.
        from: End => default(End::Server),
        /// UDP or UDP-Lite.
        protocol: UdpProtocol => default(UdpProtocol::Udp),
        /// Bytes covered by UDP-Lite's checksum, including its 8-byte header; without it, all.
        coverage: Bytes => optional,
        /// Duration of the flow.
        duration: Span => optional,
        /// Number of frames to send.
        frames: Count => optional,
    }

    /// A video whose rate a congestion control adapts to the path, in RTP packets, with reports of the
    /// receiver. Rates are those of IP packets.
    AdaptiveMedia = "adaptive-media" {
        /// The congestion control.
        control: MediaControl => default(MediaControl::Nada),
        /// Least rate of the encoder.
        least_rate: Rate => default(LEAST_MEDIA_RATE),
        /// Greatest rate of the encoder.
        greatest_rate: Rate => default(GREATEST_MEDIA_RATE),
        /// Rate at the beginning; without it, the least rate.
        initial_rate: Rate => optional,
        /// Weight among flows that share a bottleneck.
        weight: Count => default(Count(1)),
        /// Number of frames per second.
        frames_per_second: Count => default(Count(30)),
        /// Maximum deviation of a frame's size from what the rate asks for; uniformly drawn.
        variation: Probability => default(Probability::ZERO),
        /// The largest IP packet; without it, the link's MTU.
        mtu: Bytes => optional,
        /// Playout delay after the capture of a frame; packets that arrive later are late.
        playout: Span => default(Span::from_millis(400)),
        /// ECN: packets may be marked instead of dropped.
        ecn: EcnUse => default(EcnUse::No),
        /// Time from the beginning at which the sender pauses.
        pause: Span => optional,
        /// Time from the beginning at which the sender resumes; without it, never.
        resume: Span => optional,
        /// The end that sends.
        from: End => default(End::Server),
        /// Duration of the flow.
        duration: Span => optional,
        /// Number of frames to capture.
        frames: Count => optional,
    }

    /// The packets of a capture at the times at which they were captured, counted from the first.
    Pcap = "pcap" {
        /// The capture: pcap or pcapng of raw IP, Ethernet or Linux cooked packets.
        file: PathBuf => required,
        /// The end that sends all of it; this or `client`, or the client is who sends the first packet.
        from: End => optional,
        /// The address whose packets the client sends; the server sends those to it.
        client: IpAddr => optional,
        /// Duration of the capture to send.
        duration: Span => optional,
        /// Number of packets to send.
        packets: Count => optional,
    }
}
