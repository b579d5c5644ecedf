// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The network namespace of a process.

use std::io;
use std::path::Path;

use super::inside::Inside;
use super::{Kind, Place};
use crate::error::{LiveError, Result};
use crate::namespaces::NetNamespace;

pub(super) const KIND: Kind =
    Kind { word: "pid", form: "N", purpose: "the network namespace of a process", open: |text, _| open(text) };

fn open(text: &str) -> Result<Box<dyn Place>> {
    let number = text.parse::<u32>().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| LiveError::Request(format!("pid:{text}: `{text}` is not a process id")))?;
    of_process(number, format!("pid:{number}"))
}

/// The namespace of process `number`, which the user calls `name`.
pub(super) fn of_process(number: u32, name: String) -> Result<Box<dyn Place>> {
    let path = format!("/proc/{number}/ns/net");
    let network = NetNamespace::open(Path::new(&path)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LiveError::Request(format!("{name}: there is no process {number}")),
        io::ErrorKind::PermissionDenied => LiveError::Forbidden(format!(
            "{name}: the network of process {number} may not be opened ({error}); run the command as root"
        )),
        _ => LiveError::system(format!("open {path}"), error),
    })?;
    Ok(Box::new(Inside::new(name, network)?))
}
