// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Background load: virtual packets that other users of the network would send. They queue, delay and
//! drop like real ones, and never reach an endpoint.
//!
//! Source: Kojo et al. 2001, section 5.1 and Figure 4 (background load).
//!
//! A generator is a sequence of packets that depends on nothing but its parameters and its draws, so
//! that it does not matter when it is asked for the next one. `Source` puts a name, a hop and a
//! direction to it; the path has all sources in its `Loads`.

mod background;
pub mod cbr;
mod demand;
pub mod on_off;
pub mod poisson;
mod size;
mod source;
pub mod trace;
pub mod users;

use airpath_core::Span;

use crate::registry::registry;

pub use background::BackgroundConfig;
pub use demand::{MOST_PACKETS_PER_SECOND, too_much};
pub(crate) use source::Loads;

/// The shortest time between two packets or users of a generator: one that drew nothing but zeros
/// would send for ever at one instant, and more packets than ten millions a second would keep any
/// machine busy with nothing else.
const LEAST_INTERVAL: Span = Span::from_nanos(100);

/// A packet of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time since the load began.
    pub after: Span,
    /// Its IP length in bytes.
    pub bytes: u32,
    /// The number of the user that sends it, or of the packet where there are no users; flows are told
    /// apart by it.
    pub sender: u64,
}

/// A generator of packets.
pub trait Generator {
    /// The next packet, no earlier than the one before; none if there are no more.
    fn next_packet(&mut self) -> Option<Packet>;
}

registry! {
    /// Model of a background load: packet sizes and times.
    config LoadConfig,
    /// A generator of any registered kind.
    model Load,
    dispatch dispatch_load, dispatch_load_config,
    built from airpath_core::DrawKey,
    reconfigured no,
    /// Packets at a constant rate.
    Cbr = cbr::{CbrConfig, Cbr},
    /// Packets as a Poisson process.
    Poisson = poisson::{PoissonConfig, Poisson},
    /// A constant rate during on periods, silence in between.
    /// Source: Willinger et al. 1997.
    OnOff = on_off::{OnOffConfig, OnOff},
    /// Users who arrive, send an amount of data and leave.
    Users = users::{UsersConfig, Users},
    /// Packets listed in a file.
    Trace = trace::{TraceConfig, Trace},
}

impl Generator for Load {
    fn next_packet(&mut self) -> Option<Packet> {
        dispatch_load!(self, load => load.next_packet())
    }
}
