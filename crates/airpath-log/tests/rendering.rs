// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Output of `airpath log`.

mod common;

use std::io::{self, Write};
use std::path::Path;

use airpath_core::{Direction, EventKind};
use airpath_log::files::capture_name;
use airpath_log::render::{Filter, RenderError, Rendered, events_json, events_table, headers, tcpdump};
use airpath_log::{Level, Places, Snaplen};

type Render = fn(&Path, &Filter, &mut dyn Write) -> Result<Rendered, RenderError>;

fn text(render: Render, folder: &Path, filter: &Filter) -> String {
    let mut out = Vec::new();
    render(folder, filter, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn events_as_a_table_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 40);
    let drops = Filter { kind: Some(EventKind::Dropped), to_ns: Some(10_000_000), ..Filter::default() };
    let table = text(events_table, folder.path(), &drops);
    let expected = "         time/s  hop    direction  stage    kind                cause                  pdu      bits       queue/B  state
    0.008000000  radio  uplink     channel  dropped             channel_error            3      2368                initial
    0.007000000  radio  uplink     queue    dropped             queue_packets            7      2368                initial
";
    assert_eq!(table, expected);
    let json = text(events_json, folder.path(), &drops);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        serde_json::json!({"time_ns": 8_000_000, "hop": "radio", "direction": "uplink", "stage": "channel",
            "kind": "dropped", "cause": "channel_error", "pdu": 3, "flow": 7, "bits": 2_368, "queue_packets": 0,
            "queue_bytes": 0, "state": "initial", "emitted_ns": null, "origin": "user"})
    );
    let one = |filter: Filter| text(events_json, folder.path(), &filter).lines().count();
    assert_eq!(one(Filter { pdu: Some(5), ..Filter::default() }), 3);
    assert_eq!(one(Filter { hop: Some("radio".into()), ..Filter::default() }), 12);
    assert_eq!(one(Filter { direction: Some(Direction::Downlink), ..Filter::default() }), 40);
    assert_eq!(one(Filter { from_ns: Some(40_000_000), ..Filter::default() }), 7);
}

#[test]
fn packets_with_their_fates() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 8);
    let shown = text(tcpdump, folder.path(), &Filter::default());
    let expected = "\
0.001000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1001:1257, ack 1, win 65535, length 256 [delivered after 5.00 ms]
0.002000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], ack 4294966296, win 65535, length 0 [delivered after 5.00 ms]
0.003000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 2:258, ack 1, win 65535, length 256 [dropped: channel_error at radio after 5.00 ms]
0.004000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], ack 4294966296, win 65535, length 0 [delivered after 5.00 ms]
0.005000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 4:260, ack 1, win 65535, length 256 [3 bits flipped, delivered after 5.00 ms]
0.006000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], ack 4294966296, win 65535, length 0 [delivered after 5.00 ms]
0.007000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 6:262, ack 1, win 65535, length 256 [dropped: queue_packets at radio]
0.008000000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], ack 4294966296, win 65535, length 0 [delivered after 5.00 ms]
";
    assert_eq!(shown, expected);
    let lines = |filter: Filter| text(tcpdump, folder.path(), &filter).lines().count();
    assert_eq!(lines(Filter { kind: Some(EventKind::Dropped), ..Filter::default() }), 2);
    assert_eq!(lines(Filter { direction: Some(Direction::Uplink), ..Filter::default() }), 4);
    assert_eq!(lines(Filter { pdu: Some(3), ..Filter::default() }), 1);
}

#[test]
fn a_packet_with_its_headers_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Packets, Snaplen::default(), 4);
    let mut out = Vec::new();
    let places = Places::of_path(Vec::new(), Vec::new());
    let rendered = headers(folder.path(), &places, 1, true, &mut out).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rendered.lines, lines.len() as u64);
    let ways: Vec<&str> = lines.iter().filter_map(|seen| seen["way"].as_str()).collect();
    assert_eq!(ways, ["in", "out"]);
    for seen in &lines {
        let names: Vec<&str> =
            seen["layers"].as_array().unwrap().iter().filter_map(|one| one["layer"].as_str()).collect();
        assert_eq!(names[..2], ["IPv4", "TCP"], "{seen}");
    }
    let mut shown = Vec::new();
    headers(folder.path(), &places, 1, false, &mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.starts_with("packet 1 as it entered the link at the "), "{shown}");
    assert!(shown.contains("     22  destination port"), "{shown}");
    assert_eq!(headers(folder.path(), &places, 99, true, &mut Vec::new()).unwrap(), Rendered::default());
}

/// Makes the first packet of a capture longer than its block.
fn damage_first_packet(capture: &Path) {
    let mut bytes = std::fs::read(capture).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut at = 0;
    while word(&bytes, at) != 6 {
        at += word(&bytes, at + 4) as usize;
    }
    bytes[at + 20..at + 24].fill(0xff);
    std::fs::write(capture, bytes).unwrap();
}

#[test]
fn headers_at_one_end_are_written_before_the_error_of_the_other_ends_capture() {
    let places = Places::of_path(Vec::new(), Vec::new());
    for (damaged, sound) in [("client", "server"), ("server", "client")] {
        for whole in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            common::run(folder.path(), Level::Packets, Snaplen::default(), 4);
            let capture = folder.path().join(capture_name(damaged));
            match whole {
                true => std::fs::write(&capture, b"no capture").unwrap(),
                false => damage_first_packet(&capture),
            }
            let mut out = Vec::new();
            let error = headers(folder.path(), &places, 1, true, &mut out).unwrap_err();
            assert!(error.to_string().contains(&capture_name(damaged)), "{error}");
            let seen: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(seen["end"], sound);
        }
    }
}

#[test]
fn packets_are_chosen_by_their_headers_and_events_by_their_packets() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 8);
    let filter = |expression: &str| Filter { packets: Some(expression.parse().unwrap()), ..Filter::default() };
    let lines = |render, expression: &str| text(render, folder.path(), &filter(expression)).lines().count();
    assert_eq!(lines(tcpdump, "tcp dst port 80"), 4);
    assert_eq!(lines(tcpdump, "udp or host 10.0.0.3"), 0);
    assert_eq!(lines(events_json, "udp"), 0);
    let all = text(events_json, folder.path(), &Filter::default()).lines().count();
    let [there, back] = ["tcp dst port 80", "src port 80"].map(|expression| lines(events_json, expression));
    assert!(there > 0 && back > 0 && there + back == all, "{there} and {back} of {all}");
}

#[test]
fn a_hop_that_is_not_there_is_told_with_those_that_are() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 4);
    let filter = |hop: &str| Filter { hop: Some(hop.into()), ..Filter::default() };
    for render in [events_table as Render, events_json, tcpdump] {
        let error = render(folder.path(), &filter("radoi"), &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "there is no hop `radoi`, did you mean `radio`?; there are path, radio");
        // The path as a whole counts as a hop.
        render(folder.path(), &filter("path"), &mut Vec::new()).unwrap();
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 5_000);
    for render in [events_table as Render, events_json, tcpdump] {
        assert_eq!(render(folder.path(), &Filter::default(), &mut Closed).unwrap(), Rendered::default());
    }
}

#[test]
fn a_folder_without_a_log_is_told_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let error = events_table(folder.path(), &Filter::default(), &mut out).unwrap_err().to_string();
    assert!(error.contains("events.arrow"), "{error}");
    airpath_log::Manifest::new(Level::Counters, Snaplen::default()).write(folder.path()).unwrap();
    let error = events_table(folder.path(), &Filter::default(), &mut out).unwrap_err().to_string();
    assert!(error.contains("--log events"), "{error}");
}
