// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The virtual driver with a path of one hop.

use airpath_core::{Command, Item, LogLevel, Machine, Pdu, PortId, Seed, Time};
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use airpath_virtual::{DriveError, DriveUntil, Input, TimedInput, VirtualDriver};

fn driver() -> VirtualDriver {
    let link = LinkConfig {
        rate: "8 kbit/s".parse().unwrap(),
        propagation: "10 ms".parse().unwrap(),
        ..LinkConfig::default()
    };
    let hop = HopConfig { name: "radio".into(), uplink: link.clone(), downlink: link };
    let path: Box<dyn Machine> = Box::new(Path::new(&PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(1)));
    VirtualDriver::new(path, LogLevel::Events)
}

fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

fn packet(milliseconds: u64, id: u64) -> TimedInput {
    TimedInput::packet(at(milliseconds), PortId::CLIENT, Pdu { id, len: 100, ..Pdu::default() })
}

#[test]
fn a_run_to_idle_delivers_everything_at_its_time() {
    let mut driver = driver();
    driver.run([packet(0, 1), packet(5, 2), packet(1_000, 3)], DriveUntil::Idle, |_| ()).unwrap();
    let delivered: Vec<(Time, u64)> = driver
        .outputs()
        .emissions
        .iter()
        .map(|emission| match &emission.item {
            Item::Pdu(pdu) => (emission.at, pdu.id),
            Item::Signal(_) => panic!("a path sends no signals"),
        })
        .collect();
    assert_eq!(delivered, [(at(110), 1), (at(210), 2), (at(1_110), 3)]);
    assert_eq!((driver.next_deadline(), driver.machine().held(), driver.now()), (None, 0, at(1_110)));
}

#[test]
fn a_run_to_an_instant_stops_there_and_can_go_on() {
    let mut driver = driver();
    driver.run([packet(0, 1), packet(5, 2), packet(150, 3)], DriveUntil::At(at(120)), |_| ()).unwrap();
    assert_eq!((driver.outputs().emissions.len(), driver.machine().held(), driver.now()), (1, 1, at(120)));
    driver.run([], DriveUntil::Idle, |_| ()).unwrap();
    assert_eq!(driver.outputs().emissions.len(), 2);
}

#[test]
fn the_sink_may_take_what_was_left_behind() {
    let (mut emissions, mut events) = (0, 0);
    let mut driver = driver();
    let sink = |outputs: &mut airpath_core::Outputs| {
        emissions += outputs.emissions.drain(..).count();
        events += outputs.events.drain(..).count();
    };
    driver.run((0..10).map(|id| packet(id, id)), DriveUntil::Idle, sink).unwrap();
    assert!(driver.outputs().emissions.is_empty() && driver.outputs().events.is_empty());
    // Offered, enqueued, dequeued, frame started, frame sent, delivered.
    assert_eq!((emissions, events), (10, 60));
}

/// A boxed machine answers as the machine does, not as the trait would by default: the frame ends at
/// 100 ms, and nothing leaves before 110.
#[test]
fn a_boxed_machine_answers_for_itself() {
    let mut driver = driver();
    driver.run([packet(0, 1)], DriveUntil::At(at(50)), |_| ()).unwrap();
    // The type of the machine is Box<dyn Machine>; the box's own answers are asked for here.
    assert_eq!(Machine::next_deadline(driver.machine()), Some(at(100)));
    assert_eq!(Machine::next_emission(driver.machine()), Some(at(110)));
}

#[test]
fn bad_inputs_are_refused_with_their_reason() {
    let mut driver = driver();
    driver.advance(at(10));
    let error = driver.run([packet(9, 1)], DriveUntil::Idle, |_| ()).unwrap_err();
    assert_eq!(error, DriveError::Backwards { at: at(9), now: at(10) });
    let error = driver.input(at(10), Input::Command(Command::EnterState("tunnel".into()))).unwrap_err();
    assert!(error.to_string().contains("there is no state `tunnel`"), "{error}");
}
