// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The radio channel of a station in one direction: errors of its frames by its signal-to-noise ratio.
//!
//! The ratio is that of the slot of the channel in which a transmission begins. Each packet is judged by itself, by a draw
//! that belongs to the channel and the number of the packet's transmission on it.

use airpath_core::{DrawKey, Time};

use super::errors::{decoded_error, frame_error};
use super::phy::Scheme;
use crate::fading::{Fading, FadingConfig};
use crate::quality::{ErrorUnit, Quality};

/// A radio channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    fading: Fading,
    /// Key of the draws of errors, and number of the next.
    key: DrawKey,
    step: u64,
    /// Mode, ratio, and the error that was computed last for them.
    known: Option<(Scheme, f32, f64)>,
}

impl Channel {
    /// A channel of `config`. Both directions of a station with the same parameters have the same ratios: that is what
    /// `fading` is the key of. `errors` is that of the direction's own draws.
    pub fn new(config: &FadingConfig, fading: DrawKey, errors: DrawKey) -> Channel {
        Channel { fading: Fading::new(config, fading), key: errors, step: 0, known: None }
    }

    /// Takes other parameters. The draws go on.
    pub fn configure(&mut self, config: &FadingConfig, fading: DrawKey) {
        self.fading = Fading::new(config, fading);
        self.known = None;
    }

    /// Errors of a packet of `bytes` on the air in a transmission that began at `begin`.
    pub fn quality(&mut self, begin: Time, scheme: Scheme, bytes: u64) -> Quality {
        let slot = self.fading.slot_at(begin);
        let snr = self.fading.snr(slot)[0];
        let decoded = match self.known {
            Some((known, ratio, error)) if known == scheme && ratio == snr => error,
            _ => decoded_error(scheme, f64::from(snr)),
        };
        self.known = Some((scheme, snr, decoded));
        let step = self.step;
        self.step += 1;
        let probability = frame_error(decoded, bytes);
        Quality { unit: ErrorUnit::Frame, probability, key: self.key, step, reception: None }
    }
}
