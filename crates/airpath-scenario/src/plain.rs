// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options that need no TOML: rate, delay, jitter, loss, reordering, duplication, queue and
//! blackouts.

use std::sync::Arc;

use airpath_core::{QueueLimit, Span};

use crate::check::join;
use crate::document::{Key, Node, Place, Source, Table, Value};
use crate::format::{LINK, RAW};
use crate::keys;
use crate::parameter::Side;
use crate::report::{Diagnostic, Report};
use crate::scenario::{ONLY_HOP, Scenario};
use crate::tree::HopTree;

/// Parameters given as plain options. Each is one value for both directions or `UP,DOWN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainOptions {
    /// The rate of the link: `12 Mbit/s`, or `384 kbit/s,2 Mbit/s`; or a trace, `mahimahi:up.trace`.
    pub rate: Option<String>,
    /// The propagation delay of one direction: `20 ms` makes a round trip of 40 ms.
    pub delay: Option<String>,
    /// The standard deviation of the delay, which becomes normal, cut at 0: `5 ms`, drawn for each packet, or
    /// `5 ms correlated 100 ms`, which changes with time. Order is kept.
    pub jitter: Option<String>,
    /// The probability with which each packet is dropped by the link, independently: `1%`, instead of the errors that
    /// the link has, or `+1%`, beside them.
    pub loss: Option<String>,
    /// The probability with which each packet is held back, and until when: for a time (`1% 20 ms`) or
    /// until so many others have overtaken it (`1% 3 packets`; without anything until one has).
    pub reorder: Option<String>,
    /// The probability with which each packet is sent on twice: `1%`.
    pub duplicate: Option<String>,
    /// The input queue: what it may hold (`100 packets`, `64 kB`, `500 ms`), its type (`head_drop`),
    /// or both (`head_drop 100 packets`).
    pub queue: Option<String>,
    /// Blackouts, each with its beginning, its duration, and what becomes of packets: `20 s, 3 s, drop`.
    pub blackouts: Vec<String>,
}

/// The hop for losses beside the errors of a link.
const HOP_OF_LOSSES: &str = "loss";
/// The word between a deviation and the time in which a delay changes.
const CORRELATED: &str = "correlated";
/// That time where none is given, in deviations: packets then never have to wait for each other (`wander`
/// says why), whatever their rate.
const CORRELATED_FOR: u64 = 10;

/// The value of `--jitter`.
struct Jitter<'a> {
    deviation: &'a str,
    /// Correlation time of the delay; none for independent draws.
    time: Option<String>,
}

impl Jitter<'_> {
    fn parse(text: &str) -> Result<Jitter<'_>, String> {
        let Some((deviation, time)) = text.split_once(CORRELATED) else {
            return Ok(Jitter { deviation: text, time: None });
        };
        let deviation = deviation.trim();
        let time = match time.trim() {
            "" => {
                let deviation = deviation.parse::<Span>().map_err(|error| error.to_string())?;
                Span::from_nanos(deviation.nanos().saturating_mul(CORRELATED_FOR)).to_string()
            }
            time => time.parse::<Span>().map(|_| time.to_string()).map_err(|error| {
                format!("behind `{CORRELATED}` {error}; write for example --jitter '5 ms {CORRELATED} 100 ms'")
            })?,
        };
        Ok(Jitter { deviation, time: Some(time) })
    }
}

impl Scenario {
    /// Lays plain options over the scenario: over its hop, or over the one called `radio` if it has
    /// several; in every path, if it has several paths.
    ///
    /// # Errors
    /// When there is no such hop, or an option is not one value or two. Whether the values fit is
    /// told by [`Scenario::paths`].
    pub fn apply_plain(&mut self, options: &PlainOptions) -> Result<(), Report> {
        let mut problems = Vec::new();
        type Put = fn(&mut Scenario, &str, &Place, &str) -> Result<(), Report>;
        let all: [(&str, &Option<String>, Put); 7] = [
            ("--rate", &options.rate, Scenario::put_rate),
            ("--delay", &options.delay, Scenario::put_delay),
            // After the delay, around which it is.
            ("--jitter", &options.jitter, Scenario::put_jitter),
            ("--loss", &options.loss, Scenario::put_loss),
            ("--reorder", &options.reorder, Scenario::put_reorder),
            ("--duplicate", &options.duplicate, Scenario::put_duplicate),
            ("--queue", &options.queue, Scenario::put_queue),
        ];
        for (option, value, put) in &all {
            let Some(value) = value else { continue };
            let source =
                Arc::new(Source { name: format!("{option} \"{value}\""), text: value.clone(), is_file: false });
            let place = Place::whole(&source);
            let result = split(option, value, &place).and_then(|parts| {
                parts.into_iter().try_for_each(|(side, part)| {
                    self.plain_hops(&place)?.iter().try_for_each(|hop| put(self, &join(hop, side.name()), &place, part))
                })
            });
            if let Err(report) = result {
                problems.extend(report.problems().iter().cloned());
            }
        }
        for blackout in &options.blackouts {
            if let Err(report) = self.add_blackout(blackout) {
                problems.extend(report.problems().iter().cloned());
            }
        }
        if !problems.is_empty() {
            return Err(Report::new(problems));
        }
        let given = all.iter().filter_map(|(option, value, _)| value.as_ref().map(|value| (*option, value)));
        let blackouts = options.blackouts.iter().map(|value| ("--blackout", value));
        let changes: Vec<String> =
            given.chain(blackouts).map(|(option, value)| format!("{option} '{value}'")).collect();
        if let (Some(source), false) = (&mut self.source, changes.is_empty()) {
            // What it says of numbers may no longer hold of all of them.
            source.push_str(&format!("\nChanged by {}.", changes.join(", ")));
        }
        Ok(())
    }

    /// The hops that plain options mean, by their names in parameters.
    pub(crate) fn plain_hops(&self, place: &Place) -> Result<Vec<String>, Report> {
        let mut hops = Vec::new();
        for path in &self.paths {
            let links: Vec<&HopTree> = path.hops.iter().filter(|hop| hop.name != HOP_OF_LOSSES).collect();
            let hop = match (links.as_slice(), path.hops.as_slice()) {
                ([only], _) => only,
                (_, [only]) => only,
                (_, several) => several.iter().find(|hop| hop.name == ONLY_HOP).ok_or_else(|| {
                    let names: Vec<&str> = several.iter().map(|hop| hop.name.as_str()).collect();
                    let message = format!(
                        "the hop is ambiguous, because none is called `{ONLY_HOP}`; \
                         write --set {}.link.…",
                        names.first().unwrap_or(&"HOP")
                    );
                    Diagnostic::at(place, "", message).nearest_of("", names)
                })?,
            };
            hops.push(if self.paths.len() > 1 { join(&path.name, &hop.name) } else { hop.name.clone() });
        }
        Ok(hops)
    }

    fn put_text(&mut self, path: &str, place: &Place, text: &str) -> Result<(), Report> {
        self.set_node(path, place, &Node { value: Value::Text(text.into()), place: place.clone() })
    }

    fn put_rate(&mut self, side: &str, place: &Place, text: &str) -> Result<(), Report> {
        let rate = join(side, "rate");
        let Some((kind, file)) = text.split_once(':').map(|(kind, file)| (kind.trim(), file.trim())) else {
            return self.put_text(&rate, place, text);
        };
        // Those that need a file and nothing else.
        let kinds: Vec<&str> = ["mahimahi", "trace"].into();
        if !kinds.contains(&kind) {
            let message = format!("`{kind}` is not a trace format; write for example mahimahi:up.trace");
            return Err(Diagnostic::at(place, "", message).nearest_of(kind, kinds).into());
        }
        let mut table = Table::default();
        for (key, text) in [("type", kind), ("file", file)] {
            let node = Node { value: Value::Text(text.into()), place: place.clone() };
            table.put(Key { name: key.into(), place: place.clone() }, node);
        }
        self.set_node(&rate, place, &Node { value: Value::Table(table), place: place.clone() })
    }

    fn put_delay(&mut self, side: &str, place: &Place, text: &str) -> Result<(), Report> {
        self.put_text(&join(side, "propagation"), place, text)
    }

    fn put_loss(&mut self, side: &str, place: &Place, probability: &str) -> Result<(), Report> {
        if let Some(beside) = probability.strip_prefix('+') {
            let side = self.beside(side, place);
            return self.put_losses(&side, place, beside.trim());
        }
        self.put_losses(side, place, probability)
    }

    /// The same direction of the hop behind that of `side` whose only work is to lose packets; it is added if the path
    /// has none.
    fn beside(&mut self, side: &str, place: &Place) -> String {
        let (hop, direction) = side.rsplit_once('.').unwrap_or((side, ""));
        let (path, _) = hop.rsplit_once('.').unwrap_or(("", hop));
        for tree in self.paths.iter_mut().filter(|tree| path.is_empty() || tree.name == path) {
            if tree.hops.iter().all(|hop| hop.name != HOP_OF_LOSSES) {
                // Behind all others, so on the host of the last one.
                let host = tree.hops.last().and_then(|hop| hop.host.clone());
                tree.hops.push(HopTree {
                    name: HOP_OF_LOSSES.into(),
                    place: place.clone(),
                    host,
                    link: Table::default(),
                    uplink: Table::default(),
                    downlink: Table::default(),
                });
            }
        }
        join(&join(path, HOP_OF_LOSSES), direction)
    }

    fn put_losses(&mut self, side: &str, place: &Place, probability: &str) -> Result<(), Report> {
        // Also for 0, so that states which change the probability keep their meaning.
        let text = |text: &str| Value::Text(text.into());
        let table = [
            ("type", text("bernoulli")),
            ("per", text("packet")),
            ("probability", text(probability)),
            ("effect", text("drop")),
        ];
        self.put_table(&join(side, "errors"), place, table)
    }

    /// A normal delay around the one that there is; each direction keeps its own.
    fn put_jitter(&mut self, side: &str, place: &Place, text: &str) -> Result<(), Report> {
        let jitter = Jitter::parse(text).map_err(|message| Diagnostic::at(place, "", message))?;
        let (hop, name) = side.rsplit_once('.').unwrap_or((side, ""));
        let sides = match Side::of(name) {
            Some(Side::Link) => vec![Side::Uplink, Side::Downlink],
            one => one.into_iter().collect(),
        };
        for side in sides {
            let side_name = join(hop, side.name());
            let Some(mean) = self.mean_delay(hop, side) else {
                let message = format!("{side_name}.propagation is already a distribution; add --delay to replace it");
                return Err(Diagnostic::at(place, "", message).into());
            };
            let text = |text: &str| Value::Text(text.into());
            let propagation = join(&side_name, "propagation");
            let deviation = ("deviation", text(jitter.deviation));
            if jitter.deviation.parse::<Span>() == Ok(Span::ZERO) {
                // No jitter is a delay that is always the same.
                self.put_text(&propagation, place, &mean)?;
            } else if let Some(time) = &jitter.time {
                let table = [("type", text("wander")), ("mean", text(&mean)), deviation, ("time", text(time))];
                self.put_table(&propagation, place, table)?;
            } else {
                let table = [("type", text("normal")), ("mean", text(&mean)), deviation];
                self.put_table(&propagation, place, table)?;
            }
        }
        Ok(())
    }

    /// The propagation delay of a direction as it is written, or the mean of one that this option makes; none
    /// where it is any other distribution.
    fn mean_delay(&self, hop: &str, side: Side) -> Option<String> {
        let several = self.paths.len() > 1;
        let hops = self.paths.iter().flat_map(|path| path.hops.iter().map(move |hop| (path, hop)));
        let (_, tree) = hops
            .into_iter()
            .find(|(path, tree)| if several { join(&path.name, &tree.name) == hop } else { tree.name == hop })?;
        let table = if side == Side::Downlink { &tree.downlink } else { &tree.uplink };
        let Some(node) = table.get("propagation") else { return Some(Span::ZERO.to_string()) };
        let mean = |table: &Table| {
            let kind = table.get("type").and_then(Node::as_text);
            kind.filter(|kind| ["normal", "wander"].contains(kind)).and_then(|_| table.get("mean")).cloned()
        };
        let written = match &node.value {
            Value::Table(table) => mean(table)?,
            _ => node.clone(),
        };
        written.as_text().map(str::to_string)
    }

    fn put_reorder(&mut self, side: &str, place: &Place, text: &str) -> Result<(), Report> {
        let (probability, until) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let until = until.trim();
        let mut packets = until.split_whitespace();
        let held = match (packets.next(), packets.next(), packets.next()) {
            (None, ..) => ("distance", Value::Integer(1)),
            (Some(count), Some("packet" | "packets"), None) if count.parse::<u32>().is_ok() => {
                ("distance", Value::Integer(count.parse().unwrap_or_default()))
            }
            _ if until.parse::<Span>().is_ok() => ("delay", Value::Text(until.into())),
            _ => {
                let message = format!(
                    "`{until}` is neither a time nor a number of packets; write for example --reorder '1% 20 ms' or \
                     --reorder '1% 3 packets'"
                );
                return Err(Diagnostic::at(place, "", message).into());
            }
        };
        self.put_table(&join(side, "reorder"), place, [("probability", Value::Text(probability.into())), held])
    }

    fn put_duplicate(&mut self, side: &str, place: &Place, text: &str) -> Result<(), Report> {
        self.put_table(&join(side, "duplicate"), place, [("probability", Value::Text(text.into()))])
    }

    fn put_table<const N: usize>(
        &mut self,
        path: &str,
        place: &Place,
        entries: [(&str, Value); N],
    ) -> Result<(), Report> {
        let mut table = Table::default();
        for (key, value) in entries {
            table.put(Key { name: key.into(), place: place.clone() }, Node { value, place: place.clone() });
        }
        self.set_node(path, place, &Node { value: Value::Table(table), place: place.clone() })
    }

    fn put_queue(&mut self, side: &str, place: &Place, text: &str) -> Result<(), Report> {
        let queue = join(side, "queue");
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let is_limit = text == "unlimited" || !first.starts_with(|c: char| c.is_ascii_alphabetic());
        let (kind, limit) = if is_limit { ("", text) } else { (first, rest.trim()) };
        if !kind.is_empty() {
            if keys::keys_of_type(&LINK, &RAW, &["queue"], kind).is_none() {
                return Err(unknown_queue(kind, place).into());
            }
            self.put_text(&join(&queue, "type"), place, kind)?;
        }
        if limit.is_empty() { Ok(()) } else { self.put_text(&join(&queue, "limit"), place, limit) }
    }
}

fn unknown_queue(kind: &str, place: &Place) -> Diagnostic {
    let (_, schema) = keys::resolve(&RAW["$defs"]["QueueConfig"], &RAW);
    let names: Vec<&str> = keys::variants(schema, &RAW).iter().map(|variant| variant.name).collect();
    let message = format!("`{kind}` is neither a type of queue nor a limit such as \"100 packets\"");
    Diagnostic::at(place, "", message).nearest_of(kind, names)
}

/// One value for both directions, or `UP,DOWN`.
fn split<'a>(option: &str, value: &'a str, place: &Place) -> Result<Vec<(Side, &'a str)>, Report> {
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    let error = |message: String| Err(Report::from(Diagnostic::at(place, "", message)));
    if parts.iter().any(|part| part.is_empty()) {
        return error(format!("a value is missing; {option} takes one value, or UP,DOWN"));
    }
    match parts.as_slice() {
        [both] => Ok(vec![(Side::Link, both)]),
        [up, down] => {
            let kinds = |text: &str| {
                text.parse::<QueueLimit>().ok().map(|limit| (limit.packets.is_some(), limit.bytes.is_some()))
            };
            if option == "--queue"
                && let (Some(one), Some(other)) = (kinds(up), kinds(down))
                && one != other
                && *up != "unlimited"
                && *down != "unlimited"
            {
                return error(format!(
                    "this means `{up}` for uplink and `{down}` for downlink; for several limits of one queue, use \
                     --set 'radio.link.queue.limit=\"{value}\"'"
                ));
            }
            Ok(vec![(Side::Uplink, up), (Side::Downlink, down)])
        }
        more => error(format!("these are {} values; {option} takes one value, or UP,DOWN", more.len())),
    }
}
