// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Calibration of a live run, and its mention in the record.

use std::path::Path;

use airpath_calibration::{CalibratedHost, Calibration, Rights, store};
use airpath_live::clock;
use airpath_log::verdict::CalibrationFacts;
use serde_json::json;

use super::request::{Report, RunRequest};
use crate::cli::RunArgs;
use crate::error::{Failure, Result};
use crate::terminal::say;

/// The word for no calibration.
const NONE: &str = "none";

/// Tunes `request` by the calibration that `args` name, or by the one of this host and user. To be called
/// before a user namespace is entered, in which everybody's rights look alike.
///
/// # Errors
/// When a calibration that was asked for cannot be used. One that was only found is told of and ignored.
pub fn apply(request: &mut RunRequest, args: &RunArgs) -> Result<()> {
    let host = CalibratedHost::detect();
    let note = |text: &str| {
        if request.report != Report::Nothing {
            say!("airpath: {text}");
        }
    };
    let found = match &args.calibration {
        Some(none) if none == Path::new(NONE) => Err("none: switched off".to_owned()),
        Some(file) => {
            let calibration = store::read(file).map_err(|error| Failure::usage(error.to_string()))?;
            if let Some(difference) = calibration.host.differs_from(&host) {
                note(&format!("the calibration {} is from another machine ({difference})", file.display()));
            }
            Ok((file.clone(), calibration))
        }
        None => match store::folder() {
            // Who has no home has calibrated nothing.
            Err(error) => Err(format!("none: {error}")),
            Ok(folder) => match store::find(&folder, &host, Rights::current()) {
                Ok(Some(found)) => Ok(found),
                Ok(None) => Err(format!("none: {} to make one", store::MEND)),
                Err(error) => {
                    note(&format!("{error}; it is ignored"));
                    Err(format!("none: {error}"))
                }
            },
        },
    };
    request.calibration = match found {
        Ok((file, calibration)) => {
            request.tuning = args.tuned(calibration.tuning(args.spin));
            request.calibration_facts = Some(CalibrationFacts {
                age_s: (clock::realtime_ns() / 1_000_000_000).saturating_sub(calibration.measured_unix_s),
                p99_ns: calibration.measured.p99_ns,
                bound_ns: calibration.bound_ns,
                disturbed: calibration.disturbed.is_some(),
            });
            record(&file, &calibration)
        }
        Err(reason) => reason.into(),
    };
    Ok(())
}

fn record(file: &Path, calibration: &Calibration) -> serde_json::Value {
    json!({
        "file": file,
        "measured_unix_s": calibration.measured_unix_s,
        "bound_ns": calibration.bound_ns,
        "budget_ppm": calibration.budget_ppm,
        "policy": calibration.policy,
        "processor": calibration.processor,
        "margin_ns": calibration.margin_ns,
    })
}
