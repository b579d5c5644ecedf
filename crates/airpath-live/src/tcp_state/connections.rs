// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Table of known sockets and their last values, which tells new values.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use airpath_core::End;
use airpath_log::tcp_state::{Row, SocketState, Source};
use airpath_packet::flow::tcp_flow;

use super::format::ProbeRecord;
use super::info::fill;
use crate::netlink::TcpSocket;

/// Time for which a socket that no sample shows any more may still be told of as closed, and records of the
/// tracepoint wait for their socket to become known.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Number of tracepoint records that may wait for their socket.
const MOST_WAITING: usize = 1 << 16;

/// The sockets at both ends of the link, and rows that wait to be written.
#[derive(Debug)]
pub(super) struct Connections {
    /// The addresses of the ends on the link.
    addresses: [Vec<IpAddr>; 2],
    known: HashMap<u64, Known>,
    /// Sockets that were closed, for the records that still come, and when.
    closed: HashMap<u64, (Row, u64)>,
    unknown: Vec<ProbeRecord>,
    rows: Vec<Row>,
    sockets: u32,
    told: u64,
    lost: u64,
}

/// A socket that was seen.
#[derive(Debug)]
struct Known {
    last: Row,
    /// True if the last values are among the rows.
    written: bool,
    /// True if the newest sample showed it.
    seen: bool,
    /// Number of its namespace.
    namespace: usize,
}

impl Connections {
    /// None yet, at ends with these addresses: the client's, then the server's.
    pub fn new(addresses: [Vec<IpAddr>; 2]) -> Self {
        Self {
            addresses,
            known: HashMap::new(),
            closed: HashMap::new(),
            unknown: Vec::new(),
            rows: Vec::new(),
            sockets: 0,
            told: 0,
            lost: 0,
        }
    }

    /// Number of sockets seen.
    pub fn sockets(&self) -> u64 {
        u64::from(self.sockets)
    }

    /// Number of samples and closings so far that told something new.
    pub fn rows_so_far(&self) -> u64 {
        self.told
    }

    /// True if nothing waits for its time.
    pub fn is_settled(&self) -> bool {
        self.unknown.is_empty() && self.closed.is_empty() && self.known.values().all(|known| known.seen)
    }

    /// Number of tracepoint records dropped for lack of room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// True if a socket of `end` with these addresses speaks over the link.
    fn is_of_link(&self, end: End, local: IpAddr, remote: IpAddr) -> bool {
        let own = &self.addresses[end as usize];
        own.contains(&local) && !own.contains(&remote)
    }

    /// Takes in what was said at `time_ns` of all sockets of a namespace, which is one of an end.
    pub fn sampled(&mut self, time_ns: u64, (end, namespace): (End, usize), mut sockets: Vec<TcpSocket>) {
        // Equal runs see equal sockets, whatever the order of the kernel's table.
        sockets.sort_by_key(|socket| (socket.local, socket.remote));
        for known in self.known.values_mut().filter(|known| known.namespace == namespace) {
            known.seen = false;
        }
        for socket in sockets {
            if !self.is_of_link(end, socket.local.ip(), socket.remote.ip()) || self.closed.contains_key(&socket.cookie)
            {
                continue;
            }
            let new = !self.known.contains_key(&socket.cookie);
            let mut row = self.row_of(end, &socket);
            (row.time_ns, row.source) = (time_ns, Source::Sample);
            fill(&mut row, &socket);
            let known =
                self.known.entry(socket.cookie).or_insert(Known { last: row, written: false, seen: true, namespace });
            let changed = new || !row.says_the_same_as(&known.last);
            if changed {
                self.told += 1;
                self.rows.push(row);
            }
            *known = Known { last: row, written: changed, seen: true, namespace };
        }
    }

    /// Takes in the last values of a socket of `end` that was closed.
    pub fn closed(&mut self, time_ns: u64, end: End, socket: &TcpSocket) {
        if !self.is_of_link(end, socket.local.ip(), socket.remote.ip()) || self.closed.contains_key(&socket.cookie) {
            return;
        }
        let mut row = self.row_of(end, socket);
        (row.time_ns, row.source) = (time_ns, Source::Closed);
        fill(&mut row, socket);
        self.known.remove(&socket.cookie);
        self.told += 1;
        self.rows.push(row);
        self.closed.insert(socket.cookie, (row, time_ns));
    }

    /// The last row of a socket, or the first one of a new one.
    fn row_of(&mut self, end: End, socket: &TcpSocket) -> Row {
        if let Some(known) = self.known.get(&socket.cookie) {
            return known.last;
        }
        self.sockets += 1;
        let pair = |address: SocketAddr| (address.ip(), address.port());
        let flows = (tcp_flow(socket.local, socket.remote), tcp_flow(socket.remote, socket.local));
        Row::of(end, self.sockets, pair(socket.local), pair(socket.remote), flows)
    }

    /// Takes in a record of the tracepoint, which sees all sockets of the machine.
    pub fn probed(&mut self, record: ProbeRecord) {
        let (local, remote) = (record.local.ip(), record.remote.ip());
        if !End::ALL.into_iter().any(|end| self.is_of_link(end, local, remote)) {
            return;
        }
        if self.unknown.len() < MOST_WAITING {
            self.unknown.push(record);
        } else {
            self.lost += 1;
        }
    }

    /// Gives records to the sockets that have become known, and gives up what
    /// has waited too long: others' sockets with the same addresses.
    fn settle(&mut self, now_ns: u64) {
        let (known, closed, rows) = (&self.known, &self.closed, &mut self.rows);
        self.unknown.retain(|record| {
            let of = known.get(&record.cookie).map(|known| &known.last);
            match of.or_else(|| closed.get(&record.cookie).map(|(row, _)| row)) {
                Some(row) => {
                    rows.push(record.row(row));
                    false
                }
                None => record.time_ns + PATIENCE_NS > now_ns,
            }
        });
        self.closed.retain(|_, (_, at_ns)| *at_ns + PATIENCE_NS > now_ns);
        let rows = &mut self.rows;
        self.known.retain(|_, known| {
            let stays = known.seen || known.last.time_ns + PATIENCE_NS > now_ns;
            if !stays && !known.written {
                rows.push(known.last);
            }
            stays
        });
    }

    /// Hands out the rows that no later one can precede any more, in order;
    /// whatever comes later is of `until_ns` or after.
    pub fn take(&mut self, now_ns: u64, until_ns: u64) -> Vec<Row> {
        self.settle(now_ns);
        let oldest = self.unknown.iter().map(|record| record.time_ns).min().unwrap_or(u64::MAX);
        // The last values of a socket that has gone are told when it is given up.
        let gone = self.known.values().filter(|known| !known.seen && !known.written).map(|known| known.last.time_ns);
        let until_ns = until_ns.min(oldest).min(gone.min().unwrap_or(u64::MAX));
        self.rows.sort_by_key(|row| (row.time_ns, row.socket, row.source));
        let ready = self.rows.partition_point(|row| row.time_ns < until_ns);
        self.rows.drain(..ready).collect()
    }

    /// Hands out all that is left, with the last values of every socket.
    pub fn finish(&mut self, now_ns: u64) -> Vec<Row> {
        self.settle(now_ns);
        let last = self.known.drain().filter(|(_, known)| !known.written).map(|(_, known)| known.last);
        self.rows.extend(last);
        self.unknown.clear();
        self.take(now_ns, u64::MAX)
    }
}

impl ProbeRecord {
    /// The row for it, of the socket that `socket` is a row of.
    fn row(&self, socket: &Row) -> Row {
        Row {
            time_ns: self.time_ns,
            source: Source::Acknowledgement,
            state: SocketState::Established,
            congestion_control: socket.congestion_control,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            srtt_ns: self.srtt_ns,
            snd_wnd: self.snd_wnd,
            rcv_wnd: self.rcv_wnd,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            ..Row::of(
                socket.end,
                socket.socket,
                (socket.local_address, socket.local_port),
                (socket.remote_address, socket.remote_port),
                (socket.flow, socket.reverse_flow),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::info::tests::{info, socket};
    use super::*;

    const MS: u64 = 1_000_000;

    fn connections() -> Connections {
        Connections::new([vec![[10, 77, 0, 2].into()], vec![[10, 77, 0, 1].into()]])
    }

    fn cwnd(value: u32) -> Vec<u8> {
        info(&[(80, value)])
    }

    fn told(rows: &[Row]) -> Vec<(u64, Source, Option<u32>)> {
        rows.iter().map(|row| (row.time_ns / MS, row.source, row.cwnd)).collect()
    }

    #[test]
    fn only_changes_the_first_and_the_last_are_rows() {
        let mut all = connections();
        for (time, window) in [(10, 10), (20, 10), (30, 20), (40, 20), (50, 20)] {
            all.sampled(time * MS, (End::Client, 0), vec![socket(1, cwnd(window))]);
        }
        let rows = all.finish(60 * MS);
        let sample = Source::Sample;
        assert_eq!(told(&rows), [(10, sample, Some(10)), (30, sample, Some(20)), (50, sample, Some(20))]);
        assert_eq!(all.sockets(), 1);
    }

    #[test]
    fn a_closed_socket_ends_with_what_the_kernel_says_of_it() {
        let mut all = connections();
        all.sampled(10 * MS, (End::Client, 0), vec![socket(1, cwnd(10))]);
        let gone = TcpSocket { congestion_control: None, state: 7, ..socket(1, cwnd(12)) };
        all.closed(15 * MS, End::Client, &gone);
        all.sampled(20 * MS, (End::Client, 0), vec![]);
        // One that lived between two samples.
        all.closed(25 * MS, End::Client, &socket(2, cwnd(3)));
        let rows = all.finish(30 * MS);
        let expected = [(10, Source::Sample, Some(10)), (15, Source::Closed, Some(12)), (25, Source::Closed, Some(3))];
        assert_eq!(told(&rows), expected);
        assert_eq!(rows[1].state, SocketState::Closed);
        assert_eq!(rows[1].congestion_control, rows[0].congestion_control);
        assert_eq!([rows[0].socket, rows[1].socket, rows[2].socket], [1, 1, 2]);
    }

    #[test]
    fn a_socket_that_vanishes_keeps_its_last_values() {
        let mut all = connections();
        all.sampled(10 * MS, (End::Client, 0), vec![socket(1, cwnd(10))]);
        all.sampled(20 * MS, (End::Client, 0), vec![socket(1, cwnd(10))]);
        all.sampled(30 * MS, (End::Client, 0), vec![]);
        assert_eq!(told(&all.take(30 * MS, 30 * MS)), [(10, Source::Sample, Some(10))]);
        all.sampled(2_000 * MS, (End::Client, 0), vec![]);
        assert_eq!(told(&all.take(2_000 * MS, 2_000 * MS)), [(20, Source::Sample, Some(10))]);
        assert!(all.finish(2_000 * MS).is_empty());
    }

    #[test]
    fn sockets_that_do_not_speak_over_the_link_are_none_of_ours() {
        let mut all = connections();
        all.sampled(10 * MS, (End::Server, 1), vec![socket(1, cwnd(10))]);
        let own = TcpSocket { remote: "10.77.0.2:80".parse().unwrap(), ..socket(2, cwnd(10)) };
        all.sampled(10 * MS, (End::Client, 0), vec![own]);
        all.closed(10 * MS, End::Server, &socket(3, cwnd(10)));
        assert!(all.finish(20 * MS).is_empty());
        assert_eq!(all.sockets(), 0);
    }

    #[test]
    fn acknowledgements_wait_for_their_socket_and_come_in_order() {
        let mut all = connections();
        let record = |time_ns: u64, cookie| ProbeRecord {
            time_ns,
            cookie,
            local: "10.77.0.2:40000".parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            cwnd: Some(11),
            ..ProbeRecord::default()
        };
        all.probed(record(4 * MS, 1));
        all.probed(record(5 * MS, 9)); // of another run on this machine
        assert!(all.take(9 * MS, 9 * MS).is_empty());
        all.sampled(10 * MS, (End::Client, 0), vec![socket(1, cwnd(12))]);
        // The stranger might still be one of ours.
        assert_eq!(told(&all.take(10 * MS, 20 * MS)), [(4, Source::Acknowledgement, Some(11))]);
        all.sampled(1_500 * MS, (End::Client, 0), vec![socket(1, cwnd(12))]);
        assert_eq!(told(&all.take(1_500 * MS, 1_500 * MS)), [(10, Source::Sample, Some(12))]);
        let elsewhere = ProbeRecord { remote: "10.77.0.9:80".parse().unwrap(), ..record(6 * MS, 1) };
        all.probed(ProbeRecord { local: "192.0.2.1:5".parse().unwrap(), ..elsewhere });
        assert_eq!(told(&all.finish(1_600 * MS)), [(1_500, Source::Sample, Some(12))]);
    }
}
