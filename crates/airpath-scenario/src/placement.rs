// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The placement of hops on hosts, and the parts of a path that follow from it.

use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::Range;

use airpath_core::{Direction, Span};
use airpath_models::flow_control::FlowControlConfig;
use airpath_models::load::BackgroundConfig;
use airpath_models::{HopConfig, PathConfig};

use crate::build::PathTree;
use crate::check::join;
use crate::document::Node;
use crate::hosts::{HERE, HostTree, KEY, Part, UdpConfig};
use crate::independent::media_of;
use crate::report::{Diagnostic, Report};
use crate::scenario::{NamedPath, Scenario};
use crate::toml_text::{inline, text};

impl PathTree {
    /// Names of the hosts on which hops are placed.
    pub(crate) fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hops.iter().filter_map(|hop| hop.host.as_ref()).map(|(name, _)| name.as_str())
    }
}

impl Scenario {
    /// The parts of the first path by host, from the client on; one part where all hops are on the host on which the
    /// command runs.
    pub fn parts(&self) -> Vec<Part> {
        self.paths.first().map(|path| self.parts_of(path)).unwrap_or_default()
    }

    fn parts_of(&self, path: &PathTree) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (number, hop) in path.hops.iter().enumerate() {
            let host = hop.host.as_ref().map_or(HERE, |(name, _)| name.as_str());
            match parts.last_mut() {
                Some(part) if part.host == host => part.hops.end = number + 1,
                _ => {
                    let config = self.hosts.iter().find(|known| known.name == host).map(|known| known.config.clone());
                    let name = self.part_name(host, &parts);
                    parts.push(Part { name, host: host.to_owned(), config, hops: number..number + 1 });
                }
            }
        }
        parts
    }

    /// Name of a part on `host`, behind `parts`.
    fn part_name(&self, host: &str, parts: &[Part]) -> String {
        let is_free = |name: &String| {
            !parts.iter().any(|part| part.name == *name) && !self.hosts.iter().any(|host| host.name == *name)
        };
        match parts.iter().any(|part| part.host == host) {
            false => host.to_owned(),
            true => (2_usize..).map(|number| format!("{host}-{number}")).find(is_free).unwrap_or_default(),
        }
    }

    /// True if hops are placed on other hosts.
    pub fn is_placed(&self) -> bool {
        self.paths.iter().any(|path| path.host_names().next().is_some())
    }

    /// The parts of a path that is on several hosts; none where all hops are on the host on which the command runs.
    ///
    /// # Errors
    /// As [`Scenario::paths`].
    pub fn placement(&self) -> Result<Option<Vec<Part>>, Report> {
        self.paths()?;
        Ok(Some(self.parts()).filter(|parts| parts.len() > 1))
    }

    /// The scenario with some hops of its path only, and with what states and background loads say about these; as if
    /// all of them were on the host on which it runs.
    pub fn part(&self, hops: Range<usize>) -> Scenario {
        let mut scenario = self.clone();
        scenario.hosts.clear();
        for path in &mut scenario.paths {
            path.hops = path.hops.get(hops.clone()).map(<[_]>::to_vec).unwrap_or_default();
            path.hops.iter_mut().for_each(|hop| hop.host = None);
            let names: Vec<String> = path.hops.iter().map(|hop| hop.name.clone()).collect();
            let is_here = |name: &str| names.iter().any(|hop| hop == name);
            for state in &mut path.states {
                state.sets.retain(|(key, _)| is_here(key.name.split('.').next().unwrap_or_default().trim()));
            }
            path.background.retain(|load| load.table.get("hop").and_then(Node::as_text).is_some_and(is_here));
        }
        scenario
    }

    /// Takes `delay` off the propagation of a hop in one direction.
    ///
    /// # Errors
    /// In words, where the propagation varies, is shorter, or is changed by a state.
    pub fn subtract_propagation(&mut self, hop: usize, direction: Direction, delay: Span) -> Result<(), String> {
        let paths = self.paths().map_err(|report| report.to_string())?;
        let Some(NamedPath { config, .. }) = paths.first() else { return Err("there is no path".into()) };
        let propagation = |hops: &[HopConfig]| hops[hop].link(direction).propagation.clone();
        let (name, there) = (&config.hops[hop].name, propagation(&config.hops));
        let key = format!("{name}.{}.propagation", direction.name());
        if let Some(state) = config.states.iter().find(|state| propagation(&state.hops) != there) {
            return Err(format!("{key} is changed by state `{}`", state.name));
        }
        let Some(constant) = there.constant() else { return Err(format!("{key} varies")) };
        let Some(left) = constant.nanos().checked_sub(delay.nanos()) else {
            return Err(format!("{key} is {constant}, and the network between the hosts adds {delay}"));
        };
        self.set(&format!("{key}={left} ns")).map_err(|report| report.to_string())
    }

    /// Problems in the placement of hops on hosts.
    pub(crate) fn placement_problems(&self, paths: &[NamedPath]) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let placed = || self.paths.iter().flat_map(|path| &path.hops).filter_map(|hop| Some((hop, hop.host.as_ref()?)));
        for (hop, (name, place)) in placed() {
            if !self.hosts.iter().any(|host| host.name == *name) {
                let names = self.hosts.iter().map(|host| host.name.as_str());
                let message = format!("there is no host `{name}`; write [{KEY}.{name}] with ssh = \"user@host\"");
                problems.push(Diagnostic::at(place, join(&hop.name, "host"), message).nearest_of(name, names));
            }
        }
        for host in self.hosts.iter().filter(|host| !placed().any(|(_, (name, _))| *name == host.name)) {
            let message =
                format!("no hop is on this host; write host = \"{}\" in a hop, or remove the host", host.name);
            problems.push(Diagnostic::at(&host.place, join(KEY, &host.name), message));
        }
        for HostTree { name, place, config } in &self.hosts {
            if config.ssh.trim().is_empty() {
                let message = "an empty destination; write for example ssh = \"user@lab2\"";
                problems.push(Diagnostic::at(place, join(&join(KEY, name), "ssh"), message));
            }
            let addresses = config.udp.iter().flat_map(|udp| [("local", &udp.local), ("remote", &udp.remote)]);
            for (key, address) in addresses.filter(|(_, address)| address.parse::<SocketAddr>().is_err()) {
                let message =
                    format!("`{address}` is not an address and a port, such as 192.0.2.1:5300 or [2001:db8::1]:5300");
                problems.push(Diagnostic::at(place, join(&join(KEY, name), &format!("udp.{key}")), message));
            }
        }
        problems.extend(self.address_problems());
        if !problems.is_empty() || !self.is_placed() || paths.len() != self.paths.len() {
            return problems;
        }
        problems.extend(self.tunnel_problems());
        for (tree, path) in self.paths.iter().zip(paths) {
            let Some((_, place)) = tree.hops.iter().find_map(|hop| hop.host.as_ref()) else { continue };
            if !media_of(&path.config).is_empty() {
                let message = "a path with hops on several hosts shares no medium with others, as the medium is one \
                               machine with the queues of all its users; leave `host` out in the hops of its users";
                problems.push(Diagnostic::at(place, KEY, message));
                continue;
            }
            problems.extend(order_problem(tree));
            problems.extend(self.border_problems(tree, &path.config));
        }
        problems
    }

    /// Ends of tunnels that are those of others.
    fn address_problems(&self) -> Vec<Diagnostic> {
        let mut known: Vec<(SocketAddr, String)> = Vec::new();
        let mut problems = Vec::new();
        for HostTree { name, place, config } in &self.hosts {
            let addresses = config.udp.iter().flat_map(|udp| [("local", &udp.local), ("remote", &udp.remote)]);
            for (key, text) in addresses {
                let Ok(address) = text.parse::<SocketAddr>() else { continue };
                let key = join(&join(KEY, name), &format!("udp.{key}"));
                match known.iter().find(|(other, _)| *other == address) {
                    Some((_, other)) => {
                        let message =
                            format!("`{text}` is {other} already; give each end of a tunnel a port of its own");
                        problems.push(Diagnostic::at(place, key, message));
                    }
                    None => known.push((address, key)),
                }
            }
        }
        problems
    }

    /// Problems of what is said of the border before a host.
    fn tunnel_problems(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let all: Vec<Vec<Part>> = self.paths.iter().map(|path| self.parts_of(path)).collect();
        for HostTree { name, place, config } in &self.hosts {
            let mut problem =
                |key: &str, message: &str| problems.push(Diagnostic::at(place, join(&join(KEY, name), key), message));
            let pairs = || all.iter().flat_map(|parts| parts.windows(2));
            let before = || pairs().filter(|pair| pair[1].host == *name).map(|pair| &pair[0]);
            if config.udp.is_some() && before().count() > 1 {
                problem(
                    "udp",
                    "a path comes to this host more than once, or several do, and a tunnel has two ends; leave it out, or \
                     write a second host with the same `ssh`",
                );
            }
            if config.udp.is_some() && config.subtract_delay && before().any(|part| part.host != HERE) {
                problem(
                    "subtract_delay",
                    "the delay of a tunnel between two other hosts is not known before the run; leave one of both out",
                );
            }
        }
        problems
    }

    /// Problems of what cannot cross the border between two hosts.
    fn border_problems(&self, path: &PathTree, config: &PathConfig) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let parts = self.parts_of(path);
        let part_of = |name: &str| {
            let number = config.hops.iter().position(|hop| hop.name == name)?;
            parts.iter().position(|part| part.hops.contains(&number))
        };
        for (load, tree) in config.background.iter().zip(&path.background) {
            let until = load.until.as_deref().unwrap_or(&load.hop);
            if part_of(&load.hop) != part_of(until) {
                let message = "a background load stays on one host; write one load for each host";
                problems.push(Diagnostic::at(&tree.place, format!("background.{}.until", load.name), message));
            }
        }
        let states = config.states.iter().map(|state| &state.hops);
        for hops in std::iter::once(&config.hops).chain(states) {
            for part in parts.windows(2) {
                let (before, behind) = (part[0].hops.end - 1, part[1].hops.start);
                for (hop, direction) in [(behind, Direction::Uplink), (before, Direction::Downlink)] {
                    let key = format!("{}.{}.flow_control", hops[hop].name, direction.name());
                    let known = problems.iter().any(|problem: &Diagnostic| problem.key == key);
                    let is_window = matches!(hops[hop].link(direction).flow_control, FlowControlConfig::Window(_));
                    if !is_window || known {
                        continue;
                    }
                    let enters = |load: &BackgroundConfig| load.hop == hops[hop].name && load.direction == direction;
                    if config.background.iter().any(enters) {
                        let message = "the hop before, which is on another host, cannot tell its own packets from a \
                                       background load that enters here; leave the window out, or let the load enter \
                                       at another hop";
                        problems.push(Diagnostic::at(&path.hops[hop].place, key, message));
                    }
                }
            }
        }
        problems
    }

    /// The hosts as TOML.
    pub(crate) fn print_hosts(&self, out: &mut String) {
        for HostTree { name, config, .. } in &self.hosts {
            let _ = writeln!(out, "\n[{KEY}.{name}]\nssh = {}", text(&config.ssh));
            if !config.ssh_options.is_empty() {
                let options = config.ssh_options.iter().map(|option| toml::Value::String(option.clone())).collect();
                let _ = writeln!(out, "ssh_options = {}", inline(&toml::Value::Array(options)));
            }
            if let Some(engine) = &config.engine {
                let _ = writeln!(out, "engine = {}", text(engine));
            }
            if let Some(UdpConfig { local, remote }) = &config.udp {
                let _ = writeln!(out, "udp = {{ local = {}, remote = {} }}", text(local), text(remote));
            }
            if config.subtract_delay {
                out.push_str("subtract_delay = true\n");
            }
        }
    }
}

/// Problem in the order of hosts along a path.
fn order_problem(path: &PathTree) -> Option<Diagnostic> {
    let first = path.hops.first()?;
    let (_, place) = first.host.as_ref()?;
    let message = "the first hop is at the client, whose command runs on this host; place later hops elsewhere, and write \
                   a hop without parameters first if no other is to be here";
    Some(Diagnostic::at(place, join(&first.name, "host"), message))
}
