//! What a packet costs in the models alone, driven virtually.

use std::time::Instant;

use airpath_core::{Bits, LogLevel, Pdu, PortId, Seed, Span, Time};
use airpath_models::channel::gilbert_elliott::GilbertElliottConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::{Fragmentation, HopConfig, LastFrame, LinkConfig, Path, PathConfig};
use airpath_virtual::{End, TimedInput, VirtualDriver};

use super::Options;
use crate::report::{Table, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

const INTERVAL_NS: u64 = 1_000_000;
const ROUNDS: usize = 9;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["link", "log", "ns a packet", "packets/s"];
    let mut table =
        Table::new("driver", "processor time of the models in the virtual driver, 1500-byte packets", &columns);
    let plain = LinkConfig { rate: "12 Mbit/s".parse()?, propagation: Span::from_millis(20), ..LinkConfig::default() };
    let fragmentation =
        Fragmentation { frame_payload: Bits::new(3_000), frame_header: Bits::ZERO, last_frame: LastFrame::Short };
    let process = GilbertElliottConfig {
        good_to_bad: "0.01".parse()?,
        bad_to_good: "0.3".parse()?,
        error_in_good: "0.001".parse()?,
        error_in_bad: "0.5".parse()?,
    };
    let errors = ErrorsConfig {
        process: ErrorProcessConfig::GilbertElliott(process),
        per: Per::Frame,
        ..ErrorsConfig::default()
    };
    let fragments = LinkConfig { fragmentation: Some(fragmentation), errors, ..plain.clone() };
    let packets = if options.quick { 50_000 } else { 200_000 };
    for (name, config) in [("rate and delay", &plain), ("4 fragments, Gilbert-Elliott", &fragments)] {
        for (level, label) in [(LogLevel::Counters, "counters"), (LogLevel::Events, "events")] {
            let rounds = Samples::new((0..ROUNDS).map(|_| cost_ns(config, level, packets)));
            let cost = rounds.quantile(0.5);
            table.row([name.to_owned(), label.to_owned(), short(cost), short((1e9 / cost).round())]);
            table.figure("cost in the virtual driver", format!("{name}, {label}"), cost, "ns a packet", None);
        }
    }
    Ok(table)
}

fn cost_ns(config: &LinkConfig, level: LogLevel, packets: u64) -> f64 {
    let hop = HopConfig { name: "radio".into(), uplink: config.clone(), downlink: config.clone() };
    let path = Path::new(&PathConfig { hops: vec![hop], states: Vec::new() }, Seed(1));
    let mut driver = VirtualDriver::new(path, level);
    let inputs = (0..packets).map(|id| {
        let pdu = Pdu { id: id + 1, len: 1500, header_len: 40, ..Pdu::default() };
        TimedInput::packet(Time::from_nanos(id * INTERVAL_NS), PortId::CLIENT, pdu)
    });
    let began = Instant::now();
    let outcome = driver.run(inputs, End::Idle, |outputs| {
        outputs.emissions.clear();
        outputs.events.clear();
    });
    let elapsed = began.elapsed().as_nanos() as f64;
    assert!(outcome.is_ok(), "inputs are in order");
    elapsed / packets as f64
}
