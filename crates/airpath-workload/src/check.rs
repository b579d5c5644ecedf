// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Constraints between keys.

use airpath_core::{Rate, Span};

use crate::keys::Keys;
use crate::kinds::{ADAPTIVE_RTP_BYTES, AdaptiveMedia, IP_AND_UDP_BYTES, Kind, Pcap, RTP_BYTES};
use crate::value::{Bytes, Count, Period, UdpProtocol};

/// Bytes of UDP-Lite's header, which is always covered.
const UDP_LITE_HEADER_BYTES: u64 = 8;
/// The longest IP packet.
const LARGEST_PACKET_BYTES: u64 = airpath_core::limits::LONGEST_PACKET_BYTES as u64;
/// The largest window that TCP can express (RFC 7323).
const LARGEST_WINDOW_BYTES: u64 = 1 << 30;

pub(crate) fn consistency(kind: &Kind, keys: &mut Keys<'_>) {
    match kind {
        Kind::Tcp(tcp) => {
            segments(tcp.mss, tcp.recv_window, keys);
            more_than_nothing("bytes", tcp.bytes, keys);
        }
        Kind::Request(request) => {
            segments(request.mss, request.recv_window, keys);
            more_than_nothing("request", Some(request.request), keys);
            more_than_nothing("response", Some(request.response), keys);
        }
        Kind::Quic(quic) => more_than_nothing("bytes", quic.bytes, keys),
        Kind::Cbr(cbr) => {
            pace(cbr.rate, cbr.interval, keys);
            datagrams(("size", Some(cbr.size)), cbr.protocol, cbr.coverage, keys);
        }
        Kind::Poisson(poisson) => {
            pace(poisson.rate, poisson.interval, keys);
            datagrams(("size", Some(poisson.size)), poisson.protocol, poisson.coverage, keys);
        }
        Kind::OnOff(on_off) => {
            pace(on_off.rate, on_off.interval, keys);
            datagrams(("size", Some(on_off.size)), on_off.protocol, on_off.coverage, keys);
            period("on", on_off.on, keys);
            period("off", on_off.off, keys);
        }
        Kind::Saturate(saturate) => datagrams(("size", saturate.size), saturate.protocol, saturate.coverage, keys),
        Kind::Media(media) => {
            datagrams(("mtu", media.mtu), media.protocol, media.coverage, keys);
            if media.mtu.is_some_and(|mtu| mtu.0 <= IP_AND_UDP_BYTES + RTP_BYTES) {
                keys.problem(
                    "mtu",
                    format!("mtu: it must be above the {} bytes of headers", IP_AND_UDP_BYTES + RTP_BYTES),
                );
            }
            if media.frames_per_second > Count(1_000) {
                keys.problem("frames_per_second", "frames_per_second: it must be at most 1000".into());
            }
        }
        Kind::AdaptiveMedia(media) => adaptive(media, keys),
        Kind::Pcap(Pcap { from: Some(_), client: Some(_), .. }) => {
            keys.problem("client", "`from` and `client` both name the sender; use only one".into());
        }
        Kind::Pcap(_) => {}
    }
}

fn adaptive(media: &AdaptiveMedia, keys: &mut Keys<'_>) {
    datagrams(("mtu", media.mtu), UdpProtocol::Udp, None, keys);
    let headers = IP_AND_UDP_BYTES + ADAPTIVE_RTP_BYTES;
    if media.mtu.is_some_and(|mtu| mtu.0 <= headers) {
        keys.problem("mtu", format!("mtu: it must be above the {headers} bytes of headers"));
    }
    if media.greatest_rate < media.least_rate {
        keys.problem(
            "greatest_rate",
            format!("greatest_rate: {} is below least_rate, {}", media.greatest_rate, media.least_rate),
        );
    }
    if media.frames_per_second > Count(1_000) {
        keys.problem("frames_per_second", "frames_per_second: it must be at most 1000".into());
    }
    match (media.pause, media.resume) {
        (None, Some(_)) => keys.problem("resume", "`resume` needs `pause`".into()),
        (Some(pause), Some(resume)) if resume <= pause => {
            keys.problem("resume", format!("resume: {resume} is not after the pause at {pause}"));
        }
        _ => {}
    }
}

fn more_than_nothing(key: &str, bytes: Option<Bytes>, keys: &mut Keys<'_>) {
    if bytes == Some(Bytes(0)) {
        keys.problem(key, format!("{key}: it must be at least 1 byte"));
    }
}

fn segments(mss: Option<Bytes>, window: Option<Bytes>, keys: &mut Keys<'_>) {
    if mss.is_some_and(|mss| !(32..=65_495).contains(&mss.0)) {
        keys.problem("mss", "mss: it must be from 32 to 65495 bytes".into());
    }
    if window.is_some_and(|window| !(1..=LARGEST_WINDOW_BYTES).contains(&window.0)) {
        keys.problem("recv_window", format!("recv_window: it must be from 1 to {LARGEST_WINDOW_BYTES} bytes"));
    }
}

fn pace(rate: Option<Rate>, interval: Option<Span>, keys: &mut Keys<'_>) {
    match (rate, interval) {
        // A value that is wrong has been told already.
        (None, None) if keys.has("rate") || keys.has("interval") => {}
        (None, None) => keys.problem("rate", "`rate=…` or `interval=…` is required".into()),
        (Some(_), Some(_)) => {
            keys.problem("interval", "`rate` and `interval` both define the rate; use only one".into());
        }
        (None, Some(Span::ZERO)) => keys.problem("interval", "interval: it must be above 0".into()),
        _ => {}
    }
}

fn period(key: &str, period: Period, keys: &mut Keys<'_>) {
    if period.mean() == Span::ZERO {
        keys.problem(key, format!("{key}: it must be above 0"));
    }
}

fn datagrams(size: (&str, Option<Bytes>), protocol: UdpProtocol, coverage: Option<Bytes>, keys: &mut Keys<'_>) {
    if size.1.is_some_and(|size| !(IP_AND_UDP_BYTES..=LARGEST_PACKET_BYTES).contains(&size.0)) {
        let key = size.0;
        let message =
            format!("{key}: an IP packet has from {IP_AND_UDP_BYTES} (its headers) to {LARGEST_PACKET_BYTES} bytes");
        keys.problem(key, message);
    }
    match (protocol, coverage) {
        (_, None) => {}
        (UdpProtocol::Udp, Some(_)) => {
            keys.problem("coverage", "`coverage` needs protocol=udp-lite: UDP's checksum covers everything".into());
        }
        (UdpProtocol::UdpLite, Some(covered))
            if covered.0 < UDP_LITE_HEADER_BYTES || covered.0 > LARGEST_PACKET_BYTES =>
        {
            let message =
                format!("coverage: it must be from {UDP_LITE_HEADER_BYTES} bytes, UDP-Lite's header, to the packet");
            keys.problem("coverage", message);
        }
        (UdpProtocol::UdpLite, Some(_)) => {}
    }
}
