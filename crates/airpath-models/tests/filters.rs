// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Filters of packets in classifiers and error models: whom they choose, what is counted, and how they change.

use std::sync::Arc;

use airpath_core::{Cause, Command, Cx, EventKind, Item, LogLevel, Machine, Outputs, Pdu, PortId, Seed, Time};
use airpath_models::channel::{ErrorsConfig, OnlyConfig};
use airpath_models::config::PathConfig;
use airpath_models::filter::Filter;
use airpath_models::filter_list::FilterList;
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::classes::{ClassConfig, ClassesConfig, MatchConfig, Order};
use airpath_models::{HopConfig, LinkConfig, Path, StateConfig};

use crate::common::{ms, read};

/// A UDP datagram to `port`, with `payload` bytes.
fn datagram(port: u16, payload: usize) -> Vec<u8> {
    let length = (28 + payload) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    packet.extend(4_000u16.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend((length - 20).to_be_bytes());
    packet.extend(vec![0; 2 + payload]);
    packet
}

struct Bench {
    path: Path,
    outputs: Outputs,
    next_id: u64,
}

impl Bench {
    fn new(config: &PathConfig) -> Bench {
        let outputs = Outputs { level: LogLevel::Events, ..Outputs::default() };
        Bench { path: Path::new(config, Seed(1)), outputs, next_id: 1 }
    }

    /// Offers the packet at the client's port as a driver does; returns its number.
    fn offer(&mut self, at: Time, bytes: &[u8]) -> u64 {
        let mut pdu = Pdu { id: self.next_id, len: bytes.len() as u32, ..Pdu::default() };
        if let Some(filters) = self.path.wants_filters(PortId::CLIENT) {
            pdu.matches = filters.matches(bytes, pdu.len);
        }
        self.next_id += 1;
        self.path.offer(at, PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut self.outputs));
        self.next_id - 1
    }

    fn configure(&mut self, at: Time, hops: Vec<HopConfig>) -> Result<(), airpath_core::CommandError> {
        self.path.control(at, &Command::Configure(Arc::new(hops)), &mut Cx::new(&mut self.outputs))
    }

    fn finish(&mut self) {
        self.path.advance(ms(100_000), &mut Cx::new(&mut self.outputs));
    }

    fn delivered(&mut self) -> Vec<u64> {
        self.finish();
        self.outputs.events.iter().filter(|event| event.kind == EventKind::Delivered).map(|event| event.pdu).collect()
    }

    fn lost(&mut self) -> Vec<u64> {
        self.finish();
        let lost = self.outputs.events.iter().filter(|event| event.cause == Cause::ChannelError);
        lost.map(|event| event.pdu).collect()
    }
}

fn filter(text: &str) -> Filter {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn hop(link: LinkConfig) -> HopConfig {
    HopConfig::new("radio", link.clone(), link)
}

fn path(link: LinkConfig) -> PathConfig {
    PathConfig { hops: vec![hop(link)], ..PathConfig::default() }
}

/// Every `every`th unit is hit, from the first on, of the packets that `only` takes.
fn pattern(every: u64, per: &str, only: &str) -> LinkConfig {
    let text = format!("type = \"pattern\"\nburst = 1\nevery = {every}\nper = \"{per}\"");
    let errors: ErrorsConfig = toml::from_str(&text).unwrap();
    LinkConfig {
        errors: ErrorsConfig { only: Some(OnlyConfig { filter: filter(only) }), ..errors },
        ..LinkConfig::default()
    }
}

#[test]
fn errors_hit_and_count_only_packets_of_the_filter() {
    for per in ["packet", "frame"] {
        let mut bench = Bench::new(&path(pattern(2, per, "udp dst port 5004")));
        for step in 0..6 {
            bench.offer(ms(step * 10), &datagram(80, 100));
            bench.offer(ms(step * 10), &datagram(5_004, 100));
        }
        // The 1st, 3rd and 5th of port 5004, whatever comes between.
        assert_eq!(bench.lost(), [2, 6, 10], "{per}");
    }
}

#[test]
fn time_passes_for_all_packets_and_hits_those_of_the_filter() {
    // Intervals 0, 20 and 40 of 1 ms are hit.
    let mut bench = Bench::new(&path(pattern(20, "millisecond", "port 5004")));
    for step in 0..6 {
        let at = ms(step * 10) + airpath_core::Span::from_micros(300);
        bench.offer(at, &datagram(80, 100));
        bench.offer(at, &datagram(5_004, 100));
    }
    assert_eq!(bench.lost(), [2, 6, 10]);
}

#[test]
fn a_packet_whose_bytes_nobody_knows_matches_no_filter() {
    let mut bench = Bench::new(&path(pattern(1, "packet", "udp or not udp")));
    let pdu = Pdu { id: 9, len: 100, ..Pdu::default() };
    bench.path.offer(ms(1), PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut bench.outputs));
    assert_eq!(bench.delivered(), [9]);
}

#[test]
fn a_class_takes_the_packets_of_its_filter() {
    let class = |name: &str, matching| ClassConfig::new(name, matching, QueueConfig::default());
    let matching = MatchConfig { filter: Some(filter("udp[10] = 7 and len > 50")), ..MatchConfig::default() };
    let classes = ClassesConfig {
        order: Order::Strict,
        limit: read("unlimited"),
        classes: vec![class("marked", matching), class("rest", MatchConfig::default())],
    };
    let link = LinkConfig { rate: read("80 kbit/s"), queue: QueueConfig::Classes(classes), ..LinkConfig::default() };
    let mut bench = Bench::new(&path(link));
    let mut marked = datagram(80, 72);
    marked[30] = 7;
    let mut short = datagram(80, 10);
    short[30] = 7;
    for packet in [&datagram(80, 72), &datagram(80, 72), &short, &marked] {
        bench.offer(ms(0), packet);
    }
    // The first is under transmission when the fourth comes; the third is too short.
    assert_eq!(bench.delivered(), [1, 4, 2, 3]);
}

#[test]
fn filters_of_states_are_asked_from_the_beginning() {
    let beginning = path(pattern(1, "packet", "port 80"));
    let state = StateConfig {
        name: "other".into(),
        at: Some(ms(50)),
        hops: vec![hop(pattern(1, "packet", "port 443"))],
        stay: airpath_models::states::Stay::default(),
    };
    let mut bench = Bench::new(&PathConfig { states: vec![state], ..beginning });
    let numbered =
        |bench: &Bench, port| bench.path.wants_filters(PortId::SERVER).unwrap().matches(&datagram(port, 0), 28).bits();
    assert_eq!((numbered(&bench, 80), numbered(&bench, 443), numbered(&bench, 53)), (1, 2, 0));
    for at in [10, 60] {
        bench.offer(ms(at), &datagram(80, 0));
        bench.offer(ms(at), &datagram(443, 0));
    }
    assert_eq!(bench.lost(), [1, 4]);
}

#[test]
fn a_command_brings_a_new_filter_and_keeps_the_numbers_of_the_others() {
    let mut bench = Bench::new(&path(pattern(1, "packet", "port 80")));
    bench.configure(ms(5), vec![hop(pattern(1, "packet", "port 443"))]).unwrap();
    bench.offer(ms(10), &datagram(80, 0));
    bench.offer(ms(10), &datagram(443, 0));
    let filters = bench.path.wants_filters(PortId::CLIENT).unwrap();
    assert_eq!([80, 443].map(|port| filters.matches(&datagram(port, 0), 28).bits()), [1, 2]);
    assert_eq!(bench.lost(), [2]);
}

#[test]
fn a_path_without_filters_asks_for_nothing_and_one_has_64_at_most() {
    let mut bench = Bench::new(&path(LinkConfig::default()));
    assert!(bench.path.wants_filters(PortId::CLIENT).is_none());
    let with = |count: u16| {
        let class = |port: u16| {
            let matching =
                MatchConfig { filter: Some(filter(&format!("port {}", port + 1))), ..MatchConfig::default() };
            ClassConfig::new(format!("c{port}"), matching, QueueConfig::default())
        };
        let classes = (0..count).map(class).collect();
        let queue = QueueConfig::Classes(ClassesConfig { order: Order::Strict, limit: read("unlimited"), classes });
        hop(LinkConfig { queue, ..LinkConfig::default() })
    };
    assert_eq!(FilterList::default().add(&[with(64)]), Ok(()));
    assert!(FilterList::default().add(&[with(65)]).unwrap_err().contains("64"));
    assert!(bench.configure(ms(1), vec![with(65)]).unwrap_err().to_string().contains("64 different filters"));
    assert!(bench.path.wants_filters(PortId::CLIENT).is_none());
    bench.configure(ms(2), vec![with(64)]).unwrap();
    let filters = bench.path.wants_filters(PortId::CLIENT).unwrap();
    assert_eq!(filters.matches(&datagram(64, 0), 28).bits(), 1 << 63);
}

#[test]
fn entities_whose_frames_carry_several_packets_refuse_a_choice_of_packets() {
    for link in LinkConfig::own_frames_examples().into_iter().step_by(17) {
        let errors = ErrorsConfig { per: airpath_models::channel::Per::Frame, ..pattern(2, "frame", "udp").errors };
        let problems = LinkConfig { errors, ..link }.problems();
        assert!(problems.iter().any(|problem| problem.key == "errors.only"), "{problems:?}");
    }
}
