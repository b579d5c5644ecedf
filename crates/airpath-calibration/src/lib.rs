// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The settings by which the live loop meets a bound at the least cost on this machine: found by trying,
//! stored for the machine and the rights of the user, read when a run begins.
//!
//! Source: Kojo et al. 2001, section 6, where the user adjusts the margin in preliminary runs.

mod better;
mod disturbance;
mod host;
mod probe;
mod search;
pub mod store;
mod ticker;

use airpath_live::engine_loop::{AutoSpin, SpinPolicy, WHOLE_CORE_PPM};
use airpath_live::tuning::{Affinity, Policy, Tuning};
use serde::{Deserialize, Serialize};

pub use better::keeps;
pub use disturbance::{Watch, load_before};
pub use host::CalibratedHost;
pub use probe::{Probed, Prober, Setting};
pub use search::{Candidate, Found, PACKETS_PER_SECOND, Wish, search};

/// The version of the format of a stored calibration.
pub const FORMAT_VERSION: u32 = 1;

/// Kind of user for whom a calibration holds: other users may be allowed other policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    /// Root.
    Root,
    /// An ordinary user.
    User,
}

impl Rights {
    /// Returns the rights of this process, as long as it has entered no user namespace.
    pub fn current() -> Rights {
        if nix::unistd::geteuid().is_root() { Rights::Root } else { Rights::User }
    }

    /// The word in the name of the file.
    pub fn name(self) -> &'static str {
        match self {
            Rights::Root => "root",
            Rights::User => "user",
        }
    }
}

/// Lateness of packets during a calibration, and its cost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lateness {
    /// Number of packets that left.
    pub packets: u64,
    /// Median lateness, in ns.
    pub p50_ns: u64,
    /// 99th percentile of the lateness, in ns.
    pub p99_ns: u64,
    /// 99.9th percentile of the lateness, in ns.
    pub p999_ns: u64,
    /// Greatest lateness, in ns.
    pub max_ns: u64,
    /// The share of a core that 100 packets a second take, in percent.
    pub core_percent: f64,
    /// The part of it spent watching the clock, in percent of a core.
    pub watching_percent: f64,
}

/// A calibration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The version of Airpath that measured.
    pub airpath_version: String,
    /// Time of the measurement, in seconds since 1970.
    pub measured_unix_s: u64,
    /// The machine on which it was measured.
    pub host: CalibratedHost,
    /// The rights with which it was measured.
    pub rights: Rights,
    /// The bound that was wanted, in ns: 99 in 100 packets are to leave no later.
    pub bound_ns: u64,
    /// The share of a core that watching the clock may take, in millionths.
    pub budget_ppm: u64,
    /// The policy of the loop's thread: other, fifo:PRIORITY or rr:PRIORITY.
    pub policy: String,
    /// The processor to which it is tied, if it is.
    pub processor: Option<usize>,
    /// The margin with which a run begins, in ns.
    pub margin_ns: u64,
    /// Lateness and cost measured with these settings.
    pub measured: Lateness,
    /// Description of the disturbances of the measurement, if it was stored all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}

/// No margin that is found is as long: it would be watching the clock all the time.
const MOST_MARGIN_NS: u64 = 1_000_000_000;

impl Calibration {
    /// Returns an error if the stored values make no sense.
    ///
    /// # Errors
    /// A description of the value that does not.
    pub fn check(&self) -> Result<(), String> {
        read_policy(&self.policy)?;
        if self.budget_ppm > WHOLE_CORE_PPM {
            return Err(format!("budget_ppm is {}, which is more than a core", self.budget_ppm));
        }
        if self.margin_ns > MOST_MARGIN_NS {
            return Err(format!("margin_ns is {}, which is more than {MOST_MARGIN_NS}", self.margin_ns));
        }
        if self.bound_ns == 0 {
            return Err("bound_ns is 0, which nothing meets".into());
        }
        Ok(())
    }

    /// Returns the settings of the kernel and the loop according to this calibration. `spin` replaces the
    /// calibrated spin policy; an `auto` begins with the margin that was found.
    pub fn tuning(&self, spin: Option<SpinPolicy>) -> Tuning {
        let spin = match spin {
            None => SpinPolicy::Auto(AutoSpin {
                budget_ppm: self.budget_ppm,
                bound_ns: self.bound_ns,
                start_ns: self.margin_ns,
            }),
            Some(SpinPolicy::Auto(auto)) => SpinPolicy::Auto(AutoSpin { start_ns: self.margin_ns, ..auto }),
            Some(other) => other,
        };
        let allowed = airpath_live::scheduling::allowed_processors().unwrap_or_default();
        // A run that is kept to other processors does not fail for that.
        let affinity = self.processor.filter(|processor| allowed.contains(processor));
        Tuning {
            policy: read_policy(&self.policy).unwrap_or_default(),
            affinity: affinity.map_or(Affinity::Any, Affinity::Processor),
            ..Tuning::usual(spin)
        }
    }
}

/// A policy as it is stored: with its priority.
fn read_policy(text: &str) -> Result<Policy, String> {
    let policy = text.parse::<Policy>().ok().filter(|policy| policy.to_string() == text);
    policy.ok_or_else(|| format!("the policy `{text}` is none of other, fifo:PRIORITY and rr:PRIORITY, from 1 to 99"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A calibration of this machine.
    pub fn calibration() -> Calibration {
        Calibration {
            format_version: FORMAT_VERSION,
            airpath_version: "0".into(),
            measured_unix_s: 1_000,
            host: CalibratedHost::detect(),
            rights: Rights::Root,
            bound_ns: 30_000,
            budget_ppm: 20_000,
            policy: "fifo:10".into(),
            processor: None,
            margin_ns: 44_000,
            measured: Lateness {
                packets: 9,
                p50_ns: 1,
                p99_ns: 2,
                p999_ns: 3,
                max_ns: 4,
                core_percent: 0.5,
                watching_percent: 0.25,
            },
            disturbed: None,
        }
    }

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in [Policy::Other, Policy::Fifo(10), Policy::RoundRobin(99)] {
            assert_eq!(read_policy(&policy.to_string()), Ok(policy));
        }
        for wrong in ["", "fifo", "fifo:0", "rr:100", "other:1", "idle"] {
            assert!(read_policy(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_asked_for_goes_before_what_is_stored() {
        let stored = calibration();
        let auto = AutoSpin { budget_ppm: 20_000, bound_ns: 30_000, start_ns: 44_000 };
        assert_eq!(stored.tuning(None).spin, SpinPolicy::Auto(auto));
        assert_eq!(stored.tuning(None).policy, Policy::Fifo(10));
        let asked = "auto:5%".parse().unwrap();
        let SpinPolicy::Auto(auto) = stored.tuning(Some(asked)).spin else { panic!("it is auto") };
        assert_eq!((auto.budget_ppm, auto.bound_ns, auto.start_ns), (50_000, 20_000, 44_000));
        assert_eq!(stored.tuning(Some(SpinPolicy::Off)).spin, SpinPolicy::Off);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(calibration().check(), Ok(()));
        for (wrong, told) in [
            (Calibration { margin_ns: MOST_MARGIN_NS + 1, ..calibration() }, "margin_ns is 1000000001"),
            (Calibration { bound_ns: 0, ..calibration() }, "bound_ns is 0"),
            (Calibration { budget_ppm: WHOLE_CORE_PPM + 1, ..calibration() }, "more than a core"),
        ] {
            assert!(wrong.check().unwrap_err().contains(told), "{wrong:?}");
        }
    }

    #[test]
    fn a_processor_that_may_not_be_used_ties_nobody() {
        let stored = Calibration { processor: Some(100_000), ..calibration() };
        assert_eq!(stored.tuning(None).affinity, Affinity::Any);
    }
}
