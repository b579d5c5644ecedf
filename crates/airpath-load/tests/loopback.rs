// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Every kind of load over the loopback interface, from a client to a server of this crate.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use airpath_load::server::Server;
use airpath_load::{
    Arrivals, Datagrams, Extent, Interval, LoadError, Plan, ProgressObserver, Report, Transport, Work, send,
};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn plan(work: Work) -> Plan {
    let (congestion_control, mss_bytes, interval) = (None, None, None);
    Plan { work, reverse: false, congestion_control, mss_bytes, no_delay: false, parallel: 1, interval }
}

/// Reports of the client and the server.
fn carry_out(
    plan: &Plan,
    observer: &mut dyn ProgressObserver,
) -> (Result<Report, LoadError>, Vec<Result<Report, LoadError>>) {
    let server = Server::bind(Some(LOOPBACK), 0).unwrap();
    let port = server.address().unwrap().port();
    let served = Mutex::new(Vec::new());
    let sent = std::thread::scope(|scope| {
        scope.spawn(|| server.serve(true, None, &|outcome| served.lock().unwrap().push(outcome)).unwrap());
        send("127.0.0.1", port, plan, observer)
    });
    assert_eq!(server.under_way(), 0);
    (sent, served.into_inner().unwrap())
}

fn both(plan: &Plan) -> (Report, Report) {
    let (sent, mut served) = carry_out(plan, &mut ());
    assert_eq!(served.len(), 1);
    (sent.unwrap(), served.pop().unwrap().unwrap())
}

#[test]
fn a_bulk_transfer_is_the_bytes_asked_for_at_both_ends() {
    for bytes in [9, 16 * 1024, 16 * 1024 + 1, 1_000_003] {
        let (client, server) = both(&plan(Work::Bulk(Extent::Bytes(bytes))));
        let (sent, received) = (client.streams[0].sent.clone().unwrap(), client.streams[0].received.unwrap());
        assert_eq!((sent.bytes, received.bytes), (bytes, bytes));
        assert_eq!(server.streams[0].received.unwrap(), received);
        assert!(sent.elapsed_ns >= received.elapsed_ns);
        assert!(!sent.congestion_control.is_empty() && sent.max_congestion_window_bytes > 0 && sent.min_rtt_us > 0);
        assert!(client.sends && !server.sends);
    }
}

#[test]
fn in_reverse_the_server_sends_as_much() {
    for bytes in [12, 1_000_003] {
        let (client, server) = both(&Plan { reverse: true, ..plan(Work::Bulk(Extent::Bytes(bytes))) });
        let (sent, received) = (client.streams[0].sent.clone().unwrap(), client.streams[0].received.unwrap());
        assert_eq!((sent.bytes, received.bytes), (bytes, bytes));
        // What the server measured of its own sending came over in the last record.
        assert_eq!(server.streams[0].sent.clone().unwrap(), sent);
        assert!(!client.sends && server.sends);
    }
}

#[test]
fn a_transfer_by_time_lasts_as_long_and_loses_nothing() {
    for reverse in [false, true] {
        let work = Work::Bulk(Extent::Time(Duration::from_millis(150)));
        let (client, server) = both(&Plan { reverse, ..plan(work) });
        let (sent, received) = (client.streams[0].sent.clone().unwrap(), client.streams[0].received.unwrap());
        assert_eq!(sent.bytes, received.bytes);
        assert!(sent.bytes > 4096 && sent.elapsed_ns >= 150_000_000, "{sent:?}");
        assert_eq!(server.streams[0].received.unwrap(), received);
    }
}

#[test]
fn parallel_streams_each_carry_all_of_it() {
    for reverse in [false, true] {
        let (client, served) =
            carry_out(&Plan { parallel: 3, reverse, ..plan(Work::Bulk(Extent::Bytes(100_000))) }, &mut ());
        let client = client.unwrap();
        assert_eq!(served.len(), 3);
        let bytes: Vec<u64> = client.streams.iter().map(|stream| stream.received.unwrap().bytes).collect();
        assert_eq!(bytes, [100_000; 3]);
    }
}

#[test]
fn every_request_is_answered_and_timed() {
    let work = Work::Requests { request_bytes: 100, response_bytes: 70_000, count: 25 };
    let (client, server) = both(&Plan { no_delay: true, ..plan(work) });
    let (sent, received) = (client.streams[0].sent.clone().unwrap(), client.streams[0].received.unwrap());
    assert_eq!((sent.bytes, sent.packets, received.bytes, received.packets), (2_500, 25, 1_750_000, 25));
    let times = &client.streams[0].response_times_ns;
    assert_eq!(times.len(), 25);
    assert!(times.iter().sum::<u64>() <= sent.elapsed_ns);
    assert_eq!(server.streams[0].received.unwrap().bytes, 2_500);
}

fn datagrams(extent: Extent, arrivals: Arrivals) -> Datagrams {
    let (rate_bits_per_second, length_bytes) = (4_000_000, 500);
    Datagrams { transport: Transport::Udp, extent, rate_bits_per_second, length_bytes, arrivals }
}

#[test]
fn datagrams_are_sent_at_their_rate_and_counted() {
    for reverse in [false, true] {
        // A datagram each millisecond: 100 of them leave over 99 ms.
        let stream = datagrams(Extent::Bytes(50_000), Arrivals::Constant);
        let (client, server) = both(&Plan { reverse, ..plan(Work::Datagrams(stream)) });
        let (sent, received) = (client.streams[0].sent.clone().unwrap(), client.streams[0].received.unwrap());
        assert_eq!((sent.packets, sent.bytes), (100, 50_000));
        assert!(sent.elapsed_ns >= 99_000_000, "{sent:?}");
        assert_eq!((received.packets, received.bytes, received.lost), (100, 50_000, 0));
        assert_eq!(server.streams[0].received.unwrap(), received);
    }
}

#[test]
fn datagrams_by_time_and_at_random() {
    let stream = datagrams(Extent::Time(Duration::from_millis(200)), Arrivals::Poisson { seed: 3 });
    let (client, _) = both(&plan(Work::Datagrams(stream)));
    let sent = client.streams[0].sent.clone().unwrap();
    // 200 on average; the seed fixes how many.
    assert!((150..250).contains(&sent.packets), "{sent:?}");
    assert_eq!(both(&plan(Work::Datagrams(stream))).0.streams[0].sent.clone().unwrap().packets, sent.packets);
}

#[derive(Default)]
struct Heard {
    connected: usize,
    intervals: Vec<Interval>,
}

impl ProgressObserver for Heard {
    fn connected(&mut self, streams: &[airpath_load::Endpoints]) {
        self.connected += streams.len();
    }
    fn interval(&mut self, interval: &Interval) {
        self.intervals.push(interval.clone());
    }
}

#[test]
fn intervals_join_and_add_up_to_the_whole() {
    let stream = datagrams(Extent::Bytes(50_000), Arrivals::Constant);
    let plan = Plan { interval: Some(Duration::from_millis(20)), parallel: 2, ..plan(Work::Datagrams(stream)) };
    let mut heard = Heard::default();
    let report = carry_out(&plan, &mut heard).0.unwrap();
    assert_eq!((heard.connected, heard.intervals.len()), (2, report.intervals.len()));
    assert!(report.intervals.len() >= 2);
    assert_eq!(report.intervals[0].from_ns, 0);
    for pair in report.intervals.windows(2) {
        assert_eq!(pair[0].to_ns, pair[1].from_ns);
    }
    let packets: u64 =
        report.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.packets).sum();
    assert_eq!(packets, 200);
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap().port();
    let error = send("127.0.0.1", port, &plan(Work::Bulk(Extent::Bytes(100))), &mut ()).unwrap_err().to_string();
    assert!(error.contains("refuses the connection") && error.contains(&format!("recv --port {port}")), "{error}");
}

#[test]
fn a_name_that_nobody_knows() {
    let error =
        send("no-such-host.invalid", 1, &plan(Work::Bulk(Extent::Bytes(100))), &mut ()).unwrap_err().to_string();
    assert!(error.contains("`no-such-host.invalid` is not known") && error.contains("`server`"), "{error}");
}

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let error = Server::bind(Some(LOOPBACK), taken.local_addr().unwrap().port()).unwrap_err().to_string();
    assert!(error.contains("in use") && error.contains("--port"), "{error}");
}

#[test]
fn a_server_that_goes_away_midway() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut connection, _) = listener.accept().unwrap();
            connection.read_exact(&mut [0; 1_000]).unwrap();
        });
        let error = send("127.0.0.1", port, &plan(Work::Bulk(Extent::Bytes(1 << 40))), &mut ()).unwrap_err();
        assert!(error.to_string().contains("before the transfer was complete"), "{error}");
    });
}

#[test]
fn a_client_that_goes_away_or_is_none_does_not_end_the_server() {
    let server = Server::bind(Some(LOOPBACK), 0).unwrap();
    let port = server.address().unwrap().port();
    let served = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(true, None, &|outcome| served.lock().unwrap().push(outcome)).unwrap());
        TcpStream::connect((LOOPBACK, port)).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        drop(TcpStream::connect((LOOPBACK, port)).unwrap());
        // The header of a megabyte, and no more: nine bytes, then the end.
        TcpStream::connect((LOOPBACK, port)).unwrap().write_all(b"ap\x01\x00\x04\x01\xc0\x84\x3d").unwrap();
    });
    let said: Vec<String> =
        served.into_inner().unwrap().into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect();
    assert!(said[0].contains("does not use the protocol of"), "{said:?}");
    assert!(said[1].contains("after 0 bytes"), "{said:?}");
    assert!(said[2].contains("after 9 bytes"), "{said:?}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let long = Datagrams { length_bytes: 65_508, ..datagrams(Extent::Bytes(1), Arrivals::Constant) };
    let bare = Datagrams {
        transport: Transport::UdpLite { coverage_bytes: 7 },
        ..datagrams(Extent::Bytes(1), Arrivals::Constant)
    };
    for (plan, word) in [
        (plan(Work::Bulk(Extent::Bytes(6))), "at least 7"),
        (Plan { parallel: 0, ..plan(Work::Bulk(Extent::Bytes(100))) }, "--parallel"),
        (plan(Work::Requests { request_bytes: 0, response_bytes: 1, count: 1 }), "at least 1"),
        (plan(Work::Datagrams(long)), "65507"),
        (plan(Work::Datagrams(bare)), "--coverage"),
    ] {
        // Port 9 of loopback: refused requests never get there.
        let error = send("127.0.0.1", 9, &plan, &mut ()).unwrap_err();
        assert_eq!(error.fault(), airpath_load::error::Fault::Request, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_congestion_control_that_the_kernel_lacks() {
    for reverse in [false, true] {
        let congestion_control = Some("no-such-cc".to_string());
        let plan = Plan { congestion_control, reverse, ..plan(Work::Bulk(Extent::Bytes(1_000))) };
        let server = Server::bind(Some(LOOPBACK), 0).unwrap();
        let port = server.address().unwrap().port();
        std::thread::scope(|scope| {
            scope.spawn(|| server.serve(true, None, &|_| ()).unwrap());
            let error = send("127.0.0.1", port, &plan, &mut ()).unwrap_err().to_string();
            assert!(error.contains("no congestion control `no-such-cc`"), "{error}");
            if !reverse {
                // The client found out by itself, and the server still waits.
                drop(send("127.0.0.1", port, &Plan { congestion_control: None, ..plan.clone() }, &mut ()).unwrap());
            }
        });
    }
}

#[test]
fn udp_lite_where_the_kernel_has_it() {
    let transport = Transport::UdpLite { coverage_bytes: 24 };
    let stream = Datagrams { transport, ..datagrams(Extent::Bytes(5_000), Arrivals::Constant) };
    match carry_out_where_possible(&plan(Work::Datagrams(stream))) {
        Ok(report) => assert_eq!(report.streams[0].received.unwrap().packets, 10),
        Err(error) => {
            assert!(error.to_string().contains("no UDP-Lite"), "{error}");
            println!("only the refusal was tested: {error}");
        }
    }
}

/// The client may refuse by itself; then the server is let go by a stream of its own.
fn carry_out_where_possible(plan: &Plan) -> Result<Report, LoadError> {
    let server = Server::bind(Some(LOOPBACK), 0).unwrap();
    let port = server.address().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(true, None, &|_| ()).unwrap());
        let outcome = send("127.0.0.1", port, plan, &mut ());
        if outcome.is_err() {
            let plain = Plan { work: Work::Bulk(Extent::Bytes(100)), ..plan.clone() };
            drop(send("127.0.0.1", port, &plain, &mut ()));
        }
        outcome
    })
}

/// Messages of a server while `attack` goes on; it serves clients afterwards as before.
fn attacked(attack: impl FnOnce(u16)) -> Vec<String> {
    let server = Server::bind(Some(LOOPBACK), 0).unwrap();
    let port = server.address().unwrap().port();
    let said = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It ends with the first client that says what it wants.
            let told = |outcome: Result<Report, LoadError>| {
                said.lock().unwrap().push(outcome.map_or_else(|error| error.to_string(), |_| "served".into()));
            };
            server.serve(true, None, &told).unwrap();
        });
        attack(port);
        send("127.0.0.1", port, &plan(Work::Bulk(Extent::Bytes(1000))), &mut ()).unwrap();
    });
    assert_eq!(server.under_way(), 0);
    said.into_inner().unwrap()
}

#[test]
fn requests_that_would_never_end_are_refused() {
    // Two empty sizes, and the largest number of requests: nothing would ever be waited for.
    let endless = [b"ap\x01\x02\x0d\x01\x00\x00".as_slice(), &[0xff; 9], &[1]].concat();
    let said = attacked(|port| {
        let mut connection = TcpStream::connect((LOOPBACK, port)).unwrap();
        connection.write_all(&endless).unwrap();
        assert!(matches!(connection.read(&mut [0; 16]), Ok(0) | Err(_)));
    });
    assert!(said[0].contains("does not use the protocol of"), "{said:?}");
    assert_eq!(said.last().unwrap(), "served");
}

#[test]
fn a_sender_of_datagrams_ends_with_its_receiver() {
    // Reverse datagrams for a day, one in some days: the sender has nothing to send when its receiver goes.
    let socket = std::net::UdpSocket::bind((LOOPBACK, 0)).unwrap();
    let mut numbers = vec![1u8];
    let put = |numbers: &mut Vec<u8>, mut number: u64| {
        while number >= 0x80 {
            numbers.push(number as u8 | 0x80);
            number >>= 7;
        }
        numbers.push(number as u8);
    };
    for number in [86_400_000_000_000, 1, 65_000, u64::from(socket.local_addr().unwrap().port())] {
        put(&mut numbers, number);
    }
    let header = [b"ap\x01\x14", [numbers.len() as u8].as_slice(), &numbers].concat();
    let server = Server::bind(Some(LOOPBACK), 0).unwrap();
    let port = server.address().unwrap().port();
    let said = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.serve(true, None, &|outcome| said.lock().unwrap().push(outcome.map(drop))).unwrap();
        });
        let mut connection = TcpStream::connect((LOOPBACK, port)).unwrap();
        connection.write_all(&header).unwrap();
        let mut accepted = [0; 2];
        connection.read_exact(&mut accepted).unwrap();
        assert_eq!(accepted[0], b'A');
    });
    let said = said.into_inner().unwrap();
    assert!(said[0].as_ref().unwrap_err().to_string().contains("connection"), "{said:?}");
}
