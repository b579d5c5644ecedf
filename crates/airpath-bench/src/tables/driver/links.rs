// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The links that are measured.

use airpath_core::{Bits, Span};
use airpath_models::channel::gilbert_elliott::GilbertElliottConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::{Fragmentation, LastFrame, LinkConfig};

use crate::testbed::Failure;

/// 1500 bytes take a millisecond of it; a queue of 1000 packets is the default.
pub fn plain() -> Result<LinkConfig, Failure> {
    Ok(LinkConfig { rate: "12 Mbit/s".parse()?, propagation: Span::from_millis(20).into(), ..LinkConfig::default() })
}

/// The same with packets cut into four frames, and errors in bursts that lose frames.
pub fn fragmented() -> Result<LinkConfig, Failure> {
    let fragmentation =
        Fragmentation { frame_payload: Bits::new(3_000), frame_header: Bits::ZERO, last_frame: LastFrame::Short };
    let process = GilbertElliottConfig {
        good_to_bad: "0.01".parse()?,
        bad_to_good: "0.3".parse()?,
        error_in_good: "0.001".parse()?,
        error_in_bad: "0.5".parse()?,
    };
    let errors = ErrorsConfig {
        process: ErrorProcessConfig::GilbertElliott(process),
        per: Per::Frame,
        ..ErrorsConfig::default()
    };
    Ok(LinkConfig { fragmentation: Some(fragmentation), errors, ..plain()? })
}
