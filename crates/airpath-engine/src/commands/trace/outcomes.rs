// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses, truncations and corruptions of an error trace.
//!
//! Source: the columns of table 1 of Eckhardt and Steenkiste 2002, which are cumulative: truncation is that of packets
//! not lost, corruption that of packets neither lost nor truncated. The bit error rate is the share of flipped bits
//! among all that arrive, those of truncated packets included.

use airpath_models::channel::trace_file::{ErrorTrace, Record};
use serde::Serialize;

/// Outcomes of a trace.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Outcomes {
    /// Length of a packet, by which the following is counted.
    pub length_bytes: u64,
    pub lost: u64,
    pub truncated: u64,
    /// Neither lost nor truncated, with flipped bits.
    pub corrupted: u64,
    /// Truncated, with flipped bits.
    pub truncated_corrupted: u64,
    /// Packets of which the trace says only that they are hit.
    pub hit: u64,
    pub received_bits: u64,
    pub flipped_bits: u64,
    pub loss: f64,
    pub truncation: f64,
    pub corruption: f64,
    pub bit_error_rate: f64,
    pub loss_bursts: u64,
    pub longest_loss_burst: u64,
    /// Runs of flipped bits that follow each other.
    pub bit_bursts: u64,
    pub longest_bit_burst: u64,
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The outcomes of `trace` for packets of `length_bytes`.
pub fn outcomes(trace: &ErrorTrace, length_bytes: u64) -> Outcomes {
    let mut found = Outcomes { length_bytes, ..Outcomes::default() };
    let mut begin = 0;
    for index in 0.. {
        let Some(end) = trace.end(index) else { break };
        let count = end - begin;
        begin = end;
        let mut bytes = length_bytes;
        match trace.record(index) {
            Record::Ok => {}
            Record::Hit => found.hit += count,
            Record::Lost => {
                found.lost += count;
                found.loss_bursts += 1;
                found.longest_loss_burst = found.longest_loss_burst.max(count);
                continue;
            }
            Record::Damaged { kept_bytes, flips } => {
                let kept = kept_bytes.map(u64::from).filter(|kept| *kept < length_bytes);
                bytes = kept.unwrap_or(length_bytes);
                let there = flips.partition_point(|flip| u64::from(*flip) < bytes * 8);
                found.flipped_bits += there as u64;
                found.truncated += u64::from(kept.is_some());
                found.truncated_corrupted += u64::from(kept.is_some() && there > 0);
                found.corrupted += u64::from(kept.is_none() && there > 0);
                for burst in flips[..there].chunk_by(|one, other| one + 1 == *other) {
                    found.bit_bursts += 1;
                    found.longest_bit_burst = found.longest_bit_burst.max(burst.len() as u64);
                }
            }
        }
        found.received_bits += count * bytes * 8;
    }
    let arrived = trace.units() - found.lost;
    found.loss = share(found.lost, trace.units());
    found.truncation = share(found.truncated, arrived);
    found.corruption = share(found.corrupted, arrived - found.truncated);
    found.bit_error_rate = share(found.flipped_bits, found.received_bits);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_models::file::FileFormat;

    /// Packets of 10 bytes: a cut and flips behind the end do not count.
    #[test]
    fn columns_are_cumulative() {
        let text =
            "ok 3\nlost 2\ntruncated 4 flipped 1 31 40\ntruncated 5\ntruncated 12\nflipped 0-2 79 80\nlost\nhit 1";
        let found = outcomes(&ErrorTrace::parse(text.as_bytes()).unwrap(), 10);
        assert_eq!(
            (found.lost, found.truncated, found.corrupted, found.truncated_corrupted, found.hit),
            (3, 2, 1, 1, 1)
        );
        assert_eq!((found.loss, found.truncation, found.corruption), (3.0 / 11.0, 2.0 / 8.0, 1.0 / 6.0));
        assert_eq!((found.received_bits, found.flipped_bits), (6 * 80 + 32 + 40, 6));
        assert_eq!(found.bit_error_rate, 6.0 / 552.0);
        assert_eq!((found.loss_bursts, found.longest_loss_burst), (2, 2));
        assert_eq!((found.bit_bursts, found.longest_bit_burst), (4, 3));
        let none = outcomes(&ErrorTrace::parse(b"lost 2").unwrap(), 10);
        assert_eq!((none.truncation, none.corruption, none.bit_error_rate), (0.0, 0.0, 0.0));
    }
}
