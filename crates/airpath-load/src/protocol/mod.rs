// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocol between the two ends: a header at the head of the connection, and records of a few bytes. Numbers
//! are LEB128, so that a plain transfer's header is nine bytes or so.
//!
//! ```text
//! header: 'a' 'p' VERSION KIND LENGTH numbers… [name of the congestion control]
//! record: KIND LENGTH payload
//! ```
//!
//! A recording of the path (`airpath record`) opens with a header too, whose number is the version of its own
//! protocol.

mod header;
pub mod numbers;
mod record;

pub use header::{Header, Opening};
pub use record::{Record, unexpected};

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;
    use crate::plan::{Arrivals, Datagrams, Extent, Transport, Work};
    use crate::report::{Received, Sent};

    fn plain(work: Work) -> Header {
        let (parallel, index, client_port) = (1, 0, 0);
        Header { work, reverse: false, no_delay: false, parallel, index, client_port, congestion_control: None }
    }

    #[test]
    fn a_plain_transfer_has_a_header_of_nine_bytes() {
        let header = plain(Work::Bulk(Extent::Bytes(100_000)));
        // 100000 = 0b110_0001101_0100000: three groups of seven bits, the lowest first.
        assert_eq!(header.encode(), [b'a', b'p', 1, 0, 4, 1, 0xa0, 0x8d, 0x06]);
    }

    #[test]
    fn headers_survive_the_wire() {
        let stream = Datagrams {
            transport: Transport::UdpLite { coverage_bytes: 28 },
            extent: Extent::Time(Duration::from_millis(1_500)),
            rate_bits_per_second: 9_600,
            length_bytes: 65_507,
            arrivals: Arrivals::Poisson { seed: u64::MAX },
        };
        let headers = [
            plain(Work::Bulk(Extent::Bytes(u64::MAX))),
            plain(Work::Bulk(Extent::Time(Duration::from_secs(10)))),
            Header { reverse: true, congestion_control: Some("cubic".into()), ..plain(Work::Bulk(Extent::Bytes(7))) },
            Header {
                no_delay: true,
                parallel: 300,
                index: 299,
                ..plain(Work::Requests { request_bytes: 1, response_bytes: 128, count: 16_384 })
            },
            Header { client_port: 65_535, ..plain(Work::Datagrams(stream)) },
        ];
        for header in headers {
            let bytes = header.encode();
            let mut with_data = bytes.clone();
            with_data.extend(b"load");
            assert_eq!(Header::read(&mut with_data.as_slice()).unwrap(), (header, bytes.len()));
        }
    }

    #[test]
    fn records_survive_the_wire() {
        let sent = Sent { bytes: 1, retransmits: 300, congestion_control: "reno".into(), ..Sent::default() };
        let received = Received { bytes: 5, elapsed_ns: u64::MAX, lost: 2, jitter_ns: 77, ..Received::default() };
        for record in [
            Record::Accepted(0),
            Record::Accepted(5201),
            Record::Refused("no such congestion control".into()),
            Record::Sent(sent),
            Record::Received(received),
            Record::Received(Received { bytes: 5, elapsed_ns: 6, ..Received::default() }),
        ] {
            let bytes = record.encode();
            assert_eq!(Record::read(&mut bytes.as_slice()).unwrap(), (record, bytes.len()));
        }
    }

    #[test]
    fn a_connection_opens_with_a_load_or_a_recording() {
        let bytes = Opening::recording(300);
        assert_eq!(bytes, [b'a', b'p', 1, 5, 2, 0xac, 0x02]);
        assert_eq!(Opening::read(&mut bytes.as_slice()).unwrap(), Opening::Recording(300));
        // What a server without recordings says.
        assert_eq!(Header::read(&mut bytes.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let load = plain(Work::Bulk(Extent::Bytes(7)));
        let bytes = load.encode();
        assert_eq!(Opening::read(&mut bytes.as_slice()).unwrap(), Opening::Load(load, bytes.len()));
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"ap\x02\x00\x00", b"ap\x01\x0f\x01\x01", b"ap\x01\x00\x01\x80"] {
            let error = Header::read(&mut &*bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        assert_eq!(Header::read(&mut &b"ap"[..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(Record::read(&mut &b"Z\x00"[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
