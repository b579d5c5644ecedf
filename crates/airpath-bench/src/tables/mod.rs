// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One file for each table.

mod bearers;
mod cells;
mod codes;
mod delay;
mod departures;
pub mod disturbances;
mod driver;
mod frames;
mod goodput;
mod lateness;
mod many_links;
mod models;
mod processor;
mod rates;
mod small_packets;
mod start_up;
mod stops;
mod stream;
mod warp;

use airpath_live::ports::{PortKind, tun_usable};
use airpath_log::Level;

use crate::report::Table;
use crate::testbed::Failure;

/// Options of all tables.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Shorter measurements, for a first look.
    pub quick: bool,
}

impl Options {
    /// `usual` seconds, or a quarter of that for a quick look.
    fn seconds(&self, usual: f64) -> f64 {
        if self.quick { usual / 4.0 } else { usual }
    }
}

/// The ports that can be had here.
fn ports() -> Vec<PortKind> {
    if tun_usable() { vec![PortKind::Packet, PortKind::Tun] } else { vec![PortKind::Packet] }
}

/// Every port with the levels at which figures are printed.
fn ports_and_levels() -> Vec<(PortKind, Level)> {
    let levels = [Level::Counters, Level::Packets];
    ports().into_iter().flat_map(|port| levels.map(|level| (port, level))).collect()
}

/// A function that measures.
pub type Measure = fn(&Options) -> Result<Table, Failure>;

/// The tables by name, in the order in which they are measured.
pub const ALL: [(&str, Measure); 19] = [
    ("stops", stops::measure),
    ("delay", delay::measure),
    ("departures", departures::measure),
    ("lateness", lateness::measure),
    ("stream", stream::measure),
    ("rates", rates::measure),
    ("small-packets", small_packets::measure),
    ("processor", processor::measure),
    ("disturbances", disturbances::measure),
    ("many-links", many_links::measure),
    ("start-up", start_up::measure),
    ("goodput", goodput::measure),
    ("frames", frames::measure),
    ("driver", driver::measure),
    ("models", models::measure),
    ("cells", cells::measure),
    ("bearers", bearers::measure),
    ("codes", codes::measure),
    ("warp", warp::measure),
];
