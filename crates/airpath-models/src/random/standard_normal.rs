// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The standard normal distribution: its quantiles and its tail.
//!
//! Source: Wichura 1988, algorithm AS 241 (PPND16), about 16 digits.

use airpath_core::DrawKey;

/// The polynomial of `coefficients`, the constant one first, at `x`.
fn polynomial(x: f64, coefficients: [f64; 8]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[rustfmt::skip]
#[expect(clippy::excessive_precision, reason = "digits as printed")]
const CENTRE: [[f64; 8]; 2] = [
    [3.387_132_872_796_366_608, 1.331_416_678_917_843_774_5e2, 1.971_590_950_306_551_442_7e3,
     1.373_169_376_550_946_112_5e4, 4.592_195_393_154_987_145_7e4, 6.726_577_092_700_870_085_3e4,
     3.343_057_558_358_812_810_5e4, 2.509_080_928_730_122_672_7e3],
    [1.0, 4.231_333_070_160_091_125_2e1, 6.871_870_074_920_579_083e2,
     5.394_196_021_424_751_107_7e3, 2.121_379_430_158_659_586_7e4, 3.930_789_580_009_271_061e4,
     2.872_908_573_572_194_267_4e4, 5.226_495_278_852_854_561e3],
];
#[rustfmt::skip]
#[expect(clippy::excessive_precision, reason = "digits as printed")]
const FLANK: [[f64; 8]; 2] = [
    [1.423_437_110_749_683_577_34, 4.630_337_846_156_545_295_9, 5.769_497_221_460_691_405_5,
     3.647_848_324_763_204_605_04, 1.270_458_252_452_368_382_58, 2.417_807_251_774_506_117_7e-1,
     2.272_384_498_926_918_458_33e-2, 7.745_450_142_783_414_076_4e-4],
    [1.0, 2.053_191_626_637_758_821_87, 1.676_384_830_183_803_849_4,
     6.897_673_349_851_000_045_5e-1, 1.481_039_764_274_800_745_9e-1, 1.519_866_656_361_645_719_66e-2,
     5.475_938_084_995_344_946e-4, 1.050_750_071_644_416_843_24e-9],
];
#[rustfmt::skip]
#[expect(clippy::excessive_precision, reason = "digits as printed")]
const TAIL: [[f64; 8]; 2] = [
    [6.657_904_643_501_103_777_2, 5.463_784_911_164_114_369_9, 1.784_826_539_917_291_335_8,
     2.965_605_718_285_048_912_3e-1, 2.653_218_952_657_612_309_3e-2, 1.242_660_947_388_078_438_6e-3,
     2.711_555_568_743_487_578_15e-5, 2.010_334_399_292_288_132_65e-7],
    [1.0, 5.998_322_065_558_879_376_9e-1, 1.369_298_809_227_358_053_1e-1,
     1.487_536_129_085_061_485_25e-2, 7.868_691_311_456_132_591e-4, 1.846_318_317_510_054_681_8e-5,
     1.421_511_758_316_445_888_7e-7, 2.044_263_103_389_939_785_64e-15],
];

/// The value below which a standard normal draw lies with `probability`, above 0 and below 1.
pub(crate) fn quantile(probability: f64) -> f64 {
    let ratio = |x, [above, below]: [[f64; 8]; 2]| polynomial(x, above) / polynomial(x, below);
    let centred = probability - 0.5;
    if centred.abs() <= 0.425 {
        return centred * ratio(0.180_625 - centred * centred, CENTRE);
    }
    let outer = if centred < 0.0 { probability } else { 1.0 - probability };
    let depth = libm::sqrt(-libm::log(outer));
    let size = if depth <= 5.0 { ratio(depth - 1.6, FLANK) } else { ratio(depth - 5.0, TAIL) };
    if centred < 0.0 { -size } else { size }
}

/// The probability that a standard normal draw exceeds `value`.
pub(crate) fn beyond(value: f64) -> f64 {
    0.5 * libm::erfc(value * std::f64::consts::FRAC_1_SQRT_2)
}

/// A standard normal draw.
pub(crate) fn draw(key: DrawKey, step: u64, attempt: u64) -> f64 {
    // The uniform draw may be rounded to 1, of which there is no quantile.
    quantile(key.unit(step, attempt).min(1.0 - f64::EPSILON / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_paper() {
        // Wichura 1988, section on accuracy: the check values of PPND16.
        let known =
            [(0.25, -0.674_489_750_196_081_7), (0.001, -3.090_232_306_167_813_5), (1e-20, -9.262_340_089_798_408)];
        for (probability, value) in known {
            assert!((quantile(probability) / value - 1.0).abs() < 1e-15, "{probability}: {}", quantile(probability));
        }
    }

    #[test]
    fn tail_and_quantile_are_inverses() {
        for step in 1..4_000 {
            let probability = f64::from(step) / 4_000.0;
            let back = beyond(-quantile(probability));
            assert!((back / probability - 1.0).abs() < 1e-13, "{probability} {back}");
        }
        for exponent in 1..100 {
            let probability = libm::pow(10.0, -f64::from(exponent));
            let back = beyond(-quantile(probability));
            assert!((back / probability - 1.0).abs() < 1e-12, "{probability} {back}");
        }
    }
}
