// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The network of a container, which its runtime knows by the container's first process.

use std::io;
use std::process::{Command, Stdio};

use super::process::of_process;
use super::{Kind, Place};
use crate::error::{LiveError, Result};

pub(super) const DOCKER: Kind = Kind {
    word: "docker",
    form: "NAME",
    purpose: "a running container of Docker, by name or id",
    open: |name, _| open("docker", name),
};

pub(super) const PODMAN: Kind = Kind {
    word: "podman",
    form: "NAME",
    purpose: "a running container of Podman, by name or id",
    open: |name, _| open("podman", name),
};

fn open(runtime: &str, name: &str) -> Result<Box<dyn Place>> {
    let words = ["inspect", "--type", "container", "--format", "{{.State.Pid}}", "--", name];
    let asked = Command::new(runtime).args(words).stdin(Stdio::null()).output();
    let answer = asked.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LiveError::Missing(format!(
            "{runtime}:{name}: `{runtime}` is not installed; name the container's process instead, as pid:N"
        )),
        _ => LiveError::system(format!("start `{runtime}`"), error),
    })?;
    let told = String::from_utf8_lossy(&answer.stdout);
    match (answer.status.success(), told.trim().parse::<u32>()) {
        (true, Ok(0)) => Err(LiveError::Request(format!(
            "{runtime}:{name}: the container is not running; `{runtime} start {name}` starts it"
        ))),
        (true, Ok(number)) => of_process(number, format!("{runtime}:{name}")),
        _ => {
            let why = String::from_utf8_lossy(&answer.stderr);
            let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or("no answer").trim();
            Err(LiveError::Request(format!(
                "{runtime}:{name}: `{runtime} inspect` gives no container of that name ({why}); `{runtime} ps` lists those that run"
            )))
        }
    }
}
