// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A nested run and the run around it: the inner one asks the outer one how its link has done meanwhile,
//! and the outer one the one around that.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use airpath_log::Around as Answer;
use airpath_log::verdict::Verdict;

use super::client::ActiveRun;
use super::folder::Folder;
use super::protocol::Request;

/// Tells commands where the control of their run is: its number and the folder of its socket.
const VARIABLE: &str = "AIRPATH_RUN";

/// The run around this one, from when it was first asked.
pub struct Around(Result<ActiveRun, String>);

impl Around {
    /// Environment of commands that announces a run by its number and the folder of its control socket; without
    /// a socket it says so, as commands would otherwise ask a run further out.
    pub fn environment(socket: Option<(u32, &Path)>) -> (OsString, OsString) {
        let value = socket.map_or_else(OsString::new, |(number, folder)| {
            let mut value = OsString::from(format!("{number}:"));
            value.push(folder);
            value
        });
        (VARIABLE.into(), value)
    }

    /// Finds the run around this one, and has it remember how its link has done until now.
    pub fn watch() -> Around {
        Around(find().and_then(|mut run| match run.ask(&Request::Watch {}) {
            Ok(_) => Ok(run),
            Err(failure) => Err(failure.to_string()),
        }))
    }

    /// Verdict of the outer run on the time since then.
    pub fn judge(self) -> Answer {
        let asked = self.0.and_then(|mut run| run.ask(&Request::Verdict {}).map_err(|failure| failure.to_string()));
        let judged = asked.and_then(|answer| {
            let verdict: Result<Verdict, _> = serde_json::from_value(answer["verdict"].clone());
            verdict.map_err(|error| format!("its reply is invalid ({error})"))
        });
        match judged {
            Ok(Verdict { grade, reasons }) => Answer::Judged { grade, reasons },
            Err(why) => Answer::Unknown { why },
        }
    }
}

fn find() -> Result<ActiveRun, String> {
    let value = std::env::var_os(VARIABLE).ok_or("it does not announce a control socket")?;
    if value.is_empty() {
        return Err("it has no control socket".into());
    }
    let (number, folder) = read(&value).ok_or(format!("{VARIABLE} is invalid"))?;
    let folder =
        Folder::open(Path::new(folder), false).map_err(|error| format!("its socket cannot be reached ({error})"))?;
    ActiveRun::connect(&folder, number).ok_or_else(|| "it does not answer".into())
}

fn read(value: &OsStr) -> Option<(u32, &OsStr)> {
    let bytes = value.as_bytes();
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let number = std::str::from_utf8(&bytes[..colon]).ok()?.parse().ok()?;
    Some((number, OsStr::from_bytes(&bytes[colon + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_reads_as_it_is_written() {
        assert_eq!(read(OsStr::new("12:/run/user/1000/airpath")), Some((12, OsStr::new("/run/user/1000/airpath"))));
        assert_eq!(read(OsStr::new("12")), None);
        assert_eq!(read(OsStr::new("x:/tmp")), None);
    }
}
