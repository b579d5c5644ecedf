// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Processor time of cells with adaptive OFDM: 25 resources, 1500 slots a second, all of them used, at users who each
//! have a fading channel and a prediction of it.

use airpath_core::{Cx, Direction, End, EventKind, Item, Machine, Origin, Outputs, Pdu, PortId, Seed, Span, Time};
use airpath_live::clock::thread_processor_ns;
use airpath_models::cell::{CellConfig, MediumOfCell, SharedMediumConfig, UserConfig};
use airpath_models::medium::MediumChoice;
use airpath_models::{Cell, HopConfig, LinkConfig, PathConfig};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Options;
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

const ROUNDS: usize = 3;
const SCHEDULERS: [&str; 3] = ["round_robin", "max_ci", "proportional_fair"];
const SLOTS_PER_SECOND: f64 = 1500.0;
const RESOURCES: f64 = 25.0;
/// Virtual seconds in a second of processor time: at least so many with 10 users, and with 100.
const OF_TEN: f64 = 50.0;
const OF_A_HUNDRED: f64 = 5.0;
/// Interval at which each user is offered packets, and bytes a second for all users together: more than the cell
/// carries at 16 dB.
const INTERVAL: Span = Span::from_millis(20);
const OFFERED: u64 = 6_000_000;
const PACKET: u32 = 1500;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["users", "scheduler", "times real time", "share of a core", "frames a slot", "ns a frame"];
    let mut table = Table::new("cells", "cells of adaptive OFDM in virtual time, 25 resources", &columns);
    let seconds = options.seconds(8.0);
    for users in [1, 10, 20, 100] {
        for scheduler in SCHEDULERS {
            let config = cell(users, scheduler)?;
            let rounds: Vec<Played> = (0..ROUNDS).map(|_| play(&config, seconds)).collect();
            let shares = rounds.iter().map(|played| played.processor_seconds / seconds);
            let share = Samples::new(shares).quantile(0.5);
            let frames = rounds[0].frames as f64;
            let speed = 1.0 / share;
            table.row([
                users.to_string(),
                scheduler.into(),
                short(speed),
                format!("{share:.4}"),
                format!("{:.1}", frames / seconds / SLOTS_PER_SECOND),
                short(share * seconds * 1e9 / frames),
            ]);
            let target = match users {
                10 => Some(Target::AtLeast(OF_TEN)),
                100 => Some(Target::AtLeast(OF_A_HUNDRED)),
                _ => None,
            };
            table.figure("cell", format!("{users} users, {scheduler}"), speed, "times real time", target);
        }
    }
    table.notes.push(format!("all {RESOURCES} resources of each slot are used; counters only"));
    Ok(table)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::from(format!("an example is wrong: {error}")))
}

fn cell(users: usize, scheduler: &str) -> Result<CellConfig, Failure> {
    let config: SharedMediumConfig = read(json!({ "type": "ofdm", "scheduler": { "type": scheduler } }))?;
    let downlink = LinkConfig {
        medium: MediumChoice::Shared("cell".into()),
        entity: read(json!({ "type": "arq", "retransmissions": 10 }))?,
        fading: Some(read(json!({
            "type": "profile", "profile": "tu12_at5_mhz", "speed": "75 km/h", "snr": "16 dB",
            "prediction_error": 0.1, "shadowing": { "deviation": "4 dB" },
        }))?),
        send_buffer: read(json!("64 kB"))?,
        ..LinkConfig::default()
    };
    let uplink =
        LinkConfig { entity: downlink.entity.clone(), rate: read(json!("1 Mbit/s"))?, ..LinkConfig::default() };
    let path = PathConfig { hops: vec![HopConfig::new("radio", uplink, downlink)], ..PathConfig::default() };
    let users =
        (0..users).map(|number| UserConfig { name: format!("user{number}"), is_unnamed: false, path: path.clone() });
    Ok(CellConfig { media: vec![MediumOfCell { name: "cell".into(), config }], users: users.collect() })
}

struct Played {
    processor_seconds: f64,
    frames: u64,
}

/// Plays so many virtual seconds with packets for all users.
fn play(config: &CellConfig, seconds: f64) -> Played {
    let mut machine = Cell::new(config, Seed(1));
    let users = config.users.len() as u64;
    let packets = (OFFERED * INTERVAL.nanos() / 1_000_000_000).div_ceil(u64::from(PACKET) * users).max(1);
    let mut outputs = Outputs::default();
    let began = thread_processor_ns();
    let (mut at, mut id) = (Time::ZERO, 0);
    let end = Time::ZERO + Span::from_nanos((seconds * 1e9) as u64);
    while at < end {
        for user in 0..users {
            for _ in 0..packets {
                id += 1;
                let pdu = Pdu { id, len: PACKET, header_len: 40, ..Pdu::default() };
                machine.offer(at, PortId::of(user as u16, End::Server), Item::Pdu(pdu), &mut Cx::new(&mut outputs));
            }
        }
        outputs.emissions.clear();
        at += INTERVAL;
    }
    machine.advance(end, &mut Cx::new(&mut outputs));
    let processor_seconds = (thread_processor_ns() - began) as f64 / 1e9;
    // A frame that is repeated has also been started.
    let started = |user: usize| {
        let site = outputs.counters.site(machine.place(user), Direction::Downlink, Origin::User);
        site.kind(EventKind::FrameStarted).count
    };
    Played { processor_seconds, frames: (0..config.users.len()).map(started).sum() }
}
