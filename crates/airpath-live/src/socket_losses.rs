// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses in the sockets of a network namespace: the kernel's counters of UDP and TCP.

use std::collections::HashMap;
use std::fs;
use std::io;

use airpath_log::SocketLosses;

use crate::namespaces::NetNamespace;

/// Counters of IPv4 and of both families.
const SNMP: &str = "/proc/thread-self/net/snmp";
/// Further counters of TCP.
const NETSTAT: &str = "/proc/thread-self/net/netstat";
/// Counters of IPv6; missing where the kernel has none.
const SNMP6: &str = "/proc/thread-self/net/snmp6";

/// The families of UDP, as the kernel spells them before a counter's name.
const DATAGRAMS: [&str; 4] = ["Udp", "UdpLite", "Udp6", "UdpLite6"];
/// Counters of segments that TCP received and threw away, as their receiver had no room.
const RECEIVE_DROPS: [&str; 5] = ["TCPRcvQDrop", "RcvPruned", "OfoPruned", "TCPOFODrop", "TCPBacklogDrop"];

/// Losses of `network` since it was made.
///
/// # Errors
/// When the counters cannot be read.
pub fn read(network: &NetNamespace) -> io::Result<SocketLosses> {
    let texts = network.run(|| {
        let six = match fs::read_to_string(SNMP6) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => other,
        };
        io::Result::Ok([fs::read_to_string(SNMP)?, fs::read_to_string(NETSTAT)?, six?])
    });
    let [snmp, netstat, snmp6] = texts.map_err(io::Error::other)??;
    losses(&counters(&snmp, &netstat, &snmp6))
        .ok_or_else(|| io::Error::other(format!("{SNMP} holds no counters of UDP")))
}

type Counters = HashMap<String, u64>;

/// All counters by protocol and name, such as `UdpRcvbufErrors`.
fn counters(snmp: &str, netstat: &str, snmp6: &str) -> Counters {
    let mut counters = Counters::new();
    for text in [snmp, netstat] {
        let mut lines = text.lines();
        // A line of names, then one of values.
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let (Some((protocol, names)), Some((_, values))) = (names.split_once(':'), values.split_once(':')) else {
                continue;
            };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                if let Ok(value) = value.parse() {
                    counters.insert(format!("{protocol}{name}"), value);
                }
            }
        }
    }
    for line in snmp6.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
            counters.insert(name.to_owned(), value);
        }
    }
    counters
}

/// Losses according to the counters; none where there are none of UDP.
fn losses(counters: &Counters) -> Option<SocketLosses> {
    counters.get("UdpInDatagrams")?;
    let get = |name: &str| counters.get(name).copied().unwrap_or_default();
    let udp = |name: &str| DATAGRAMS.iter().map(|family| get(&format!("{family}{name}"))).sum::<u64>();
    let more = |name: &str| get(&format!("TcpExt{name}"));
    let (buffer, memory) = (udp("RcvbufErrors"), udp("MemErrors"));
    Some(SocketLosses {
        udp_received: udp("InDatagrams"),
        udp_sent: udp("OutDatagrams"),
        udp_receive_buffer: buffer,
        udp_send_buffer: udp("SndbufErrors"),
        udp_memory: memory,
        // The kernel counts all of them as errors as well.
        udp_other: udp("InErrors").saturating_sub(buffer + memory + udp("InCsumErrors")),
        tcp_received: get("TcpInSegs"),
        tcp_receive_drops: RECEIVE_DROPS.iter().map(|name| more(name)).sum(),
        tcp_prunes: more("PruneCalled"),
        tcp_zero_window_drops: more("TCPZeroWindowDrop"),
        // Overflows are among the drops.
        listen_drops: more("ListenDrops").max(more("ListenOverflows")) + more("TCPReqQFullDrop"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP_TEXT: &str = "\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm InSegs OutSegs InErrs
Tcp: 1 900 800 3
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 183 4 135 20 117 1 15 0 2
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
UdpLite: 0 0 0 0 0 0 0 0 0
";
    const NETSTAT_TEXT: &str = "\
TcpExt: SyncookiesSent PruneCalled RcvPruned OfoPruned ListenOverflows ListenDrops TCPBacklogDrop TCPRcvQDrop TCPOFODrop TCPZeroWindowDrop TCPReqQFullDrop
TcpExt: 0 9 1 2 3 4 5 6 7 8 1
IpExt: InNoRoutes
IpExt: 0
";

    #[test]
    fn losses_are_told_from_damage_of_the_link() {
        let losses = losses(&counters(SNMP_TEXT, NETSTAT_TEXT, "Udp6RcvbufErrors   \t3\nUdp6InErrors 3\n")).unwrap();
        let expected = SocketLosses {
            udp_received: 183,
            udp_sent: 20,
            udp_receive_buffer: 120,
            udp_send_buffer: 1,
            udp_memory: 2,
            udp_other: 1,
            tcp_received: 900,
            tcp_receive_drops: 21,
            tcp_prunes: 9,
            tcp_zero_window_drops: 8,
            listen_drops: 5,
        };
        assert_eq!(losses, expected);
        assert_eq!(losses.datagrams(), 124);
        assert_eq!(losses.since(&losses), SocketLosses::default());
    }

    #[test]
    fn a_text_without_counters_is_no_run_without_losses() {
        assert_eq!(losses(&counters("", "", "")), None);
        assert_eq!(losses(&counters("Udp:\nUdp:\n", NETSTAT_TEXT, "")), None);
    }

    #[test]
    fn this_namespace_can_be_read() {
        read(&NetNamespace::current().unwrap()).unwrap();
    }
}
