// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `struct tcp_info` and `struct tcp_bbr_info` of the kernel's interface
//! (include/uapi/linux/tcp.h and inet_diag.h), field by field: they grow at
//! their end from kernel to kernel, and what is not there is none.

use airpath_log::tcp_state::{CongestionState, Name, Row, SocketState};

use crate::netlink::TcpSocket;

/// A threshold that means none (TCP_INFINITE_SSTHRESH).
pub(super) const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// One of the kernel's structures, of which only the beginning may be there.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u8(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.0.get(at..at + 8)?.try_into().ok()?))
    }

    /// Microseconds of 32 bits as ns.
    fn micros(&self, at: usize) -> Option<u64> {
        self.u32(at).map(|micros| u64::from(micros) * 1_000)
    }
}

/// Fills in what the kernel says of `socket`.
pub(super) fn fill(row: &mut Row, socket: &TcpSocket) {
    let info = Fields(&socket.info);
    row.state = SocketState::from_kernel(socket.state).unwrap_or(SocketState::Closed);
    row.congestion_control = socket.congestion_control.as_deref().map(Name::new).or(row.congestion_control);
    row.congestion_state = info.u8(1).and_then(CongestionState::from_kernel);
    row.backoff = info.u8(4).map(u32::from);
    row.app_limited = None;
    row.rto_ns = info.micros(8);
    row.mss = info.u32(16);
    row.unacked = info.u32(24);
    row.sacked = info.u32(28);
    row.lost = info.u32(32);
    row.retrans = info.u32(36);
    // Before the first measurement the variation is the timeout's.
    row.srtt_ns = info.micros(68).filter(|srtt| *srtt > 0);
    row.rttvar_ns = info.micros(72).filter(|_| row.srtt_ns.is_some());
    row.ssthresh = info.u32(76).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH);
    row.cwnd = info.u32(80);
    row.reordering = info.u32(88);
    row.total_retrans = info.u32(100);
    row.pacing_rate_bps = info.u64(104).filter(|rate| *rate != u64::MAX).map(bits);
    row.bytes_acked = info.u64(120);
    row.bytes_received = info.u64(128);
    row.notsent_bytes = info.u32(144);
    row.min_rtt_ns = info.u32(148).filter(|micros| *micros != u32::MAX).map(|micros| u64::from(micros) * 1_000);
    row.delivery_rate_bps = info.u64(160).filter(|rate| *rate > 0).map(bits);
    row.app_limited = info.u8(7).filter(|_| row.delivery_rate_bps.is_some()).map(|flags| flags & 1 != 0);
    let micros = |at| info.u64(at).map(|micros| micros.saturating_mul(1_000));
    row.busy_ns = micros(168);
    row.rwnd_limited_ns = micros(176);
    row.sndbuf_limited_ns = micros(184);
    row.delivered = info.u32(192);
    row.delivered_ce = info.u32(196);
    row.bytes_sent = info.u64(200);
    row.bytes_retrans = info.u64(208);
    row.dsack_dups = info.u32(216);
    row.snd_wnd = info.u32(228);
    row.rcv_wnd = info.u32(232);
    if let Some(bytes) = &socket.bbr {
        let bbr = Fields(bytes);
        let gain = |at| bbr.u32(at).map(|gain| f64::from(gain) / 256.0);
        row.bbr_bandwidth_bps =
            bbr.u32(0).zip(bbr.u32(4)).map(|(low, high)| bits(u64::from(high) << 32 | u64::from(low)));
        row.bbr_min_rtt_ns = bbr.u32(8).filter(|micros| *micros != u32::MAX).map(|micros| u64::from(micros) * 1_000);
        row.bbr_pacing_gain = gain(12);
        row.bbr_cwnd_gain = gain(16);
    }
}

/// A rate of the kernel in bytes a second as bit/s.
fn bits(bytes: u64) -> u64 {
    bytes.saturating_mul(8)
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::SocketAddr;

    use airpath_core::End;

    use super::*;

    pub(in crate::tcp_state) fn socket(cookie: u64, info: Vec<u8>) -> TcpSocket {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        TcpSocket {
            cookie,
            state: 1,
            local: address("10.77.0.2:40000"),
            remote: address("10.77.0.1:80"),
            congestion_control: Some("reno".into()),
            info,
            bbr: None,
        }
    }

    pub(in crate::tcp_state) fn info(fields: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 248];
        for (at, value) in fields {
            bytes[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    fn row() -> Row {
        let socket = socket(1, Vec::new());
        let pair = |address: SocketAddr| (address.ip(), address.port());
        Row::of(End::Client, 1, pair(socket.local), pair(socket.remote), (1, 2))
    }

    #[test]
    fn fields_stand_where_the_kernel_puts_them() {
        let mut told = socket(1, info(&[(0, 0x0000_0301), (4, 0x0100_0002), (8, 200_000), (80, 10), (76, 7)]));
        for (at, value) in [(68, 50_000), (72, 9), (160, 125_000), (24, 4), (228, 65_535), (148, 40_000)] {
            told.info[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        let mut row = row();
        fill(&mut row, &told);
        assert_eq!(row.congestion_state, Some(CongestionState::Recovery));
        assert_eq!((row.cwnd, row.ssthresh, row.unacked, row.backoff), (Some(10), Some(7), Some(4), Some(2)));
        assert_eq!((row.rto_ns, row.srtt_ns, row.rttvar_ns), (Some(200_000_000), Some(50_000_000), Some(9_000)));
        assert_eq!((row.min_rtt_ns, row.delivery_rate_bps), (Some(40_000_000), Some(1_000_000)));
        assert_eq!((row.app_limited, row.snd_wnd), (Some(true), Some(65_535)));
        assert_eq!(row.congestion_control, Some(Name::new("reno")));
    }

    #[test]
    fn what_is_infinite_unknown_or_beyond_the_end_is_none() {
        let mut row = row();
        let mut told = socket(1, info(&[(76, INFINITE_SSTHRESH), (148, u32::MAX), (72, 250_000)]));
        told.info[104..112].copy_from_slice(&u64::MAX.to_ne_bytes());
        fill(&mut row, &told);
        assert_eq!((row.ssthresh, row.min_rtt_ns, row.pacing_rate_bps), (None, None, None));
        assert_eq!((row.srtt_ns, row.rttvar_ns, row.delivery_rate_bps, row.app_limited), (None, None, None, None));
        // Linux 3.x ended after the number of retransmissions.
        told.info.truncate(104);
        fill(&mut row, &told);
        assert_eq!((row.total_retrans, row.bytes_acked, row.snd_wnd), (Some(0), None, None));
    }

    #[test]
    fn bbr_tells_its_own() {
        let mut told = socket(1, info(&[]));
        let words = [125_000_u32, 0, 20_000, 739, 512];
        told.bbr = Some(words.iter().flat_map(|word| word.to_ne_bytes()).collect());
        let mut row = row();
        fill(&mut row, &told);
        assert_eq!((row.bbr_bandwidth_bps, row.bbr_min_rtt_ns), (Some(1_000_000), Some(20_000_000)));
        assert_eq!(row.bbr_cwnd_gain, Some(2.0));
        assert!((row.bbr_pacing_gain.unwrap() - 2.887).abs() < 0.001);
    }
}
