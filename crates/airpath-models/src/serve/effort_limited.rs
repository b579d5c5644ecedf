// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Effort-limited fairness (ELF): what arrives in proportion to weights, or as reserved, within a limit of the effort.
//!
//! Source: Eckhardt and Steenkiste 2002, sections 6 and 7, and their "Effort-limited fair (ELF) scheduling for wireless
//! networks" (IEEE INFOCOM 2000). A flow i with the error rate E_i claims A_i = min(W_i / (1 − E_i), P_i W_i); its
//! power factor P_i limits what errors may make of its weight (equation 1). There are two levels:
//!
//! - *Reserved flows* have W_i = B_i / B, the part of the medium without errors that they reserve, and get A_i of its
//!   time.
//! - *Best-effort flows* get the rest, A_BE = 1 − Σ A_i, and share it by their claims.
//!
//! The claims are accounts of outcome and effort (`claims.rs`), which lead to A_i exactly, in the long run, without an
//! estimate of E_i. A reserved flow is served when the medium's time has passed its tag; the least tag goes first.
//! Best effort has all that reserved flows do not need, or may not use. If that has nothing to send, reserved flows are
//! served early, the one that is due first; this is not charged, but for a lag that it repays.
//!
//! A lag is repaid by whoever shares with the flow: by best effort as a whole where it is that of a reserved flow, and
//! by the other best-effort flows where it is that of one of them. The power factor limits repayment, too: a flow with
//! a lag gets up to P_i W_i.
//!
//! Admission: Σ W_i ≤ 1, and Σ P_i W_i ≤ 1 unless `overcommit` says that reservations may fail when errors are many:
//! then the claims of the reserved flows share the medium as in section 6.2, each with A_i / Σ A_j, and best effort
//! starves. With `critical_error_rate` E^c, P_i is 1 / (1 − E^c), so that 1 − E^c of the medium may be reserved
//! (section 6.5). A table of classes by reserved rate may say the power factor instead.

use airpath_core::{Probability, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{Claim, Limits, Reservations, Sharing};
use super::flows::{ElfFlow, kilobits, overcommitted, part, power_factor_problem, weight_problems};
use super::unit::{Meter, ServiceUnit};
use super::{Beginning, Nominal, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, Window, example_of_bearers};

/// Parameters of effort-limited fairness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ElfConfig {
    /// Unit in which exchanges are charged.
    pub unit: ServiceUnit,
    /// Reserved rates, or weights, and power factors of bearers. Others are best effort with a weight of 1.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub flows: PerBearer<ElfFlow>,
    /// Power factor of best-effort flows that have none of their own.
    pub power_factor: f64,
    /// Error rate up to which reservations hold: it gives reserved flows without a power factor or class of their own
    /// the factor 1 / (1 − E).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_error_rate: Option<Probability>,
    /// Power factors of reserved flows by rate: that of the first class whose rate is not exceeded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub power_classes: Vec<PowerClass>,
    /// True if the greatest effort of all reserved flows together may exceed the medium.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub overcommit: bool,
    /// Limit of a lag: the medium's time in which the flow would get as much without errors. In slots of one exchange,
    /// or as a time.
    pub lag_limit: Window,
    /// Limit of the effort that a flow may save up: the medium's time in which it may make as much.
    pub effort_window: Window,
}

/// Power factor of reserved flows up to a rate: `{ up_to = "64 kbit/s", power_factor = 3 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerClass {
    /// Greatest reserved rate of the class.
    pub up_to: Rate,
    /// Power factor of its flows.
    pub power_factor: f64,
}

impl Default for ElfConfig {
    fn default() -> ElfConfig {
        ElfConfig {
            unit: ServiceUnit::Packet,
            flows: PerBearer::default(),
            power_factor: 1.2,
            critical_error_rate: None,
            power_classes: Vec::new(),
            overcommit: false,
            lag_limit: Window::Slots(1000),
            effort_window: Window::Slots(20),
        }
    }
}

impl ElfConfig {
    /// Power factor of a reserved flow.
    fn power_factor_of(&self, flow: &ElfFlow, rate: Rate) -> f64 {
        let class = self.power_classes.iter().find(|class| rate <= class.up_to).map(|class| class.power_factor);
        let critical = self.critical_error_rate.map(|rate| 1.0 / rate.complement().get());
        flow.power_factor.or(class).or(critical).unwrap_or(1.0)
    }

    /// Rates and power factors of the reserved flows.
    fn reserved(&self) -> impl Iterator<Item = (Rate, f64)> {
        let flows = self.flows.0.values();
        flows.filter_map(|flow| flow.rate.map(|rate| (rate, self.power_factor_of(flow, rate))))
    }
}

/// Number of exchanges in a window.
fn exchanges(window: Window, exchange: Span) -> f64 {
    match window {
        Window::Slots(slots) => slots as f64,
        Window::Time(time) => time.nanos() as f64 / exchange.nanos() as f64,
    }
}

impl OnMedium for ElfConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.flows.names("flows")
    }

    fn problems_on(&self, nominal: &Nominal) -> Vec<Problem> {
        if let Some(problem) = overcommitted(self.reserved().map(|(rate, _)| rate), nominal) {
            return vec![problem];
        }
        let greatest: f64 = self.reserved().map(|(rate, factor)| part(rate, nominal) * factor).sum();
        if greatest <= 1.0 + 1e-9 || self.overcommit {
            return Vec::new();
        }
        let percent = libm::round(greatest * 1000.0) / 10.0;
        let capacity = nominal.capacity();
        let message = match self.critical_error_rate {
            Some(rate) if self.power_classes.is_empty() => format!(
                "may need {percent} % of the medium at the critical error rate: at {rate} it carries {}, and no more \
                 may be reserved; reserve less, or write overcommit = true",
                kilobits(capacity * rate.complement().get())
            ),
            _ => format!(
                "may need {percent} % of the medium when errors are many, which is the sum of reserved rate times \
                 power factor over {}; lower rates or power factors, or write overcommit = true",
                kilobits(capacity)
            ),
        };
        vec![Problem::new("flows", message)]
    }
}

impl Configured<Beginning<'_>> for ElfConfig {
    type Model = Elf;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = weight_problems(&self.flows, |flow: ElfFlow| (flow.rate, flow.weight));
        problems.extend(
            self.flows.problems_of("flows", "power_factor", |flow| flow.power_factor.and_then(power_factor_problem)),
        );
        problems.extend(power_factor_problem(self.power_factor).map(|message| Problem::new("power_factor", message)));
        if self.critical_error_rate == Some(Probability::ONE) {
            let message = "is 1: nothing would ever arrive, and nothing could be reserved; write less";
            problems.push(Problem::new("critical_error_rate", message));
        }
        for (number, class) in self.power_classes.iter().enumerate() {
            let key = |key: &str| format!("power_classes.{number}.{key}");
            problems
                .extend(power_factor_problem(class.power_factor).map(|text| Problem::new(key("power_factor"), text)));
            if number > 0 && class.up_to <= self.power_classes[number - 1].up_to {
                let message = format!("is {}; classes are in the order of their rates, the lowest first", class.up_to);
                problems.push(Problem::new(key("up_to"), message));
            }
        }
        problems.extend(self.lag_limit.problems_of("lag_limit"));
        problems.extend(self.effort_window.problems_of("effort_window"));
        problems
    }

    fn build(&self, beginning: Beginning<'_>) -> Elf {
        let flows = self.flows.of(beginning.bearers, ElfFlow::default());
        let nominal = beginning.nominal;
        let limits = Limits {
            lag: exchanges(self.lag_limit, nominal.exchange),
            effort: exchanges(self.effort_window, nominal.exchange),
        };
        let is_reserved: Vec<bool> = flows.iter().map(|flow| flow.rate.is_some()).collect();
        let claims: Vec<Claim> = flows
            .iter()
            .map(|flow| match flow.rate {
                Some(rate) => Claim::new(part(rate, &nominal), self.power_factor_of(flow, rate)),
                None => Claim::new(flow.weight.unwrap_or(1.0), flow.power_factor.unwrap_or(self.power_factor)),
            })
            .collect();
        let is_shared = is_reserved.iter().map(|is_reserved| !is_reserved).collect();
        Elf {
            meter: Meter::new(self.unit, nominal),
            reserved: Reservations::new(claims.clone(), is_reserved, limits),
            shared: Sharing::new(claims, is_shared, limits),
            is_early: false,
        }
    }

    fn examples() -> Vec<ElfConfig> {
        let plain = ElfConfig::default();
        let rate = |text: &str| Some(text.parse().expect("an example is valid"));
        let reserved = |text| ElfFlow { rate: rate(text), ..ElfFlow::default() };
        let class = |text, power_factor| PowerClass { up_to: rate(text).expect("an example has a rate"), power_factor };
        vec![
            plain.clone(),
            ElfConfig {
                flows: example_of_bearers(&[
                    ElfFlow { power_factor: Some(2.2), ..reserved("350 kbit/s") },
                    ElfFlow { weight: Some(2.5), power_factor: Some(1.0), ..ElfFlow::default() },
                ]),
                ..plain.clone()
            },
            ElfConfig {
                unit: ServiceUnit::AirTime,
                flows: example_of_bearers(&[reserved("8 kbit/s"), reserved("100 kbit/s")]),
                power_classes: vec![class("64 kbit/s", 3.0), class("400 kbit/s", 1.5)],
                lag_limit: Window::Time(Span::from_millis(200)),
                effort_window: Window::Slots(1),
                ..plain.clone()
            },
            ElfConfig {
                flows: example_of_bearers(&[reserved("200 kbit/s"), reserved("300 kbit/s")]),
                critical_error_rate: Probability::new(0.5),
                overcommit: true,
                ..plain
            },
        ]
    }
}

/// Reserved flows, and best-effort flows behind them.
#[derive(Clone, Debug)]
pub struct Elf {
    meter: Meter,
    reserved: Reservations,
    shared: Sharing,
    /// True if the exchange that was chosen last is not due yet.
    is_early: bool,
}

impl PacketScheduler for Elf {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        self.reserved.update(waiting);
        let shared = self.shared.pick(waiting);
        let due = self.reserved.pick(waiting, |_| true);
        self.is_early = due.is_none() && shared.is_none();
        due.or(shared).or_else(|| self.reserved.pick_early(waiting)).unwrap_or(0)
    }

    fn outcome(&mut self, _: Time, bearer: u16, outcome: &Outcome) {
        let service = self.meter.of(outcome);
        self.reserved.pass(&service);
        if !self.reserved.is_in(bearer) {
            self.shared.charge(bearer, &service);
        } else if self.is_early {
            self.reserved.charge_early(bearer, &service);
        } else {
            self.reserved.charge(bearer, &service);
        }
    }
}
