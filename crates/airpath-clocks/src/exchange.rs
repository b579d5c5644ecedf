// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One exchange of four stamps, and what it says by itself.

/// A request and its answer, stamped at both hosts: the four stamps of NTP's protocol (Mills 1991;
/// RFC 5905, section 8), in nanoseconds since 1970 by the clock of the host at which each was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exchange {
    /// T1: the request left, by the local clock.
    pub origin_ns: u64,
    /// T2: the request came, by the remote clock.
    pub receive_ns: u64,
    /// T3: the answer left, by the remote clock.
    pub transmit_ns: u64,
    /// T4: the answer came, by the local clock.
    pub destination_ns: u64,
    /// Local CLOCK_REALTIME less CLOCK_MONOTONIC at T1, in ns. Both are slewed alike, so that it
    /// changes only where the clock is stepped.
    pub origin_ahead_ns: i64,
    /// The same at T4.
    pub destination_ahead_ns: i64,
    /// The same of the remote clocks at T3.
    pub remote_ahead_ns: i64,
}

impl Exchange {
    /// Remote less local clock, in ns, if both directions took equally long: ((T2 − T1) + (T3 − T4)) / 2.
    pub fn offset_ns(&self) -> i128 {
        (self.greatest_offset_ns() + self.least_offset_ns()) / 2
    }

    /// Round-trip time, in ns, without the time at the remote host: (T4 − T1) − (T3 − T2).
    pub fn round_trip_ns(&self) -> i128 {
        self.greatest_offset_ns() - self.least_offset_ns()
    }

    /// The offset at T1 is no more than this: the request was not faster than time. T2 − T1, in ns.
    pub fn greatest_offset_ns(&self) -> i128 {
        i128::from(self.receive_ns) - i128::from(self.origin_ns)
    }

    /// The offset at T4 is no less than this: T3 − T4, in ns.
    pub fn least_offset_ns(&self) -> i128 {
        i128::from(self.transmit_ns) - i128::from(self.destination_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equations_of_ntp() {
        // The remote clock is 1000 ns ahead; 30 ns there, 5 ns at the server, 10 ns back.
        let exchange = Exchange {
            origin_ns: 100,
            receive_ns: 1_130,
            transmit_ns: 1_135,
            destination_ns: 145,
            ..Exchange::default()
        };
        assert_eq!(exchange.offset_ns(), 1_010);
        assert_eq!(exchange.round_trip_ns(), 40);
        assert!((exchange.least_offset_ns()..=exchange.greatest_offset_ns()).contains(&1_000));
    }
}
