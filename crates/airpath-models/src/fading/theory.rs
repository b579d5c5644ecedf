// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Figures that a channel should have, for comparison with what was drawn.

use serde::Serialize;

use super::motion::SpeedConfig;
use super::spectrum::{Spectrum, Tap};
use super::{FadingConfig, FadingModelConfig, LIGHT_METRES_PER_SECOND};

/// Properties of a channel that follow from its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Theory {
    /// Number of slots in a second.
    pub slots_per_second: u32,
    /// Distance between two resources, in hertz.
    pub spacing_hz: f64,
    /// Mean signal-to-noise ratio in decibels; none if the mean varies, or is that of a file.
    pub mean_db: Option<f64>,
    /// Greatest Doppler frequency in hertz; none if the speed varies.
    pub doppler_hz: Option<f64>,
    /// True if the scattered power has the classical Doppler spectrum, with an autocorrelation of J₀.
    pub is_classical: bool,
    /// Power of the direct path over that of all others; none if the channel does not fade, or is recorded.
    pub k_factor: Option<f64>,
    /// Delays in seconds and shares of the power.
    pub taps: Vec<(f64, f64)>,
}

impl FadingConfig {
    /// Properties of the channel, if it has no problems.
    pub fn theory(&self) -> Theory {
        let taps = match &self.model {
            FadingModelConfig::Constant(_) | FadingModelConfig::Recorded(_) => Vec::new(),
            FadingModelConfig::Jakes(config) => vec![config.tap()],
            FadingModelConfig::FilteredNoise(_) => {
                vec![Tap { delay: 0.0, power: 1.0, spectrum: Spectrum::Classical, direct: None }]
            }
            FadingModelConfig::Cdl(config) => config.outline(),
            FadingModelConfig::Profile(config) => config.taps(),
            FadingModelConfig::Taps(config) => config.taps(),
        };
        let all: f64 = taps.iter().map(|tap| tap.power).sum();
        let direct = |tap: &Tap| tap.direct.map_or(0.0, |(k, _)| tap.power / all * k / (k + 1.0));
        let direct: f64 = taps.iter().map(direct).sum();
        let classical = |tap: &Tap| tap.spectrum == Spectrum::Classical;
        let is_cdl = matches!(self.model, FadingModelConfig::Cdl(_));
        let speed = match (&self.route, &self.speed) {
            (Some(_), _) => None,
            (None, None) => Some(0.0),
            (None, Some(SpeedConfig::Constant(speed))) => Some(speed.0),
            (None, Some(SpeedConfig::Profile(_))) => None,
        };
        let is_steady = self.shadowing.is_none() && self.path_loss.is_none();
        let is_recorded = matches!(self.model, FadingModelConfig::Recorded(_));
        Theory {
            slots_per_second: self.slots_per_second,
            spacing_hz: self.spacing.0,
            mean_db: (is_steady && !is_recorded).then_some(self.snr.0),
            doppler_hz: speed.map(|speed| speed * self.carrier.0 / LIGHT_METRES_PER_SECOND),
            is_classical: !is_cdl && !taps.is_empty() && direct == 0.0 && taps.iter().all(classical),
            k_factor: (!taps.is_empty()).then(|| direct / (1.0 - direct)),
            taps: taps.iter().map(|tap| (tap.delay, tap.power / all)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::quantity::{Seconds, Speed};
    use super::super::{ArrayConfig, CdlConfig, CdlProfile, Profile, ProfileConfig};
    use super::*;

    #[test]
    fn figures_by_hand() {
        let base = FadingConfig::examples().remove(1);
        // 30 m/s at 1.9 GHz: 190.13 Hz.
        let speed = Some(SpeedConfig::Constant(Speed(30.0)));
        let theory = FadingConfig { speed, ..base.clone() }.theory();
        assert!((theory.doppler_hz.unwrap() - 190.1316).abs() < 1e-3);
        assert_eq!((theory.mean_db, theory.k_factor, theory.is_classical), (Some(16.0), Some(0.0), true));
        // CDL-D and TDL-D are one table: a direct path of −0.2 dB, and −13.5, −18.8, −21, … dB, together −9.2 dB.
        let profile = ProfileConfig { profile: Profile::TdlD, delay_spread: Some(Seconds(1e-7)), sinusoids: 8 };
        let tdl = FadingConfig { model: FadingModelConfig::Profile(profile), ..base.clone() }.theory();
        let one = ArrayConfig::default();
        let cdl = CdlConfig {
            profile: CdlProfile::D,
            delay_spread: Seconds(1e-7),
            direction: 0.0,
            transmit: one,
            receive: one,
        };
        let cdl = FadingConfig { model: FadingModelConfig::Cdl(cdl), ..base }.theory();
        let (tdl, cdl) = (10.0 * tdl.k_factor.unwrap().log10(), 10.0 * cdl.k_factor.unwrap().log10());
        assert!((tdl - cdl).abs() < 0.05 && (cdl - 9.0).abs() < 0.3, "{tdl} {cdl}");
    }
}
