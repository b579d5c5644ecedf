// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Delay profiles of the standards, as tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::Decibels;
use super::spectrum::{Spectrum, Tap};

macro_rules! profiles {
    ($( $(#[$meta:meta])* $Name:ident = $table:ident, )*) => {
        /// A named delay profile.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Profile { $( $(#[$meta])* $Name, )* }

        impl Profile {
            /// All of them.
            pub const ALL: &[Profile] = &[$( Profile::$Name, )*];

            fn table(self) -> &'static Table {
                match self { $( Profile::$Name => &$table, )* }
            }
        }
    };
}

profiles! {
    /// Typical urban of Alfredsson et al. 2006: 12 taps at 5 MHz, of which two are empty.
    Tu12At5Mhz = TU12_AT_5_MHZ,
    /// Typical urban of COST 207, 12 taps.
    Cost207Tu = COST207_TU,
    /// Hilly terrain of COST 207, 12 taps.
    Cost207Ht = COST207_HT,
    /// Rural area of COST 207, 4 taps, the first with a direct path.
    Cost207Ra = COST207_RA,
    /// Equaliser test of COST 207, 6 taps.
    Cost207Eq = COST207_EQ,
    /// Typical urban of GSM (3GPP TS 45.005), 12 taps with classical spectra.
    GsmTu = GSM_TU,
    /// Extended pedestrian A.
    Epa = EPA,
    /// Extended vehicular A.
    Eva = EVA,
    /// Extended typical urban.
    Etu = ETU,
    /// Tapped delay line A, without a direct path.
    TdlA = TDL_A,
    /// Tapped delay line B, without a direct path.
    TdlB = TDL_B,
    /// Tapped delay line C, without a direct path.
    TdlC = TDL_C,
    /// Tapped delay line D, with a direct path.
    TdlD = TDL_D,
    /// Tapped delay line E, with a direct path.
    TdlE = TDL_E,
}

/// Doppler spectra of a table.
enum Spectra {
    /// Classical, and a direct path in the first tap: its power over the scattered one, and its Doppler frequency
    /// relative to the greatest.
    Classical(Option<(f64, f64)>),
    /// Those of COST 207: classical up to 0.5 µs, GAUS1 up to 2 µs, GAUS2 beyond.
    ByDelay,
}

struct Table {
    /// Delays in nanoseconds, or in delay spreads.
    delays: &'static [f64],
    /// Powers in decibels, as printed.
    powers: &'static [f64],
    normalised: bool,
    spectra: Spectra,
}

const fn plain(delays: &'static [f64], powers: &'static [f64]) -> Table {
    Table { delays, powers, normalised: false, spectra: Spectra::Classical(None) }
}

const fn normalised(delays: &'static [f64], powers: &'static [f64], direct: Option<(f64, f64)>) -> Table {
    Table { delays, powers, normalised: true, spectra: Spectra::Classical(direct) }
}

// Alfredsson et al. 2006 give powers and no delays. The powers are those of the typical urban profile of 3GPP TR 25.943
// with its 20 paths added up at the nearest multiples of 0.2 µs, the reciprocal of the band of 5 MHz: 0.512, 0.514,
// 0.517 and 0.674 µs make the tap of -4.4428 dB.
const TU12_AT_5_MHZ: Table = plain(
    &[0.0, 200.0, 600.0, 800.0, 1200.0, 1400.0, 1600.0, 1800.0, 2000.0, 2200.0],
    &[-5.7, -7.6, -4.4428, -13.4, -13.5793, -14.2371, -14.4794, -16.9543, -20.0164, -24.3],
);
// COST 207 (1989); the direct path of RA has 0.91 parts of the power to 0.41 scattered ones, at 0.7 of the greatest
// Doppler frequency.
const COST207_TU: Table = Table {
    spectra: Spectra::ByDelay,
    ..plain(
        &[0.0, 200.0, 400.0, 600.0, 800.0, 1200.0, 1400.0, 1800.0, 2400.0, 3000.0, 3200.0, 5000.0],
        &[-4.0, -3.0, 0.0, -2.0, -3.0, -5.0, -7.0, -5.0, -6.0, -9.0, -11.0, -10.0],
    )
};
const COST207_HT: Table = Table {
    spectra: Spectra::ByDelay,
    ..plain(
        &[0.0, 200.0, 400.0, 600.0, 800.0, 2000.0, 2400.0, 15000.0, 15200.0, 15800.0, 17200.0, 20000.0],
        &[-10.0, -8.0, -6.0, -4.0, 0.0, 0.0, -4.0, -8.0, -9.0, -10.0, -12.0, -14.0],
    )
};
const COST207_RA: Table = Table {
    spectra: Spectra::Classical(Some((0.91 / 0.41, 0.7))),
    ..plain(&[0.0, 200.0, 400.0, 600.0], &[0.0, -2.0, -10.0, -20.0])
};
const COST207_EQ: Table = plain(&[0.0, 3200.0, 6400.0, 9600.0, 12800.0, 16000.0], &[0.0; 6]);
// 3GPP TS 45.005, annex C.3.3.
const GSM_TU: Table = plain(
    &[0.0, 200.0, 400.0, 600.0, 800.0, 1200.0, 1400.0, 1800.0, 2400.0, 3000.0, 3200.0, 5000.0],
    &[-4.0, -3.0, 0.0, -2.6, -3.0, -5.0, -7.0, -5.0, -6.5, -8.6, -11.0, -10.0],
);
// 3GPP TS 36.101, annex B.2.1.
const EPA: Table = plain(&[0.0, 30.0, 70.0, 90.0, 110.0, 190.0, 410.0], &[0.0, -1.0, -2.0, -3.0, -8.0, -17.2, -20.8]);
const EVA: Table = plain(
    &[0.0, 30.0, 150.0, 310.0, 370.0, 710.0, 1090.0, 1730.0, 2510.0],
    &[0.0, -1.5, -1.4, -3.6, -0.6, -9.1, -7.0, -12.0, -16.9],
);
const ETU: Table = plain(
    &[0.0, 50.0, 120.0, 200.0, 230.0, 500.0, 1600.0, 2300.0, 5000.0],
    &[-1.0, -1.0, -1.0, 0.0, 0.0, 0.0, -3.0, -5.0, -7.0],
);
// 3GPP TR 38.901, tables 7.7.2-1 to 7.7.2-5. Direct path and scattered part of the first tap of D and E are one tap
// here; the direct path's Doppler frequency is 0.7 of the greatest.
const TDL_A: Table = normalised(
    &[
        0.0, 0.3819, 0.4025, 0.5868, 0.461, 0.5375, 0.6708, 0.575, 0.7618, 1.5375, 1.8978, 2.2242, 2.1718, 2.4942,
        2.5119, 3.0582, 4.081, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043, 9.6586,
    ],
    &[
        -13.4, 0.0, -2.2, -4.0, -6.0, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2, -10.8, -11.3, -12.7,
        -16.2, -18.3, -18.9, -16.6, -19.9, -29.7,
    ],
    None,
);
const TDL_B: Table = normalised(
    &[
        0.0, 0.1072, 0.2155, 0.2095, 0.287, 0.2986, 0.3752, 0.5055, 0.3681, 0.3697, 0.57, 0.5283, 1.1021, 1.2756,
        1.5474, 1.7842, 2.0169, 2.8294, 3.0219, 3.6187, 4.1067, 4.279, 4.7834,
    ],
    &[
        0.0, -2.2, -4.0, -3.2, -9.8, -1.2, -3.4, -5.2, -7.6, -3.0, -8.9, -9.0, -4.8, -5.7, -7.5, -1.9, -7.6, -12.2,
        -9.8, -11.4, -14.9, -9.2, -11.3,
    ],
    None,
);
#[expect(clippy::approx_constant, reason = "the delay 0.6366 of the table only looks like 2/π")]
const TDL_C: Table = normalised(
    &[
        0.0, 0.2099, 0.2219, 0.2329, 0.2176, 0.6366, 0.6448, 0.656, 0.6584, 0.7935, 0.8213, 0.9336, 1.2285, 1.3083,
        2.1704, 2.7105, 4.2589, 4.6003, 5.4902, 5.6077, 6.3065, 6.6374, 7.0427, 8.6523,
    ],
    &[
        -4.4, -1.2, -3.5, -5.2, -2.5, 0.0, -2.2, -3.9, -7.4, -7.1, -10.7, -11.1, -5.1, -6.8, -8.7, -13.2, -13.9, -13.9,
        -15.8, -17.1, -16.0, -15.7, -21.6, -22.8,
    ],
    None,
);
const TDL_D: Table = normalised(
    &[0.0, 0.035, 0.612, 1.363, 1.405, 1.804, 2.596, 1.775, 4.042, 7.937, 9.424, 9.708, 12.525],
    &[0.0, -18.8, -21.0, -22.8, -17.9, -20.1, -21.9, -22.9, -27.8, -23.6, -24.8, -30.0, -27.7],
    Some((21.379620895022, 0.7)),
);
const TDL_E: Table = normalised(
    &[0.0, 0.5133, 0.544, 0.563, 0.544, 0.7112, 1.9092, 1.9293, 1.9589, 2.6426, 3.7136, 5.4524, 12.0034, 20.6519],
    &[0.0, -15.8, -18.1, -19.8, -22.9, -22.4, -18.6, -20.8, -22.6, -22.3, -25.6, -20.2, -29.8, -29.2],
    Some((158.489319246111, 0.7)),
);

/// GAUS1: two bell curves, the second 10 dB below the first.
const GAUS1: Spectrum = Spectrum::Gaussian(5.0 / 6.0, [-0.8, 0.05], [0.4, 0.1]);
/// GAUS2: the second 15 dB below; 0.1 to 0.15·10^(−1.5) parts of the power.
const GAUS2: Spectrum = Spectrum::Gaussian(0.954_713_941_465_8, [0.7, 0.1], [-0.4, 0.15]);

impl Profile {
    /// True if its delays are in delay spreads.
    pub fn is_normalised(self) -> bool {
        self.table().normalised
    }
}

/// The taps of `profile`, with a delay spread in seconds if it needs one.
pub(super) fn taps(profile: Profile, delay_spread: f64) -> Vec<Tap> {
    let table = profile.table();
    let unit = if table.normalised { delay_spread } else { 1e-9 };
    let tap = |(number, (delay, power)): (usize, (&f64, &f64))| {
        let (spectrum, direct) = match table.spectra {
            Spectra::Classical(direct) => (Spectrum::Classical, direct.filter(|_| number == 0)),
            Spectra::ByDelay if *delay <= 500.0 => (Spectrum::Classical, None),
            Spectra::ByDelay if *delay <= 2000.0 => (GAUS1, None),
            Spectra::ByDelay => (GAUS2, None),
        };
        Tap { delay: delay * unit, power: Decibels(*power).ratio(), spectrum, direct }
    };
    table.delays.iter().zip(table.powers).enumerate().map(tap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(profile: Profile) -> f64 {
        let taps = taps(profile, 1.0);
        let all: f64 = taps.iter().map(|tap| tap.power).sum();
        let mean = |power: i32| taps.iter().map(|tap| tap.power * tap.delay.powi(power)).sum::<f64>() / all;
        (mean(2) - mean(1).powi(2)).sqrt()
    }

    #[test]
    fn powers_of_the_paper_sum_to_one() {
        let all: f64 = taps(Profile::Tu12At5Mhz, 0.0).iter().map(|tap| tap.power).sum();
        assert!((all - 1.0).abs() < 0.002, "{all}");
    }

    #[test]
    fn delay_spreads_are_those_of_the_standards() {
        // TS 36.101, table B.2.1-1: 45, 357 and 991 ns.
        for (profile, known_ns) in [(Profile::Epa, 45.0), (Profile::Eva, 357.0), (Profile::Etu, 991.0)] {
            assert!((spread(profile) * 1e9 - known_ns).abs() < 2.0, "{profile:?} {}", spread(profile));
        }
        // Normalised profiles have a spread of one.
        for profile in [Profile::TdlA, Profile::TdlB, Profile::TdlC, Profile::TdlD, Profile::TdlE] {
            assert!((spread(profile) - 1.0).abs() < 0.02, "{profile:?} {}", spread(profile));
        }
        // COST 207: about 1 µs in towns, 5 µs in hills; 0.1264 µs in the country, by hand from its four taps.
        assert!((spread(Profile::Cost207Tu) - 1.0e-6).abs() < 0.1e-6);
        assert!((spread(Profile::Cost207Ht) - 5.0e-6).abs() < 0.5e-6);
        assert!((spread(Profile::Cost207Ra) - 0.1264e-6).abs() < 0.0001e-6);
    }

    #[test]
    fn the_second_bell_curve_has_the_power_of_its_height_and_width() {
        let second = 0.15 * libm::pow(10.0, -1.5);
        let Spectrum::Gaussian(share, ..) = GAUS2 else { unreachable!() };
        assert!((share - 0.1 / (0.1 + second)).abs() < 1e-9, "{}", 0.1 / (0.1 + second));
    }
}
