// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! All tests of the crate, as one program.

mod adaptation;
mod aqm;
mod background;
mod bearers;
mod blackouts;
mod cell_reference;
mod cells;
mod changes;
mod channel_statistics;
mod classes;
mod common;
mod common_queue;
mod distributions;
mod entities;
mod environments;
mod error_traces;
mod exactness;
mod fading;
mod fast_path;
mod filters;
mod flow_control;
mod foresight;
mod hand_computed;
mod impairment;
mod laws;
mod least_transit;
mod ofdm;
mod poll;
mod queue_theory;
mod rates;
mod reference;
mod schedule;
mod serve;
mod states;
mod toys;
mod uplink_grants;
mod wander;
mod wifi;
mod wifi_edca;
mod wifi_hidden;
mod wifi_problems;
mod wifi_rates;
