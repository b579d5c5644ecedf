// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath timing correct`: a run or a capture brought onto the clock of the other host.

use std::path::Path;
use std::time::Duration;

use airpath_clocks::Estimate;
use airpath_clocks::correct::{Correction, Request, correct};
use airpath_clocks::segments::HostSide;

use super::{ppm, signed, unsigned};
use crate::cli::clocks::{CorrectArgs, RecordedAt};
use crate::error::{Failure, Result};
use crate::load::on_interrupt;
use crate::terminal::show;

/// Writes the corrected copy.
///
/// # Errors
/// When stamps lie outside the estimate, or something cannot be read or written.
pub fn run(args: &CorrectArgs) -> Result<i32> {
    let failure = Failure::clocks;
    let estimate = Estimate::read(&args.by).map_err(failure)?;
    let out = args.out.clone();
    let (existed, free) = (out.is_dir(), std::fs::read_dir(&out).map_or(true, |mut entries| entries.next().is_none()));
    on_interrupt(move || {
        // What was there before belongs to somebody else, and nothing has been written then.
        if free {
            take_back(&out, existed);
        }
        Some(format!("no part of the copy remains in {}", out.display()))
    })?;
    let recorded_at = args.recorded_at.map(|host| match host {
        RecordedAt::Local => HostSide::Local,
        RecordedAt::Remote => HostSide::Remote,
    });
    let request = Request {
        original: &args.run,
        estimate: &estimate,
        recorded_at,
        extrapolate: args.extrapolate,
        out: &args.out,
    };
    let correction = correct(&request).map_err(failure)?;
    if args.json {
        show!("{}\n", serde_json::to_string_pretty(&correction).expect("numbers and words make JSON"));
    } else {
        text(&correction, args);
    }
    Ok(0)
}

/// Removes a part of a copy, which may still be growing for a moment.
fn take_back(out: &Path, existed: bool) {
    for _ in 0..10 {
        let _ = std::fs::remove_dir_all(out);
        std::thread::sleep(Duration::from_millis(5));
        if !out.exists() {
            break;
        }
    }
    if existed {
        let _ = std::fs::create_dir(out);
    }
}

fn text(correction: &Correction, args: &CorrectArgs) {
    let estimate = &correction.estimate;
    let (from, to) = match correction.recorded_at {
        HostSide::Local => (&estimate.local.name, &estimate.remote.name),
        HostSide::Remote => (&estimate.remote.name, &estimate.local.name),
    };
    show!("from the clock of {from} to that of {to}\n");
    show!("added       {} ± {}\n", signed(correction.offset_ns), unsigned(correction.bound_ns));
    show!("drift       {} ppm\n", ppm(correction.drift_ppm));
    for (name, stamps) in &correction.captures {
        show!("moved       {name}: {} stamps\n", stamps.count);
    }
    if correction.extrapolated {
        show!(
            "note        some timestamps are outside the period of the estimate; the bound assumes a constant drift\n"
        );
    }
    show!("written to  {}\n", args.out.display());
}
