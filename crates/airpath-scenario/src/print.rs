// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Scenarios as canonical TOML that can be copied and edited.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use airpath_core::Probability;
use airpath_models::cell::MediumOfCell;
use airpath_models::file::VisitFile;
use airpath_models::states::Stay;
use airpath_models::{HopConfig, LinkConfig, PathConfig};
use toml::{Table, Value};

use crate::background;
use crate::build::PathTree;
use crate::document::ABSENT;
use crate::format::{LINK, RAW};
use crate::keys;
use crate::media;
use crate::report::Report;
use crate::scenario::{NamedPath, Scenario};
use crate::toml_text::{inline, text};

/// Keys that are printed even where they have their default values.
const ALWAYS: [&str; 3] = ["rate", "propagation", "queue"];

impl Scenario {
    /// The scenario as TOML: everything that differs from the defaults, and always rate,
    /// propagation and queue; what is at its default follows as comments. Reading it again gives the
    /// same scenario.
    ///
    /// # Errors
    /// When the parameters are wrong, as [`Scenario::paths`].
    pub fn to_toml(&self) -> Result<String, Report> {
        self.to_toml_with_files(&|_| None)
    }

    /// The same with other names for the files that parameters name: `name` gives that of the file that
    /// was loaded from a path, or none to leave it as it was written.
    ///
    /// # Errors
    /// As [`Scenario::to_toml`].
    pub fn to_toml_with_files(&self, name: &dyn Fn(&Path) -> Option<String>) -> Result<String, Report> {
        let (mut paths, mut media) = (self.paths()?, self.media()?);
        each_file(&mut paths, &mut media, &mut |_, file| {
            if let Some(other) = file.origin().and_then(name) {
                file.rename(other);
            }
        });
        let mut out = String::new();
        for (key, value) in [("name", &self.name), ("description", &self.description), ("source", &self.source)] {
            if let Some(value) = value {
                let _ = writeln!(out, "{key} = {}", text(value));
            }
        }
        if let Some(mtu) = self.mtu {
            let _ = writeln!(out, "mtu = {mtu}");
        }
        self.print_hosts(&mut out);
        media.iter().for_each(|medium| media::print(&mut out, medium));
        let single = self.is_unnamed();
        for NamedPath { name, config } in &paths {
            if !single {
                let _ = writeln!(out, "\n[[paths]]\nname = {}", text(name));
            }
            let tree = self.paths.iter().find(|tree| tree.name == *name);
            path(&mut out, if single { "" } else { "paths." }, config, tree);
        }
        Ok(out.trim_start().to_string())
    }

    /// Paths of the files that parameters name, each once, in the order in which they are named.
    ///
    /// # Errors
    /// When the parameters are wrong, as [`Scenario::paths`].
    pub fn files(&self) -> Result<Vec<PathBuf>, Report> {
        let mut files: Vec<PathBuf> = Vec::new();
        each_file(&mut self.paths()?, &mut self.media()?, &mut |_, file| {
            let new = file.origin().filter(|origin| !files.iter().any(|known| known == origin));
            files.extend(new.map(Path::to_owned));
        });
        Ok(files)
    }
}

/// Visits the files that parameters of media and paths name.
fn each_file(paths: &mut [NamedPath], media: &mut [MediumOfCell], visit: &mut VisitFile<'_>) {
    for medium in media {
        medium.config.files(visit);
    }
    for path in paths {
        path.config.files(visit);
    }
}

/// Keys that are printed within tables even where they have their default values.
const ALWAYS_WITHIN: [&str; 4] = ["type", "limit", "per", "effect"];

/// The keys and values of a link.
fn table(link: &LinkConfig) -> Table {
    Table::try_from(link).unwrap_or_default()
}

/// A key of a link on one line, without those keys within it that have their default values.
fn line(key: &str, value: &Value) -> String {
    let mut value = value.clone();
    if let Value::Table(table) = &mut value {
        let kind = table.get("type").and_then(Value::as_str).unwrap_or_default().to_string();
        let default = |name: &str| {
            let schema = keys::property_of_type(&LINK, &RAW, &[key], &kind, name)?;
            Value::try_from(schema.get("default").filter(|value| !value.is_null())?).ok()
        };
        table.retain(|name, value| ALWAYS_WITHIN.contains(&name) || default(name).as_ref() != Some(value));
    }
    format!("{key} = {}\n", inline(&value))
}

fn path(out: &mut String, prefix: &str, config: &PathConfig, tree: Option<&PathTree>) {
    for (number, hop) in config.hops.iter().enumerate() {
        let host = tree.and_then(|tree| tree.hops.get(number)?.host.as_ref()).map(|(host, _)| host.as_str());
        print_hop(out, prefix, hop, host);
    }
    let initial = airpath_core::Event::INITIAL_STATE;
    let names: Vec<&str> =
        std::iter::once(initial).chain(config.states.iter().map(|state| state.name.as_str())).collect();
    if config.initial != Stay::default() {
        let _ = writeln!(out, "\n[[{prefix}states]]\nname = {}", text(initial));
        stay(out, &config.initial, &names);
    }
    for state in &config.states {
        let _ = writeln!(out, "\n[[{prefix}states]]\nname = {}", text(&state.name));
        if let Some(at) = state.at {
            let _ = writeln!(out, "at = \"{}\"", at.since(airpath_core::Time::ZERO));
        }
        stay(out, &state.stay, &names);
        let mut lines = String::new();
        for (base, changed) in config.hops.iter().zip(&state.hops) {
            let [up, down] = [(&base.uplink, &changed.uplink), (&base.downlink, &changed.downlink)].map(changes);
            let sides: [(&str, Vec<_>); 3] = [
                ("link", up.iter().filter(|change| down.contains(change)).collect()),
                ("uplink", up.iter().filter(|change| !down.contains(change)).collect()),
                ("downlink", down.iter().filter(|change| !up.contains(change)).collect()),
            ];
            for (side, changes) in sides {
                for (key, value) in changes {
                    let _ = writeln!(lines, "\"{}.{side}.{key}\" = {}", base.name, inline(value));
                }
            }
        }
        if !lines.is_empty() {
            let _ = write!(out, "\n[{prefix}states.set]\n{lines}");
        }
    }
    for load in &config.background {
        background::print(out, prefix, load);
    }
}

fn stay(out: &mut String, stay: &Stay, names: &[&str]) {
    if let Some(duration) = stay.duration.as_ref().and_then(|duration| Value::try_from(duration).ok()) {
        let _ = writeln!(out, "duration = {}", inline(&duration));
    }
    let name = |state: &u16| names.get(usize::from(*state)).copied().unwrap_or_default();
    match stay.next.as_slice() {
        [] => {}
        [(state, probability)] if *probability == Probability::ONE => {
            let _ = writeln!(out, "next = {}", text(name(state)));
        }
        several => {
            let entry =
                |(state, probability): &(u16, Probability)| format!("{} = {:?}", name(state), probability.get());
            let _ = writeln!(out, "next = {{ {} }}", several.iter().map(entry).collect::<Vec<_>>().join(", "));
        }
    }
}

fn print_hop(out: &mut String, prefix: &str, hop: &HopConfig, host: Option<&str>) {
    let _ = writeln!(out, "\n[[{prefix}hops]]\nname = {}", text(&hop.name));
    if let Some(host) = host {
        let _ = writeln!(out, "host = {}", text(host));
    }
    let (up, down, default) = (table(&hop.uplink), table(&hop.downlink), table(&LinkConfig::default()));
    let keys = keys_of(&up, &down);
    let (mut link, mut uplink, mut downlink, mut rest) = (String::new(), String::new(), String::new(), String::new());
    let is_shared = hop.uplink.medium.name().is_some() && hop.downlink.medium.name().is_some();
    for key in keys {
        let line = |value: &Value| line(&key, value);
        match (up.get(&key), down.get(&key)) {
            (one, other) if one == other => match one {
                // A medium that users share has the rate.
                Some(_) if key == "rate" && is_shared && one == default.get(&key) => {}
                Some(value) if ALWAYS.contains(&key.as_str()) || one != default.get(&key) => link += &line(value),
                Some(value) => rest += &format!("# {}", line(value)),
                None => {}
            },
            (one, other) => {
                // A direction without the key has its default, or has none.
                uplink += &one.map_or_else(String::new, line);
                downlink += &other.map_or_else(String::new, line);
            }
        }
    }
    for (side, lines) in [("link", link + &rest), ("uplink", uplink), ("downlink", downlink)] {
        if !lines.is_empty() {
            let _ = write!(out, "\n[{prefix}hops.{side}]\n{lines}");
        }
    }
}

/// The keys of both links in the order of their fields: one that only `other` has follows its predecessor there.
fn keys_of(one: &Table, other: &Table) -> Vec<String> {
    let mut keys: Vec<String> = one.keys().cloned().collect();
    let mut next = 0;
    for key in other.keys() {
        match keys.iter().position(|known| known == key) {
            Some(place) => next = place + 1,
            None => {
                keys.insert(next, key.clone());
                next += 1;
            }
        }
    }
    keys
}

/// The parameters that differ between two links, by name; single keys of tables where that suffices.
fn changes((base, changed): (&LinkConfig, &LinkConfig)) -> Vec<(String, Value)> {
    let (base, changed) = (table(base), table(changed));
    let mut all = Vec::new();
    for key in keys_of(&base, &changed) {
        match (base.get(&key), changed.get(&key)) {
            (one, other) if one == other => {}
            (_, None) => all.push((key, Value::String(ABSENT.into()))),
            (Some(Value::Table(one)), Some(Value::Table(other)))
                if one.get("type") == other.get("type") && one.keys().all(|key| other.contains_key(key)) =>
            {
                let differing = other.iter().filter(|(inner, value)| one.get(*inner) != Some(value));
                all.extend(differing.map(|(inner, value)| (format!("{key}.{inner}"), value.clone())));
            }
            (_, Some(value)) => all.push((key, value.clone())),
        }
    }
    all
}
