// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The models of a link, one file each, in folders by role:
//!
//! - [`queueing`]: the input queue of a hop, drop policies, active queue management;
//! - [`entity`]: the link entities at both ends of a hop (framing, buffers, recovery);
//! - [`medium`]: when, whose turn, and how many bits;
//! - [`channel`]: transmission errors and their effects;
//! - [`impairment`]: reordering and duplication;
//! - [`load`]: background load;
//! - [`fading`]: the radio channel of a station, its signal-to-noise ratio by resource and slot;
//! - [`schedule`]: the schedulers of a cell, which share the resources of a slot among its bearers;
//! - [`serve`]: packet schedulers, which choose whom a medium serves next;
//! - [`adaptation`]: the modes of a radio link, their errors, and the choice between them;
//! - [`random`]: the distributions from which durations and sizes are drawn;
//! - [`mod@file`]: traces and tables that parameters name;
//! - [`blackout`] and [`states`]: when a link is down, and when its parameters change;
//! - [`air`]: the words in which media and link entities speak;
//! - [`hop`], [`path`] and [`cell`]: how the roles are joined into a [`machine`].
//!
//! A new model is one file, its `mod` line, and one line in its folder's `registry!`.

mod agenda;
mod registry;

pub mod adaptation;
pub mod air;
mod bearers;
pub mod blackout;
pub mod cell;
pub mod channel;
mod common_queue;
pub mod config;
pub mod entity;
mod examples;
pub mod fading;
pub mod file;
pub mod filter;
pub mod filter_list;
pub mod flow_control;
pub mod hop;
pub mod impairment;
pub mod line_header;
mod link;
pub mod load;
pub mod machine;
pub mod medium;
pub mod path;
pub mod problem;
pub mod quality;
pub mod queueing;
pub mod random;
pub mod schedule;
pub mod sdus;
pub mod serve;
pub mod stage;
pub mod states;
mod windows;

pub use cell::{Cell, CellConfig};
pub use config::{BearerConfig, HopConfig, LinkConfig, PathConfig, Setting, StateConfig};
pub use entity::{Fragmentation, LastFrame};
pub use machine::{MachineConfig, MachineUser};
pub use path::Path;
pub use problem::Problem;
