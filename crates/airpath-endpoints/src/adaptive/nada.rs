// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! NADA, a congestion control of real-time media (RFC 8698).
//!
//! The receiver condenses delay, losses and marks into one congestion signal and reports it ten
//! times a second; the sender computes its reference rate from that. Parameters are those of
//! RFC 8698, figure 3. Delays are in milliseconds as there, rates in bit/s.

use std::collections::VecDeque;

use airpath_core::{Span, Time};

use super::loss_intervals::LossIntervals;

/// Reference congestion level.
const XREF_MS: f64 = 10.0;
/// Scaling parameter of the gradual update.
const KAPPA: f64 = 0.5;
/// Scaling parameter of the gradual update.
const ETA: f64 = 2.0;
/// Upper bound of the round trip time in the gradual update.
const TAU_MS: f64 = 500.0;
/// Interval of feedback.
pub(super) const DELTA: Span = Span::from_millis(100);
/// Window of observation.
const LOGWIN: Span = Span::from_millis(500);
/// Queuing delay below which the rate may ramp up fast.
const QEPS_MS: f64 = 10.0;
/// Bound on the filtering delay.
const DFILT_MS: f64 = 120.0;
/// Upper bound of the rate increase of a fast step.
const GAMMA_MAX: f64 = 0.5;
/// Upper bound of the queuing delay that ramping up may cause.
const QBOUND_MS: f64 = 50.0;
/// Number of average loss intervals for which a loss counts as recent.
const MULTILOSS: f64 = 7.0;
/// Queuing delay beyond which the signal is warped, after losses.
const QTH_MS: f64 = 50.0;
/// Exponent of the warping.
const LAMBDA: f64 = 0.5;
/// Reference packet loss ratio.
const PLRREF: f64 = 0.01;
/// Reference packet marking ratio.
const PMRREF: f64 = 0.01;
/// Delay penalty of losses at the reference ratio.
const DLOSS_MS: f64 = 10.0;
/// Delay penalty of marks at the reference ratio.
const DMARK_MS: f64 = 2.0;
/// Greatest congestion signal. RFC 8698 has no such bound; the authors' implementation for ns-3 has. Without it
/// the rate overshoots when the penalty of many losses wears off.
const XMAX_MS: f64 = 500.0;
/// Smoothing of the ratios of loss and marks.
const ALPHA: f64 = 0.1;
/// Share of the shaping buffer that adds to the sending rate.
const BETA_S: f64 = 0.1;
/// Share of the shaping buffer that is taken from the encoder's rate.
const BETA_V: f64 = 0.1;
/// Number of samples of the minimum filter of the queuing delay (section 5.1.1).
const DELAY_TAPS: usize = 15;

/// Report of the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Signal {
    /// Aggregate congestion signal.
    pub congestion_ms: f64,
    /// Rate of the received packets over the window of observation.
    pub received_bits_per_second: f64,
    /// True if the window of observation has no losses and no queue.
    pub may_ramp_up: bool,
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub at: Time,
    /// Number of the packet in the order of sending.
    pub number: u64,
    /// Its one-way delay.
    pub delay: Span,
    pub bytes: u32,
    /// True if it is marked "congestion experienced".
    pub marked: bool,
}

/// The receiver's side (RFC 8698, sections 4.2 and 5.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Observer {
    /// Packets of the window of observation.
    window: VecDeque<Arrival>,
    /// Queuing delays of the latest packets, for the minimum filter.
    queuing_ms: VecDeque<f64>,
    least_delay: Option<Span>,
    losses: LossIntervals,
    loss_ratio: f64,
    mark_ratio: f64,
}

impl Observer {
    /// Takes a packet.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        let least = self.least_delay.map_or(arrival.delay, |least| least.min(arrival.delay));
        self.least_delay = Some(least);
        self.losses.arrive(arrival.number);
        self.window.push_back(arrival);
        self.queuing_ms.push_back(queuing_ms(arrival.delay, least));
        if self.queuing_ms.len() > DELAY_TAPS {
            self.queuing_ms.pop_front();
        }
    }

    /// The report at `now`; none without packets in the window of observation.
    pub(super) fn signal(&mut self, now: Time) -> Option<Signal> {
        while self.window.front().is_some_and(|first| now.since(first.at) >= LOGWIN) {
            self.window.pop_front();
        }
        let least = self.least_delay?;
        let numbers = || self.window.iter().map(|arrival| arrival.number);
        let span = numbers().max()? - numbers().min()? + 1;
        // Copies and late packets could make more of them than numbers.
        let come = (self.window.len() as u64).min(span);
        let lost = (span - come) as f64 / span as f64;
        let marked = self.window.iter().filter(|arrival| arrival.marked).count() as f64 / self.window.len() as f64;
        self.loss_ratio += ALPHA * (lost - self.loss_ratio);
        self.mark_ratio += ALPHA * (marked - self.mark_ratio);
        let bytes: u64 = self.window.iter().map(|arrival| u64::from(arrival.bytes)).sum();
        let queuing = self.queuing_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let square = |ratio: f64| ratio * ratio;
        let congestion_ms = self.warped(queuing)
            + DMARK_MS * square(self.mark_ratio / PMRREF)
            + DLOSS_MS * square(self.loss_ratio / PLRREF);
        let congestion_ms = congestion_ms.min(XMAX_MS);
        let has_queue = self.window.iter().any(|arrival| queuing_ms(arrival.delay, least) >= QEPS_MS);
        Some(Signal {
            congestion_ms,
            received_bits_per_second: bytes as f64 * 8.0 / LOGWIN.as_secs_f64(),
            may_ramp_up: lost == 0.0 && !has_queue,
        })
    }

    /// The queuing delay, warped where losses are recent, so that the flow holds its own against others that
    /// fill the queue (equation 1); in between over one average loss interval after that.
    fn warped(&self, queuing: f64) -> f64 {
        let Some((average, current)) = self.losses.intervals() else { return queuing };
        let warped = match queuing < QTH_MS {
            true => queuing,
            false => QTH_MS * libm::exp(-LAMBDA * (queuing - QTH_MS) / QTH_MS),
        };
        let share = ((current - MULTILOSS * average) / average).clamp(0.0, 1.0);
        share * queuing + (1.0 - share) * warped
    }
}

fn queuing_ms(delay: Span, least: Span) -> f64 {
    milliseconds(Span::from_nanos(delay.nanos().saturating_sub(least.nanos())))
}

fn milliseconds(span: Span) -> f64 {
    span.nanos() as f64 / 1e6
}

/// Bounds of the encoder's rate, in bit/s, and the weight of the flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub least: f64,
    pub greatest: f64,
    /// PRIO of RFC 8698.
    pub weight: f64,
}

/// The sender's side (RFC 8698, sections 4.3 and 5.2).
#[derive(Clone, Debug)]
pub(super) struct Controller {
    bounds: Bounds,
    reference: f64,
    last: Option<(Time, f64)>,
}

impl Controller {
    pub(super) fn new(bounds: Bounds, initial: f64) -> Controller {
        Controller { bounds, reference: initial.clamp(bounds.least, bounds.greatest), last: None }
    }

    /// The reference rate.
    #[cfg(test)]
    fn reference(&self) -> f64 {
        self.reference
    }

    /// Takes a report that came at `now`, with the round trip time that it tells.
    pub(super) fn update(&mut self, now: Time, signal: &Signal, round_trip: Span) {
        let (delta_ms, before_ms) = match self.last {
            Some((at, congestion_ms)) => (milliseconds(now.since(at)), congestion_ms),
            None => (milliseconds(DELTA), signal.congestion_ms),
        };
        self.last = Some((now, signal.congestion_ms));
        let Bounds { least, greatest, weight } = self.bounds;
        let rate = self.reference;
        let next = if signal.may_ramp_up {
            let reaction_ms = milliseconds(round_trip) + milliseconds(DELTA) + DFILT_MS;
            let gamma = GAMMA_MAX.min(QBOUND_MS / reaction_ms);
            rate.max((1.0 + gamma) * signal.received_bits_per_second)
        } else {
            let offset_ms = signal.congestion_ms - weight * XREF_MS * greatest / rate;
            let change_ms = signal.congestion_ms - before_ms;
            rate - KAPPA * (delta_ms / TAU_MS) * (offset_ms / TAU_MS) * rate - KAPPA * ETA * (change_ms / TAU_MS) * rate
        };
        self.reference = next.clamp(least, greatest);
    }

    /// Rate of the encoder and rate of sending, in bit/s, with so many bytes in the shaping buffer and so many
    /// frames a second (equations 9 and 10).
    pub(super) fn rates(&self, buffered_bytes: u64, frames_per_second: f64) -> (f64, f64) {
        let backlog = 8.0 * buffered_bytes as f64 * frames_per_second;
        let encoder = (self.reference - BETA_V * backlog).max(self.bounds.least);
        let sending = (self.reference + BETA_S * backlog).min(self.bounds.greatest.max(self.reference));
        (encoder, sending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { least: 150_000.0, greatest: 1_500_000.0, weight: 1.0 };

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    fn arrival(number: u64, delay_ms: u64) -> Arrival {
        let sent = at(number * 10);
        let delay = Span::from_millis(delay_ms);
        Arrival { at: sent + delay, number, delay, bytes: 1_250, marked: false }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{value} instead of {expected}");
    }

    #[test]
    fn without_queue_and_losses_the_signal_is_zero_and_the_rate_that_of_the_window() {
        let mut observer = Observer::default();
        (0..100).for_each(|number| observer.arrive(arrival(number, 50)));
        // At 1040 ms the window has what came after 540 ms: packets 50 to 99, 1,250 bytes each.
        let signal = observer.signal(at(1_040)).unwrap();
        near(signal.congestion_ms, 0.0);
        near(signal.received_bits_per_second, 50.0 * 10_000.0 / 0.5);
        assert!(signal.may_ramp_up);
    }

    #[test]
    fn the_queuing_delay_is_the_least_of_fifteen_samples() {
        let mut observer = Observer::default();
        observer.arrive(arrival(0, 50));
        (1..=14).for_each(|number| observer.arrive(arrival(number, 80)));
        near(observer.signal(at(230)).unwrap().congestion_ms, 0.0);
        observer.arrive(arrival(15, 90));
        let signal = observer.signal(at(240)).unwrap();
        near(signal.congestion_ms, 30.0);
        assert!(!signal.may_ramp_up);
    }

    #[test]
    fn a_loss_adds_a_penalty_and_warps_a_long_queue() {
        let mut observer = Observer::default();
        observer.arrive(arrival(0, 50));
        // Number 1 is missing; of 21 numbers 20 came, all but the first 150 ms above the least delay.
        (2..=20).for_each(|number| observer.arrive(arrival(number, 200)));
        let signal = observer.signal(at(400)).unwrap();
        let loss_ratio = 0.1 / 21.0;
        let warped = 50.0 * (-0.5_f64 * (150.0 - 50.0) / 50.0).exp();
        near(signal.congestion_ms, warped + 10.0 * (loss_ratio / 0.01) * (loss_ratio / 0.01));
        assert!(!signal.may_ramp_up);
    }

    #[test]
    fn marks_add_a_smaller_penalty() {
        let mut observer = Observer::default();
        (0..20).for_each(|number| {
            observer.arrive(Arrival { marked: number % 4 == 0, ..arrival(number, 50) });
        });
        near(observer.signal(at(240)).unwrap().congestion_ms, 2.0 * 2.5 * 2.5);
    }

    #[test]
    fn a_fast_step_is_bounded_by_the_queue_that_it_may_cause() {
        let signal = Signal { congestion_ms: 0.0, received_bits_per_second: 400_000.0, may_ramp_up: true };
        let mut controller = Controller::new(BOUNDS, 300_000.0);
        controller.update(at(100), &signal, Span::from_millis(100));
        // gamma = 50 / (100 + 100 + 120)
        near(controller.reference(), 400_000.0 * (1.0 + 50.0 / 320.0));
        // What is received less than before does not take the rate down.
        let less = Signal { received_bits_per_second: 100_000.0, ..signal };
        controller.update(at(200), &less, Span::from_millis(100));
        near(controller.reference(), 462_500.0);
    }

    #[test]
    fn a_gradual_step_follows_the_level_and_the_change_of_the_signal() {
        let mut controller = Controller::new(BOUNDS, 1_000_000.0);
        let signal = |congestion_ms| Signal { congestion_ms, received_bits_per_second: 1e6, may_ramp_up: false };
        controller.update(at(100), &signal(20.0), Span::from_millis(100));
        // Offset 20 - 10 × 1.5 = 5 ms, no change yet: 1 - 0.5 × 0.2 × 0.01.
        near(controller.reference(), 999_000.0);
        controller.update(at(250), &signal(40.0), Span::from_millis(100));
        let offset = 40.0 - 15_000_000.0 / 999_000.0;
        near(controller.reference(), 999_000.0 * (1.0 - 0.5 * 0.3 * offset / 500.0 - 0.5 * 2.0 * 20.0 / 500.0));
        (0..1_000).for_each(|step| controller.update(at(300 + step), &signal(5_000.0), Span::ZERO));
        near(controller.reference(), 150_000.0);
    }

    #[test]
    fn in_equilibrium_the_signal_is_the_reference_level_by_the_share_of_the_greatest_rate() {
        let mut controller = Controller::new(BOUNDS, 1_000_000.0);
        let signal = Signal { congestion_ms: 15.0, received_bits_per_second: 1e6, may_ramp_up: false };
        (1..50).for_each(|step| controller.update(at(100 * step), &signal, Span::from_millis(100)));
        near(controller.reference(), 1_000_000.0);
    }

    #[test]
    fn the_shaping_buffer_slows_the_encoder_and_hurries_the_sender() {
        let controller = Controller::new(BOUNDS, 1_000_000.0);
        assert_eq!(controller.rates(0, 30.0), (1_000_000.0, 1_000_000.0));
        assert_eq!(controller.rates(5_000, 30.0), (880_000.0, 1_120_000.0));
        assert_eq!(controller.rates(1_000_000, 30.0), (150_000.0, 1_500_000.0));
    }
}
