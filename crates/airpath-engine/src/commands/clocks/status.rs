// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath timing sync --status`.

use airpath_clocks::status::{ClockStatus, KernelClock, status};

use super::{ppm, signed, unsigned};
use crate::terminal::show;

/// Prints what this host knows of its own clock.
pub fn run(json: bool) -> i32 {
    let status = status();
    if json {
        show!("{}\n", serde_json::to_string_pretty(&status).expect("numbers and words make JSON"));
    } else {
        text(&status);
    }
    0
}

fn text(status: &ClockStatus) {
    show!("host             {}\n", status.host);
    show!("clock source     {}\n", status.clock_source.as_deref().unwrap_or("unknown"));
    match (&status.kernel, &status.kernel_unavailable) {
        (Some(kernel), _) => kernel_text(kernel),
        (None, why) => show!("kernel           clock state unavailable: {}\n", why.as_deref().unwrap_or("unknown")),
    }
    match &status.daemons[..] {
        [] => show!("adjusted by      no time daemon detected\n"),
        daemons => {
            for daemon in daemons {
                show!("adjusted by      {} ({})\n", daemon.name, daemon.evidence);
            }
        }
    }
    if status.hardware_clocks.is_empty() {
        show!("hardware clocks  none\n");
    }
    for clock in &status.hardware_clocks {
        let state = match (clock.offset_ns, clock.bound_ns, &clock.unavailable) {
            (Some(offset), Some(bound), _) => format!("{} ± {} to CLOCK_REALTIME", signed(offset), unsigned(bound)),
            (.., why) => format!("cannot be read: {}", why.as_deref().unwrap_or("unknown")),
        };
        show!("hardware clock   {} ({}): {state}\n", clock.device, clock.name);
    }
}

fn kernel_text(kernel: &KernelClock) {
    show!("synchronised     {}\n", if kernel.synchronised { "yes" } else { "no" });
    show!("frequency        {} ppm corrected\n", ppm(kernel.frequency_ppm));
    show!("still to slew    {}\n", signed(kernel.offset_ns));
    let microseconds = |value: i64| unsigned(value.unsigned_abs().saturating_mul(1_000));
    show!("estimated error  {}\n", microseconds(kernel.estimated_error_us));
    show!("maximum error    {}\n", microseconds(kernel.maximum_error_us));
    show!(
        "TAI less UTC     {}\n",
        match kernel.tai_offset_s {
            0 => "unknown".to_owned(),
            seconds => format!("{seconds} s"),
        }
    );
    show!("flags            {}\n", kernel.flags.join(" "));
}
