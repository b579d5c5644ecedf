// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Physical layers of IEEE 802.11: rates, and times of transmissions on the air.
//!
//! Source: IEEE 802.11-2016, clauses 16 (DSSS and CCK of 802.11b, long preamble), 17 (OFDM of 802.11a), 18 (ERP-OFDM of
//! 802.11g: a signal extension of 6 us), 19 (HT of 802.11n, mixed format) and 21 (VHT of 802.11ac); IEEE 802.11ax-2021,
//! clause 27 (HE single-user PPDU, LDPC). A time is the preamble, then the symbols that carry 16 service bits, the
//! octets, and with convolutional codes 6 tail bits. The packet extension of HE is left out.

use airpath_core::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate_control::ModeTimes;

/// Octets of control frames.
pub(super) const ACK_BYTES: u64 = 14;
pub(super) const BLOCK_ACK_BYTES: u64 = 32;
pub(super) const RTS_BYTES: u64 = 20;
pub(super) const CTS_BYTES: u64 = 14;

/// Octets of a packet by which rates are compared.
const USUAL_PACKET_BYTES: u64 = 1200;

/// Octets that the MAC adds to a packet with QoS: header, LLC and SNAP, check sequence.
pub(super) const QOS_OVERHEAD_BYTES: u64 = 38;

/// Standard of the physical layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Standard {
    /// DSSS and CCK, 1 to 11 Mbit/s.
    #[serde(rename = "802.11b")]
    B,
    /// OFDM in the 5 GHz band, 6 to 54 Mbit/s.
    #[serde(rename = "802.11a")]
    A,
    /// OFDM in the 2.4 GHz band, 6 to 54 Mbit/s.
    #[serde(rename = "802.11g")]
    G,
    /// HT, up to 600 Mbit/s.
    #[default]
    #[serde(rename = "802.11n")]
    N,
    /// VHT, up to 6.9 Gbit/s.
    #[serde(rename = "802.11ac")]
    Ac,
    /// HE, up to 9.6 Gbit/s.
    #[serde(rename = "802.11ax")]
    Ax,
}

/// Width of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize, JsonSchema)]
pub enum Width {
    /// 20 MHz.
    #[default]
    #[serde(rename = "20 MHz")]
    Mhz20,
    /// 40 MHz.
    #[serde(rename = "40 MHz")]
    Mhz40,
    /// 80 MHz.
    #[serde(rename = "80 MHz")]
    Mhz80,
    /// 160 MHz.
    #[serde(rename = "160 MHz")]
    Mhz160,
}

/// Convolutional code of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// Rate 1/2.
    Half,
    /// Rate 2/3.
    TwoThirds,
    /// Rate 3/4.
    ThreeQuarters,
    /// Rate 5/6.
    FiveSixths,
}

/// Modulation and code of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    /// Bits of a subcarrier in a symbol.
    pub bits_per_symbol: u8,
    pub code: Code,
}

impl Scheme {
    fn new(bits_per_symbol: u64, numerator: u64, denominator: u64) -> Scheme {
        let code = match (numerator, denominator) {
            (1, 2) => Code::Half,
            (2, 3) => Code::TwoThirds,
            (3, 4) => Code::ThreeQuarters,
            _ => Code::FiveSixths,
        };
        Scheme { bits_per_symbol: bits_per_symbol as u8, code }
    }
}

/// Modulation and coding of single-carrier rates and of MCS 0 to 11: bits of a symbol, and the code rate.
const SCHEMES: [(u64, u64, u64); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];

/// Data bits of an OFDM symbol at 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s.
const OFDM_BITS: [u64; 8] = [24, 36, 48, 72, 96, 144, 192, 216];

/// Modulation and coding of those.
const OFDM_SCHEMES: [(u64, u64, u64); 8] =
    [(1, 1, 2), (1, 3, 4), (2, 1, 2), (2, 3, 4), (4, 1, 2), (4, 3, 4), (6, 2, 3), (6, 3, 4)];

/// Rates of DSSS and CCK in kbit/s.
const DSSS_KBITS: [u64; 4] = [1000, 2000, 5500, 11_000];

/// A physical layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phy {
    pub standard: Standard,
    pub width: Width,
    /// Number of spatial streams.
    pub streams: u8,
    pub guard_interval: Span,
}

/// A rate of a physical layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    /// Data bits of a symbol; kbit/s for DSSS.
    pub bits: u64,
    /// Data bits of a symbol of the control frames that answer, in 20 us and symbols of 4 us; kbit/s for DSSS.
    control: u64,
    /// Modulation and code; none with DSSS.
    pub scheme: Option<Scheme>,
}

impl Width {
    /// The width in MHz.
    pub fn megahertz(self) -> u16 {
        20 << self as u16
    }
}

impl Standard {
    /// Length of a slot of the backoff.
    pub fn slot(self) -> Span {
        Span::from_micros(if self == Standard::B { 20 } else { 9 })
    }

    /// Time between a frame and its answer.
    pub fn sifs(self) -> Span {
        Span::from_micros(if matches!(self, Standard::B | Standard::G) { 10 } else { 16 })
    }

    /// Least contention window.
    pub fn contention_window(self) -> u16 {
        if self == Standard::B { 31 } else { 15 }
    }

    /// Octets that the MAC adds to a packet: header (with QoS from 802.11n on), LLC and SNAP, check sequence.
    pub fn overhead_bytes(self) -> u64 {
        if self.has_streams() { QOS_OVERHEAD_BYTES } else { 36 }
    }

    /// True if it has spatial streams, guard intervals, and frames of several packets.
    pub fn has_streams(self) -> bool {
        matches!(self, Standard::N | Standard::Ac | Standard::Ax)
    }

    /// Guard intervals in nanoseconds, the usual one first.
    pub fn guard_intervals(self) -> &'static [u64] {
        match self {
            Standard::B => &[0],
            Standard::A | Standard::G => &[800],
            Standard::N | Standard::Ac => &[800, 400],
            Standard::Ax => &[800, 1600, 3200],
        }
    }

    /// Widths of its channels.
    pub fn widths(self) -> &'static [Width] {
        match self {
            Standard::B | Standard::A | Standard::G => &[Width::Mhz20],
            Standard::N => &[Width::Mhz20, Width::Mhz40],
            Standard::Ac | Standard::Ax => &[Width::Mhz20, Width::Mhz40, Width::Mhz80, Width::Mhz160],
        }
    }

    /// Greatest number of spatial streams.
    pub fn most_streams(self) -> u8 {
        match self {
            Standard::B | Standard::A | Standard::G => 1,
            Standard::N => 4,
            Standard::Ac | Standard::Ax => 8,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Standard::B => "802.11b",
            Standard::A => "802.11a",
            Standard::G => "802.11g",
            Standard::N => "802.11n",
            Standard::Ac => "802.11ac",
            Standard::Ax => "802.11ax",
        }
    }
}

impl Phy {
    /// Data subcarriers of a symbol.
    fn subcarriers(&self) -> u64 {
        let width = self.width as usize;
        match self.standard {
            Standard::Ax => [234, 468, 980, 1960][width],
            _ => [52, 108, 234, 468][width],
        }
    }

    /// Length of a symbol.
    fn symbol_ns(&self) -> u64 {
        let payload = if self.standard == Standard::Ax { 12_800 } else { 3200 };
        payload + self.guard_interval.nanos()
    }

    /// All rates, the lowest first.
    pub fn modes(&self) -> Vec<Mode> {
        let control = |bits: u64| {
            if bits >= 96 {
                96
            } else if bits >= 48 {
                48
            } else {
                24
            }
        };
        match self.standard {
            Standard::B => {
                DSSS_KBITS.iter().map(|bits| Mode { bits: *bits, control: (*bits).min(2000), scheme: None }).collect()
            }
            Standard::A | Standard::G => {
                let mode = |(bits, (of_symbol, numerator, denominator)): (&u64, &(u64, u64, u64))| {
                    let scheme = Some(Scheme::new(*of_symbol, *numerator, *denominator));
                    Mode { bits: *bits, control: control(*bits), scheme }
                };
                OFDM_BITS.iter().zip(&OFDM_SCHEMES).map(mode).collect()
            }
            Standard::N | Standard::Ac | Standard::Ax => {
                let most = match self.standard {
                    Standard::N => 8,
                    Standard::Ac => 10,
                    _ => 12,
                };
                let modes = SCHEMES[..most].iter().filter_map(|(bits, numerator, denominator)| {
                    let coded = self.subcarriers() * bits * u64::from(self.streams) * numerator;
                    let is_whole = coded.is_multiple_of(*denominator) || self.standard == Standard::Ax;
                    // The rate of OFDM with the same modulation and code rate (802.11-2016, 10.7.10).
                    let reference = 48 * bits * numerator / denominator;
                    let scheme = Some(Scheme::new(*bits, *numerator, *denominator));
                    is_whole.then(|| Mode { bits: coded / denominator, control: control(reference), scheme })
                });
                modes.collect()
            }
        }
    }

    /// Rate of `mode` in bit/s, rounded down.
    pub fn bits_per_second(&self, mode: Mode) -> u64 {
        match self.standard {
            Standard::B => mode.bits * 1000,
            _ => (u128::from(mode.bits) * 1_000_000_000 / u128::from(self.symbol_ns())) as u64,
        }
    }

    /// The mode whose rate is `rate`, within a percent: the standards round rates to a tenth of a megabit.
    pub fn mode_of(&self, rate: Rate) -> Option<Mode> {
        let rate = rate.bits_per_second();
        let distance = |mode: &Mode| self.bits_per_second(*mode).abs_diff(rate);
        self.modes().into_iter().min_by_key(distance).filter(|mode| distance(mode) * 100 <= rate)
    }

    /// Time before the first symbol of data.
    fn preamble_ns(&self) -> u64 {
        let streams = usize::from(self.streams).clamp(1, 8) - 1;
        // Long training fields for so many streams.
        let trainings = [1, 2, 4, 4, 6, 6, 8, 8][streams];
        match self.standard {
            Standard::B => 192_000,
            Standard::A | Standard::G => 20_000,
            Standard::N => 20_000 + 8000 + 4000 + 4000 * trainings,
            Standard::Ac => 20_000 + 8000 + 4000 + 4000 * trainings + 4000,
            Standard::Ax => {
                let training = match self.guard_interval.nanos() {
                    3200 => 12_800 + 3200,
                    guard => 6400 + guard,
                };
                20_000 + 4000 + 8000 + 4000 + training * trainings
            }
        }
    }

    /// Time on the air of `bytes` at `mode`.
    pub fn air_time(&self, mode: Mode, bytes: u64) -> Span {
        let nanos = match self.standard {
            // The length field counts whole microseconds.
            Standard::B => self.preamble_ns() + (bytes * 8 * 1000).div_ceil(mode.bits) * 1000,
            _ => {
                let tail = if self.standard == Standard::Ax { 0 } else { 6 };
                let symbols = (16 + bytes * 8 + tail).div_ceil(mode.bits);
                let data = symbols * self.symbol_ns();
                let is_short = self.guard_interval.nanos() == 400;
                // With short guard intervals the end is on the grid of long symbols.
                let data = if is_short { data.div_ceil(4000) * 4000 } else { data };
                self.preamble_ns() + data + self.extension_ns()
            }
        };
        Span::from_nanos(nanos)
    }

    fn extension_ns(&self) -> u64 {
        if self.standard == Standard::G { 6000 } else { 0 }
    }

    /// Time on the air of a control frame of `bytes` beside data at `mode`: at a mandatory rate that all stations know.
    pub fn control_time(&self, mode: Mode, bytes: u64) -> Span {
        let nanos = match self.standard {
            Standard::B => 192_000 + (bytes * 8 * 1000).div_ceil(mode.control) * 1000,
            _ => 20_000 + (16 + bytes * 8 + 6).div_ceil(mode.control) * 4000 + self.extension_ns(),
        };
        Span::from_nanos(nanos)
    }

    /// Times by which rates are compared.
    pub fn times(&self, mode: Mode) -> ModeTimes {
        let empty = self.air_time(mode, 0);
        let answer = self.standard.sifs() + self.control_time(mode, ACK_BYTES);
        ModeTimes { packet: self.air_time(mode, USUAL_PACKET_BYTES) - empty, overhead: empty + answer }
    }

    /// Time on the air of an acknowledgement at the lowest mandatory rate.
    pub fn slowest_ack(&self) -> Span {
        let lowest = if self.standard == Standard::B { 1000 } else { 24 };
        self.control_time(Mode { bits: lowest, control: lowest, scheme: None }, ACK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phy(standard: Standard, width: Width, streams: u8, guard_interval_ns: u64) -> Phy {
        Phy { standard, width, streams, guard_interval: Span::from_nanos(guard_interval_ns) }
    }

    fn mode(phy: &Phy, rate: &str) -> Mode {
        phy.mode_of(rate.parse().unwrap()).unwrap()
    }

    /// 1534 octets of MAC frame: by hand from the equations of the standard.
    #[test]
    fn times_on_the_air_by_hand() {
        let air = |phy: Phy, rate, bytes| phy.air_time(mode(&phy, rate), bytes).nanos();
        // 192 us and 12272 bits at 11 Mbit/s: 1115.64, 1116 whole us.
        assert_eq!(air(phy(Standard::B, Width::Mhz20, 1, 0), "11 Mbit/s", 1534), 1_308_000);
        assert_eq!(air(phy(Standard::B, Width::Mhz20, 1, 0), "1 Mbit/s", 1534), 192_000 + 12_272_000);
        // ⌈(16 + 12272 + 6) / 216⌉ = 57 symbols of 4 us behind 20 us.
        assert_eq!(air(phy(Standard::A, Width::Mhz20, 1, 800), "54 Mbit/s", 1534), 248_000);
        assert_eq!(air(phy(Standard::G, Width::Mhz20, 1, 800), "54 Mbit/s", 1534), 254_000);
        assert_eq!(air(phy(Standard::A, Width::Mhz20, 1, 800), "6 Mbit/s", 1534), 20_000 + 513 * 4000);
        // HT MCS 7: 260 bits a symbol, 48 symbols; 36 us of preamble with one stream.
        assert_eq!(air(phy(Standard::N, Width::Mhz20, 1, 800), "65 Mbit/s", 1534), 36_000 + 48 * 4000);
        // With 400 ns: 48 symbols of 3.6 us are 172.8 us, 44 long symbols.
        assert_eq!(air(phy(Standard::N, Width::Mhz20, 1, 400), "72.2 Mbit/s", 1534), 36_000 + 176_000);
        // VHT 80 MHz, two streams, MCS 9: 3120 bits a symbol; 44 us with two training fields.
        assert_eq!(air(phy(Standard::Ac, Width::Mhz80, 2, 800), "780 Mbit/s", 1534), 44_000 + 4 * 4000);
        // HE 20 MHz, one stream, MCS 11: 1950 bits a symbol of 13.6 us; 36 us and a training field of 7.2 us.
        assert_eq!(air(phy(Standard::Ax, Width::Mhz20, 1, 800), "143.4 Mbit/s", 1534), 43_200 + 7 * 13_600);
    }

    #[test]
    fn answers_go_at_the_highest_mandatory_rate() {
        let ack = |phy: Phy, rate| phy.control_time(mode(&phy, rate), ACK_BYTES).nanos();
        // 14 octets: 134 bits in 24, 48 or 96 bits a symbol.
        let a = phy(Standard::A, Width::Mhz20, 1, 800);
        assert_eq!(
            [ack(a, "6 Mbit/s"), ack(a, "9 Mbit/s"), ack(a, "18 Mbit/s"), ack(a, "54 Mbit/s")],
            [44_000, 44_000, 32_000, 28_000]
        );
        let n = phy(Standard::N, Width::Mhz20, 1, 800);
        assert_eq!([ack(n, "6.5 Mbit/s"), ack(n, "13 Mbit/s"), ack(n, "26 Mbit/s")], [44_000, 32_000, 28_000]);
        // 112 bits at 2 Mbit/s.
        assert_eq!(ack(phy(Standard::B, Width::Mhz20, 1, 0), "11 Mbit/s"), 192_000 + 56_000);
        assert_eq!(a.slowest_ack().nanos(), 44_000);
    }

    /// Rates of the tables of the standards, in units of 100 kbit/s.
    #[test]
    fn rates_are_those_of_the_tables() {
        let rates = |phy: Phy| -> Vec<u64> {
            phy.modes().into_iter().map(|mode| (phy.bits_per_second(mode) + 50_000) / 100_000).collect()
        };
        let n = rates(phy(Standard::N, Width::Mhz40, 2, 400));
        assert_eq!(n, [300, 600, 900, 1200, 1800, 2400, 2700, 3000]);
        let ac = rates(phy(Standard::Ac, Width::Mhz20, 1, 800));
        // MCS 9 does not exist there: its bits are no whole number.
        assert_eq!(ac, [65, 130, 195, 260, 390, 520, 585, 650, 780]);
        let ax = rates(phy(Standard::Ax, Width::Mhz80, 1, 800));
        assert_eq!(ax, [360, 721, 1081, 1441, 2162, 2882, 3243, 3603, 4324, 4804, 5404, 6004]);
        assert_eq!(phy(Standard::A, Width::Mhz20, 1, 800).mode_of("50 Mbit/s".parse().unwrap()), None);
    }
}
