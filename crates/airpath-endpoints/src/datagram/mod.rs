// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sources of datagrams over UDP and UDP-Lite, and their receiver.
//!
//! A sender follows its own timetable and hears nothing of the receiver; the receiver takes what a
//! kernel would take, and counts. Packets have an IPv4 header without options and a payload of random bits;
//! all packets of a flow are the same, so that checksums decide alike whether bytes are carried or not.

mod pace;
mod payload;
mod receiver;
mod saturate;
mod sender;

use airpath_core::{Carry, Rate, Span};
use airpath_workload::kinds::{Cbr, OnOff, Poisson, Saturate};

use crate::error::EndpointError;
use crate::ip::Protection;
use crate::{Context, Ends};
use pace::{Gap, Pace, Periods};
use receiver::Receiver;
use saturate::Saturating;
use sender::{Limits, Sender, Stream};

pub(crate) use payload::fill;
pub(crate) use receiver::bytes_of;
pub(crate) use sender::datagram;

pub(crate) fn cbr(cbr: &Cbr, context: &Context) -> Result<Ends, EndpointError> {
    let protection = Protection::new(cbr.protocol, cbr.coverage.map(|bytes| bytes.0));
    let stream = Stream::new(context, cbr.from, Some(cbr.size.0), protection)?;
    let limits = Limits::new(cbr.duration, cbr.packets, cbr.bytes);
    Ok(paced(stream, Pace::steady(gap(cbr.rate, cbr.interval)), limits, context))
}

pub(crate) fn poisson(poisson: &Poisson, context: &Context) -> Result<Ends, EndpointError> {
    let protection = Protection::new(poisson.protocol, poisson.coverage.map(|bytes| bytes.0));
    let stream = Stream::new(context, poisson.from, Some(poisson.size.0), protection)?;
    let mean_ns = match (poisson.rate, poisson.interval) {
        (Some(rate), _) => stream.size() as f64 * 8e9 / rate.bits_per_second() as f64,
        (None, interval) => interval.unwrap_or(Span::ZERO).nanos() as f64,
    };
    let pace = Pace::poisson(mean_ns, context.key(poisson.from, "poisson arrivals"));
    Ok(paced(stream, pace, Limits::new(poisson.duration, poisson.packets, poisson.bytes), context))
}

pub(crate) fn on_off(on_off: &OnOff, context: &Context) -> Result<Ends, EndpointError> {
    let protection = Protection::new(on_off.protocol, on_off.coverage.map(|bytes| bytes.0));
    let stream = Stream::new(context, on_off.from, Some(on_off.size.0), protection)?;
    let periods = Periods::new(on_off.on, on_off.off, context.key(on_off.from, "on and off periods"));
    let pace = Pace::on_off(gap(on_off.rate, on_off.interval), periods);
    Ok(paced(stream, pace, Limits::new(on_off.duration, on_off.packets, on_off.bytes), context))
}

pub(crate) fn saturate(saturate: &Saturate, context: &Context) -> Result<Ends, EndpointError> {
    let protection = Protection::new(saturate.protocol, saturate.coverage.map(|bytes| bytes.0));
    let stream = Stream::new(context, saturate.from, saturate.size.map(|bytes| bytes.0), protection)?;
    let limits = Limits::new(saturate.duration, saturate.packets, saturate.bytes);
    let receiver = Receiver::new(&stream, context);
    let sender = Saturating::new(stream, limits, saturate.window.0, context);
    Ok(Context::place(saturate.from, Box::new(sender), Box::new(receiver)))
}

fn gap(rate: Option<Rate>, interval: Option<Span>) -> Gap {
    match (rate, interval) {
        (Some(rate), _) => Gap::Rate(rate, Carry::NONE),
        (None, interval) => Gap::Interval(interval.unwrap_or(Span::from_secs(1))),
    }
}

fn paced(stream: Stream, pace: Pace, limits: Limits, context: &Context) -> Ends {
    let from = stream.from();
    let receiver = Receiver::new(&stream, context);
    Context::place(from, Box::new(Sender::new(stream, pace, limits, context)), Box::new(receiver))
}
