// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Network input of the ends of `airpath send`, `record` and `recv`, and of `timing sync`.

use std::time::Duration;

use airpath_clocks::message::Message;
use airpath_load::protocol::{Header, Opening, Record};
use airpath_load::{Arrivals, Datagrams, Extent, Sent, Transport, Work};
use airpath_record::phase::backlog::{Backlog, Step};
use airpath_record::plan::Phase;
use airpath_record::wire::datagram::{Addressed, Datagram, Feedback};
use airpath_record::wire::message::{Arrival, Ending, Message as RecordMessage};

pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let datagrams = Datagrams {
        transport: Transport::UdpLite { coverage_bytes: 28 },
        extent: Extent::Time(Duration::from_millis(1_500)),
        rate_bits_per_second: 9_600,
        length_bytes: 1_000,
        arrivals: Arrivals::Poisson { seed: 7 },
    };
    let works = [
        Work::Bulk(Extent::Bytes(100_000)),
        Work::Requests { request_bytes: 1, response_bytes: 128, count: 16_384 },
        Work::Datagrams(datagrams),
    ];
    let header = |work| Header {
        work,
        reverse: true,
        no_delay: true,
        parallel: 3,
        index: 1,
        client_port: 5_201,
        congestion_control: Some("cubic".into()),
    };
    let records = [
        Record::Accepted(5_201),
        Record::Refused("no such congestion control".into()),
        Record::Sent(Sent { bytes: 1, retransmits: 300, congestion_control: "reno".into(), ..Sent::default() }),
    ];
    let mut seeds: Vec<_> = works.map(|work| ("header".to_string(), header(work).encode())).into();
    seeds.extend(records.map(|record| ("record".to_string(), record.encode())));
    seeds.push(("message".into(), Message::request(1, 2, 3, 4).encode().to_vec()));
    seeds.push(("opening".into(), Opening::recording(1)));
    let arrival = |number, arrived_ns| Arrival { number, arrived_ns };
    let messages = [
        RecordMessage::Ready { datagram_port: 40_000, clock_port: 40_001, token: 7 },
        RecordMessage::Begin(Phase::hello()),
        RecordMessage::Sent(vec![1_700_000_000_000_000_000, 1_700_000_000_000_012_000]),
        RecordMessage::Arrived(vec![arrival(1, 1_700_000_000_000_000_000), arrival(0, 1_699_999_999_999_999_000)]),
        RecordMessage::Done(Ending { overflowed: 3, clock_set: false }),
    ];
    seeds.extend(messages.map(|message| ("recording".to_string(), message.encode())));
    let datagrams = [
        Datagram::Hello,
        Datagram::Probe { number: 7, sent_ns: 1_700_000_000_000_000_000 },
        Datagram::Feedback(Feedback { highest: 7, arrived: 6, last_sent_ns: 1, last_arrived_ns: 2, held_ns: 3 }),
    ];
    let addressed = |datagram| Addressed { token: 7, phase: 1, datagram }.encode();
    seeds.extend(datagrams.map(|datagram| ("datagram".to_string(), addressed(datagram))));
    seeds
}

pub fn run(input: &[u8]) {
    if let Ok((header, taken)) = Header::read(&mut &*input) {
        assert!(taken <= input.len());
        let encoded = header.encode();
        let (again, _) = Header::read(&mut &*encoded).expect("a header as this end writes it");
        // Numbers may be written longer than they need be, and names are cut.
        assert_eq!((again.work, again.reverse, again.parallel), (header.work, header.reverse, header.parallel));
    }
    if let Ok((record, taken)) = Record::read(&mut &*input) {
        assert!(taken <= input.len());
        if !matches!(record, Record::Refused(_)) {
            Record::read(&mut record.encode().as_slice()).expect("a record as this end writes it");
        }
    }
    if let Ok(message) = Message::decode(input) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    if let Ok(Opening::Recording(version)) = Opening::read(&mut &*input) {
        assert_eq!(Opening::read(&mut Opening::recording(version).as_slice()).ok(), Some(Opening::Recording(version)));
    }
    if let Ok(message) = RecordMessage::read(&mut &*input) {
        if let RecordMessage::Begin(phase) = &message {
            phase.problem();
            phase.most_packets();
        }
        if !matches!(message, RecordMessage::Refused(_)) {
            let again = RecordMessage::read(&mut message.encode().as_slice()).expect("a message as this end writes it");
            assert_eq!(again, message);
        }
    }
    if let Some(addressed) = Addressed::decode(input) {
        assert_eq!(Addressed::decode(&addressed.encode()), Some(addressed));
        hear(addressed.datagram);
    }
}

/// A saturating sender that hears whatever a receiver says must go on, and keep within its rate.
fn hear(datagram: Datagram) {
    let Datagram::Feedback(feedback) = datagram else { return };
    let mut backlog = Backlog::new(12_000, 1_000_000_000, 0);
    for (now_ns, feedback) in [(0, Feedback::default()), (1_000_000, feedback), (u64::MAX / 2, feedback)] {
        backlog.hear(now_ns, feedback);
        if let Step::Send(gap_ns) = backlog.step(now_ns) {
            assert!(gap_ns >= 12_000, "a packet of 12,000 bit at 1 Gbit/s takes 12 µs");
        }
    }
}
