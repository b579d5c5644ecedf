// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Network input of the ends of `airpath send` and `recv`, and of `timing sync`.

use std::time::Duration;

use airpath_clocks::message::Message;
use airpath_load::protocol::{Header, Record};
use airpath_load::{Arrivals, Datagrams, Extent, Sent, Transport, Work};

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
}
