// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Detection of other load during a calibration. A measurement made next to other work, or while the host of
//! a virtual machine takes its processors away, holds for that moment alone, and would make every later run
//! worse.

use std::time::Duration;

use airpath_live::processor_time::{ProcessorShares, ProcessorTime, load_hundredths};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Least share of all processors, in millionths, at which other programs disturb a calibration.
const MUCH_BUSY_PPM: u64 = 150_000;
/// Least share of processor time taken by the host, in millionths, that disturbs a calibration.
const MUCH_STOLEN_PPM: u64 = 10_000;
/// Least share of the time, in millionths, for which programs wait for a processor, that disturbs a
/// calibration.
const MUCH_WAITING_PPM: u64 = 250_000;

/// Observation of other load from some instant on.
#[derive(Debug)]
pub struct Watch {
    begun: ProcessorTime,
    own: Duration,
    processors: usize,
}

/// Processor time of this process.
fn own() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_SELF).ok().map(|usage| usage.user_time() + usage.system_time());
    Duration::from_micros(used.map_or(0, |used| used.num_microseconds().max(0) as u64))
}

impl Watch {
    /// Begins now, on a machine with so many processors.
    pub fn begin(processors: usize) -> Watch {
        Watch { begun: ProcessorTime::now(), own: own(), processors: processors.max(1) }
    }

    /// Returns a description of the disturbances since the beginning; none if there were none. `elapsed` has
    /// passed.
    pub fn disturbance(&self, elapsed: Duration) -> Option<String> {
        let shares = ProcessorTime::now().since(&self.begun);
        let whole_ns = elapsed.as_nanos() * self.processors as u128;
        let own_ppm = (own().saturating_sub(self.own).as_nanos() * 1_000_000).checked_div(whole_ns).unwrap_or(0);
        told(shares, own_ppm as u64, self.processors)
    }
}

/// Returns a description of the disturbances in `shares`, of which `own_ppm` are this process's own.
fn told(shares: ProcessorShares, own_ppm: u64, processors: usize) -> Option<String> {
    let percent = |ppm: u64| format!("{} %", (ppm + 5_000) / 10_000);
    let others_ppm = shares.busy_ppm.map(|ppm| ppm.saturating_sub(own_ppm)).filter(|ppm| *ppm >= MUCH_BUSY_PPM);
    let stolen_ppm = shares.stolen_ppm.filter(|ppm| *ppm >= MUCH_STOLEN_PPM);
    // On a single processor the calibration's own threads wait for each other.
    let waiting_ppm = shares.waiting_ppm.filter(|ppm| processors > 1 && *ppm >= MUCH_WAITING_PPM);
    let words: Vec<String> = [
        others_ppm.map(|ppm| format!("other programs use {} of the processors", percent(ppm))),
        stolen_ppm.map(|ppm| format!("the host of this virtual machine takes {} of its processor time", percent(ppm))),
        waiting_ppm.map(|ppm| format!("programs wait for a processor for {} of the time", percent(ppm))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Returns a description of the load average of the last minute, if it is high for so many processors.
pub fn load_before(processors: usize) -> Option<String> {
    busy_load(load_hundredths()?, processors)
}

fn busy_load(hundredths: u64, processors: usize) -> Option<String> {
    (hundredths >= 100 * processors.max(1) as u64).then(|| {
        let processors = if processors == 1 { "1 processor".into() } else { format!("{processors} processors") };
        format!("the load of the last minute is {}.{:02} on {processors}", hundredths / 100, hundredths % 100)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_is_named_with_its_number() {
        let quiet = ProcessorShares { stolen_ppm: Some(2_000), busy_ppm: Some(520_000), waiting_ppm: Some(20_000) };
        assert_eq!(told(quiet, 500_000, 2), None);
        assert_eq!(told(ProcessorShares::default(), 0, 2), None);
        let busy = told(quiet, 20_000, 2).unwrap();
        assert_eq!(busy, "other programs use 50 % of the processors");
        let all = ProcessorShares { stolen_ppm: Some(31_000), waiting_ppm: Some(400_000), ..quiet };
        let words = told(all, 500_000, 2).unwrap();
        assert!(words.contains("takes 3 % of its") && words.contains("for 40 % of the time"), "{words}");
        assert!(!told(all, 500_000, 1).unwrap().contains("wait"));
    }

    #[test]
    fn a_load_of_a_processor_each_is_much() {
        assert_eq!(busy_load(199, 2), None);
        assert_eq!(busy_load(205, 2).unwrap(), "the load of the last minute is 2.05 on 2 processors");
    }

    #[test]
    fn what_this_process_does_itself_is_no_disturbance_of_others() {
        let before = own();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        assert!(own() > before);
        assert!(Watch::begin(2).disturbance(Duration::from_millis(1)).is_none_or(|words| !words.is_empty()));
    }
}
