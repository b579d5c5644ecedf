// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Plan of a transfer: the client's request.

use std::time::Duration;

/// Extent of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Until so many bytes have been handed over by the application.
    Bytes(u64),
    /// For so long; what has been written by then is still delivered.
    Time(Duration),
}

/// The protocol of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP (RFC 768).
    Udp,
    /// UDP-Lite (RFC 3828), whose checksum covers the first `coverage_bytes`, header included; 0
    /// means the whole datagram.
    UdpLite {
        /// Covered bytes, those of the header of 8 included.
        coverage_bytes: u16,
    },
}

/// Send times of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// As a Poisson process whose gaps are drawn under this seed.
    Poisson {
        /// Seed of the draws.
        seed: u64,
    },
}

/// A stream of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Its protocol.
    pub transport: Transport,
    /// Extent of the stream.
    pub extent: Extent,
    /// Mean rate of the payload in bit/s; not zero.
    pub rate_bits_per_second: u64,
    /// Payload of each datagram in bytes, from [`Datagrams::LEAST_LENGTH_BYTES`] to 65,507.
    pub length_bytes: u32,
    /// Send times.
    pub arrivals: Arrivals,
}

impl Datagrams {
    /// A datagram carries at least its number and the time of sending.
    pub const LEAST_LENGTH_BYTES: u32 = 16;

    /// More datagrams than this stream can have: what carries a higher number is none of it.
    pub fn most(&self) -> u64 {
        let most = match self.extent {
            Extent::Bytes(bytes) => u128::from(bytes.div_ceil(u64::from(self.length_bytes))),
            Extent::Time(time) => {
                let bit_ns = u128::from(self.rate_bits_per_second).saturating_mul(time.as_nanos());
                let mean = bit_ns / (u128::from(self.length_bytes) * 8 * 1_000_000_000);
                match self.arrivals {
                    Arrivals::Constant => mean + 1,
                    // Far beyond what chance adds to few, and to many.
                    Arrivals::Poisson { .. } => 2 * mean + 1000,
                }
            }
        };
        u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1)
    }
}

/// The most requests that go over one connection.
pub const MOST_REQUESTS: u64 = 10_000_000;

/// Work of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Bytes over TCP, in one direction.
    Bulk(Extent),
    /// Requests and responses over one TCP connection, one after the other.
    Requests {
        /// Bytes of a request; not zero.
        request_bytes: u64,
        /// Bytes of a response; not zero.
        response_bytes: u64,
        /// Number of requests; not zero.
        count: u64,
    },
    /// Datagrams, in one direction.
    Datagrams(Datagrams),
}

/// Everything that a client asks for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Work of each connection.
    pub work: Work,
    /// True if the server sends.
    pub reverse: bool,
    /// TCP congestion control of the sending end.
    pub congestion_control: Option<String>,
    /// Largest TCP segment in bytes.
    pub mss_bytes: Option<u32>,
    /// True if TCP sends small segments at once (TCP_NODELAY), at both ends.
    pub no_delay: bool,
    /// Number of parallel connections; not zero.
    pub parallel: u32,
    /// Distance of interval reports; none without.
    pub interval: Option<Duration>,
}
