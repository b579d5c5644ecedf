// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Real programs through the pass-through example.

mod support;

use support::{Bench, assert_status, variants};

const EXCHANGE: &str = include_str!("support/exchange.py");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn tcp_udp_and_icmp_pass_by_both_families() {
    let bench = Bench::new("traffic");
    let script = bench.file("exchange.py", EXCHANGE);
    let script = script.to_str().unwrap();
    let server = format!("exec python3 {script} serve");
    for (user, port) in variants() {
        for super_packets in [&["--super-packets"][..], &[]] {
            let talk = ["--", "python3", script, "talk", "server"];
            let arguments = [&[port, "--server", &server], super_packets, &talk].concat();
            let output = bench.run(user, &arguments);
            assert_status(&output, 0);
            let said = text(&output.stdout);
            assert!(said.contains("IPv4 to 10.77.0.1"), "{said}");
            assert!(said.contains("IPv6 to fd61:6972:7000::1"), "{said}");
        }
    }
}

#[test]
fn a_small_mtu_leaves_ipv4() {
    let bench = Bench::new("small-mtu");
    let script = bench.file("exchange.py", EXCHANGE);
    let script = script.to_str().unwrap();
    let server = format!("exec python3 {script} serve");
    for (user, port) in variants() {
        let arguments =
            [port, "--mtu", "296", "--report", "--server", &server, "--", "python3", script, "talk", "server", "4"];
        let output = bench.run(user, &arguments);
        assert_status(&output, 0);
        assert!(text(&output.stderr).contains("IPv4 only"));
    }
}

#[test]
fn links_nest_and_the_outermost_server_is_reached_through_both() {
    let bench = Bench::new("nesting");
    let script = bench.file("exchange.py", EXCHANGE);
    let script = script.to_str().unwrap();
    let server = format!("exec python3 {script} serve");
    let program = bench.program();
    let program = program.to_str().unwrap();
    for (user, port) in variants() {
        let inner = [program, port, "--enclosing", "--", program, port, "--enclosing", "--", "python3", script, "talk"];
        let outer = [&[port, "--server", &server, "--"], &inner[..], &["server0"]].concat();
        let output = bench.run(user, &outer);
        assert_status(&output, 0);
        let said = text(&output.stdout);
        assert!(said.contains("IPv4 to 10.77.0.1"), "{said}");
        assert!(said.contains("IPv6 to fd61:6972:7000::1"), "{said}");
    }
}

#[test]
fn two_runs_side_by_side_in_one_enclosing_namespace_do_not_clash() {
    let bench = Bench::new("siblings");
    let program = bench.program();
    let program = program.to_str().unwrap();
    for (user, port) in variants() {
        let shared = bench.shared_directory();
        let flag = shared.join(format!("{user:?}{port}"));
        let flag = flag.to_str().unwrap();
        // The first link lives until the second has shown its own.
        let line = format!(
            "{program} {port} --enclosing -- sh -c \
               'touch {flag}; while [ -e {flag} ]; do sleep 0.05; done' & \
             while [ ! -e {flag} ]; do sleep 0.05; done; \
             {program} {port} --enclosing -- sh -c 'ls /sys/class/net; cat /etc/hosts'; \
             ls /sys/class/net; rm {flag}; wait"
        );
        let output = bench.run(user, &[port, "--", "sh", "-c", &line]);
        assert_status(&output, 0);
        let said = text(&output.stdout);
        assert!(said.contains("airpath1x1"), "{said}");
        assert!(said.contains("10.77.8.2\tclient"), "{said}");
    }
}

#[test]
fn the_congestion_control_is_the_one_asked_for() {
    let bench = Bench::new("congestion");
    let script = bench.file(
        "congestion.py",
        "import socket\n\
         listener = socket.create_server(('server', 5001))\n\
         print('ready', flush=True)\n\
         far, _ = listener.accept()\n\
         print(far.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16), flush=True)\n\
         far.close()\n",
    );
    let client = bench.file(
        "client.py",
        "import socket\n\
         near = socket.create_connection(('server', 5001))\n\
         print(near.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16))\n\
         near.recv(1)\n",
    );
    let server = format!("exec python3 {}", script.display());
    for (user, port) in variants() {
        let output =
            bench.run(user, &[port, "--cc", "reno", "--server", &server, "--", "python3", client.to_str().unwrap()]);
        assert_status(&output, 0);
        let said = text(&output.stdout);
        assert_eq!(said.matches("b'reno").count(), 2, "{said}");
        let output = bench.run(user, &[port, "--cc", "nonesuch", "--", "true"]);
        assert_status(&output, 125);
        let said = text(&output.stderr);
        assert!(said.contains("`nonesuch`") && said.contains("available:"), "{said}");
    }
}

#[test]
fn a_port_of_the_hosts_loopback_is_reached_through_the_link() {
    let bench = Bench::new("host-port");
    let script = bench.file(
        "client.py",
        "import socket, sys\n\
         port = int(sys.argv[1])\n\
         for family in (socket.AF_INET, socket.AF_INET6):\n    \
             address = socket.getaddrinfo('server', port, family)[0][4]\n    \
             with socket.socket(family, socket.SOCK_STREAM) as stream:\n        \
                 stream.connect(address)\n        \
                 stream.sendall(b'x' * 300000)\n        \
                 stream.shutdown(1)\n        \
                 received = b''\n        \
                 while data := stream.recv(65536):\n            \
                     received += data\n        \
                 print(len(received))\n    \
             with socket.socket(family, socket.SOCK_DGRAM) as datagrams:\n        \
                 datagrams.settimeout(20)\n        \
                 datagrams.sendto(b'question', address)\n        \
                 print(datagrams.recv(100))\n",
    );
    let (stream_port, _server) = host_server();
    let port_text = stream_port.to_string();
    for (user, port) in variants() {
        let arguments = [port, "--host-port", &port_text, "--", "python3", script.to_str().unwrap(), &port_text];
        let output = bench.run(user, &arguments);
        assert_status(&output, 0);
        let said = text(&output.stdout);
        assert_eq!(said.matches("300000").count(), 2, "{said}");
        assert_eq!(said.matches("answer to question").count(), 2, "{said}");
    }
}

/// A server on the host's loopback, by TCP and UDP on one port.
fn host_server() -> (u16, std::net::UdpSocket) {
    use std::io::{Read, Write};
    let (listener, datagrams) = loop {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        if let Ok(datagrams) = std::net::UdpSocket::bind(address) {
            break (listener, datagrams);
        }
    };
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            stream.write_all(&received).unwrap();
        }
    });
    let answering = datagrams.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 100];
        while let Ok((length, sender)) = answering.recv_from(&mut question) {
            let answer = [b"answer to ", &question[..length]].concat();
            answering.send_to(&answer, sender).unwrap();
        }
    });
    (port, datagrams)
}

#[test]
fn the_hosts_network_is_reached_in_user_space() {
    let bench = Bench::new("internet");
    // An address of this host that is not the loopback's; nothing is sent.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    if let Err(error) = probe.connect("192.0.2.1:9") {
        eprintln!("skipped: this host has no network ({error})");
        return;
    }
    let address = probe.local_addr().unwrap().ip();
    let listener = std::net::TcpListener::bind((address, 0)).unwrap();
    let port_text = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        use std::io::Write;
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"from the host");
        }
    });
    let line = "import socket, sys\n\
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as stream:\n    \
            print(stream.recv(100))\n";
    for (user, port) in variants() {
        let arguments = [port, "--internet", "--", "python3", "-c", line, &address.to_string(), &port_text];
        let output = bench.run(user, &arguments);
        let complaint = text(&output.stderr);
        if ["not installed", "/dev/net/tun"].iter().any(|why| complaint.contains(why)) {
            assert_status(&output, 125);
            eprintln!("skipped: {user:?} with {port}: {complaint}");
            continue;
        }
        assert_status(&output, 0);
        assert_eq!(text(&output.stdout), "b'from the host'\n");
    }
}
