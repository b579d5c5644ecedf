// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A network namespace with a name, as `ip netns` makes them.

use std::fs;
use std::io;
use std::path::Path;

use super::inside::Inside;
use super::{Kind, Place};
use crate::error::{LiveError, Result};
use crate::namespaces::NetNamespace;

pub(super) const KIND: Kind =
    Kind { word: "netns", form: "NAME", purpose: "a network namespace of `ip netns`", open: |text, _| open(text) };

const FOLDER: &str = "/run/netns";
/// Number of names that an error tells.
const SHOWN_NAMES: usize = 10;

fn open(name: &str) -> Result<Box<dyn Place>> {
    Ok(Box::new(Inside::new(format!("netns:{name}"), network(name)?)?))
}

/// The namespace of this name.
pub(super) fn network(name: &str) -> Result<NetNamespace> {
    if name.contains('/') {
        return Err(LiveError::Request(format!("netns:{name}: a name has no slash; `ip netns` lists the names")));
    }
    // The folder itself, or the one above.
    if matches!(name, "" | "." | "..") {
        let names = listed(&names());
        return Err(LiveError::Request(format!("`{name}` is no name of a network namespace{names}")));
    }
    NetNamespace::open(&Path::new(FOLDER).join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LiveError::Request(format!(
            "there is no network namespace `{name}`{}; `ip netns add {name}` makes one",
            listed(&names())
        )),
        _ => LiveError::system(format!("open the network namespace {name}"), error),
    })
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// ", but NAMES" for an error, of some names; empty without any.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(", but {}", names.iter().take(SHOWN_NAMES).cloned().collect::<Vec<_>>().join(", ")),
    }
}
