// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Estimates of a path from the packets of a recording. Nothing here reads a clock or a socket.

pub mod capacity;
pub mod delay;
pub mod loss;
pub mod order;
mod quantiles;
pub mod queue;
pub mod share;
pub mod trains;

use serde::Serialize;

use crate::records::Packets;
use capacity::{Capacity, Course};
use delay::Delay;
use loss::Loss;
use order::{Order, Reordering};
use queue::{Backlog, Queue};
use share::Share;
use trains::Train;

/// Packets of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Material<'a> {
    /// Those of the saturating load.
    pub saturating: Option<&'a Packets>,
    /// Those of the light load.
    pub light: Option<&'a Packets>,
    /// Packets of each train of the light load; 0 or 1 where it has none.
    pub train: u32,
}

/// Load under which losses were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossesFrom {
    /// Under light load.
    Light,
    /// Under saturating load, of packets before which the queue was less than half as full as at its fullest.
    LowBacklog,
}

/// Estimates of one direction. What was not measured is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimates {
    /// Capacity.
    pub capacity: Option<Capacity>,
    /// Delay of the idle path.
    pub delay: Option<Delay>,
    /// Losses that are not drops of a full queue.
    pub loss: Option<Loss>,
    /// Load under which they were counted.
    pub loss_from: Option<LossesFrom>,
    /// Reordering, under the load with the smallest distance between packets.
    pub reordering: Option<Reordering>,
    /// Share of packets that arrived more than once among those that arrived.
    pub duplicates: Option<Share>,
    /// Queue.
    pub queue: Option<Queue>,
    /// Trains of the light load, where it has some.
    #[serde(skip)]
    pub trains: Option<Vec<Train>>,
}

/// Estimates one direction: `offset_ns` is the receiver's clock less the sender's, at a time of the sender.
pub fn direction(material: Material<'_>, offset_ns: impl Fn(u64) -> i128) -> Estimates {
    let saturated = material.saturating.map(|packets| (packets, Order::of(packets)));
    // What follows in a train has waited for those before it.
    let first = material.light.map(|packets| trains::firsts(packets, material.train));
    let idle = first.as_ref().map(|packets| (packets, Order::of(packets)));
    let light_loss = material.light.and_then(|packets| loss::loss(&lost(packets)));
    let mut lost_share = light_loss.as_ref().map_or(0.0, |loss| loss.share.share);
    let measure = |lost_share: f64| {
        saturated.as_ref().and_then(|(packets, order)| capacity::capacity(order, packets.bits(), lost_share))
    };
    let mut capacity = measure(lost_share);
    let transmission_ns = |packets: &Packets| match &capacity {
        Some(Capacity { course: Course::Constant, rate_bits_per_second, .. }) => {
            packets.bits() * 1e9 / rate_bits_per_second
        }
        _ => 0.0,
    };
    let backlog = saturated.as_ref().map(|(packets, order)| {
        let least = capacity::least_transit_ns(order).unwrap_or(0);
        Backlog::of(packets, order, least - transmission_ns(packets).round() as i128, lost_share)
    });
    let varying = capacity.as_ref().is_some_and(|capacity| capacity.course == Course::Varying);
    let delay = match (&idle, &saturated) {
        (Some((packets, order)), _) => delay::delay(order, &offset_ns, transmission_ns(packets), varying),
        // Most packets have waited: only the least counts.
        (None, Some((packets, order))) => delay::delay(order, &offset_ns, transmission_ns(packets), true),
        (None, None) => None,
    };
    let (loss, loss_from) = match (light_loss, &backlog) {
        (Some(loss), _) => (Some(loss), Some(LossesFrom::Light)),
        (None, Some(backlog)) => {
            let loss = loss::loss(&backlog.losses_below_half());
            lost_share = loss.as_ref().map_or(0.0, |loss| loss.share.share);
            capacity = measure(lost_share);
            let from = loss.as_ref().map(|_| LossesFrom::LowBacklog);
            (loss, from)
        }
        (None, None) => (None, None),
    };
    let queue = saturated
        .as_ref()
        .zip(backlog)
        .filter(|_| capacity.is_some())
        .and_then(|((_, order), backlog)| backlog.queue(order, lost_share));
    let closest = saturated.as_ref().or(idle.as_ref());
    Estimates {
        capacity,
        delay,
        loss,
        loss_from,
        reordering: closest.and_then(|(_, order)| order::reordering(order)),
        duplicates: closest.and_then(|(packets, _)| duplicates(packets)),
        queue,
        trains: material
            .light
            .filter(|_| material.train > 1)
            .and_then(|packets| trains::trains(packets, material.train, &offset_ns)),
    }
}

fn lost(packets: &Packets) -> Vec<bool> {
    packets.all.iter().map(|packet| packet.arrived_ns.is_none()).collect()
}

fn duplicates(packets: &Packets) -> Option<Share> {
    let arrived = packets.all.iter().filter(|packet| packet.arrivals > 0).count();
    let twice = packets.all.iter().filter(|packet| packet.arrivals > 1).count();
    share::share(twice as u64, arrived as u64, 0.0)
}
