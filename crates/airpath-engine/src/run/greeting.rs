// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Banner of a shell behind a link, and the name of the link in its prompt.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;

use airpath_models::MachineConfig;

use super::round_trip::idle_round_trip;
use crate::cli::LinkArgs;
use crate::terminal::say;

/// Variable that tells the commands of a shell the name of the link.
const LINK_VARIABLE: &str = "AIRPATH_LINK";
/// Characters of a name in a prompt.
const LONGEST_NAME: usize = 40;

/// Greets at the terminal, if there is one; returns the variables by which `shell` shows the link in its prompt.
pub fn greet(args: &LinkArgs, name: Option<&str>, machine: &MachineConfig, shell: &OsStr) -> Vec<(OsString, OsString)> {
    let link = named(args, name);
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let round_trip = idle_round_trip(machine).map(|time| format!(" (round trip {time} while idle)"));
        say!(
            "airpath: this shell is behind {link}{}; `server` is the other end, and `exit` leaves it",
            round_trip.unwrap_or_default()
        );
    }
    prompt(&link, shell)
}

/// The name of the link: its profile or scenario, and the options that change it.
fn named(args: &LinkArgs, name: Option<&str>) -> String {
    let of_file = || args.scenario.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let base = args.profile.clone().or_else(|| args.scenario.as_ref().and(name).map(str::to_owned)).or_else(of_file);
    let option = |word: &str, value: &Option<String>| value.as_ref().map(|value| format!("{word}{value}"));
    let options = [
        option("", &args.rate),
        option("", &args.delay),
        option("jitter ", &args.jitter),
        option("loss ", &args.loss),
        option("queue ", &args.queue),
    ];
    let parts: Vec<String> = base.into_iter().chain(options.into_iter().flatten()).collect();
    let all = if parts.is_empty() { "a link without delay or loss".to_owned() } else { parts.join(", ") };
    // It becomes part of a prompt, in which shells expand much.
    let plain = |c: &char| c.is_alphanumeric() || " -_./:,%+".contains(*c);
    all.chars().filter(plain).take(LONGEST_NAME).collect()
}

fn prompt(link: &str, shell: &OsStr) -> Vec<(OsString, OsString)> {
    let kind = Path::new(shell).file_name().unwrap_or(shell).to_string_lossy().into_owned();
    let told = match kind.as_str() {
        // Its start-up files set the prompt, so that it is changed when it is shown.
        "bash" => {
            let command = format!("case $PS1 in '[{link}] '*) ;; *) PS1='[{link}] '$PS1 ;; esac");
            Some(("PROMPT_COMMAND", command))
        }
        "sh" | "dash" | "ash" | "ksh" | "mksh" => Some(("PS1", format!("[{link}] $ "))),
        "zsh" => Some(("PS1", format!("[{}] %# ", link.replace('%', "%%")))),
        _ => None,
    };
    let variable = |(name, value): (&str, String)| (name.into(), value.into());
    told.into_iter().map(variable).chain([(LINK_VARIABLE.into(), link.into())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(profile: Option<&str>, delay: Option<&str>) -> LinkArgs {
        LinkArgs { profile: profile.map(str::to_owned), delay: delay.map(str::to_owned), ..LinkArgs::default() }
    }

    #[test]
    fn a_link_is_called_by_its_profile_and_options() {
        assert_eq!(named(&args(Some("lte-good"), None), Some("LTE")), "lte-good");
        assert_eq!(named(&args(None, Some("20 ms")), None), "20 ms");
        assert_eq!(named(&args(Some("lte-good"), Some("20 ms")), None), "lte-good, 20 ms");
        let file = LinkArgs { scenario: Some("a/train$(x)'.toml".into()), ..LinkArgs::default() };
        assert_eq!(named(&file, None), "trainx");
        assert_eq!(named(&file, Some("train")), "train");
    }

    #[test]
    fn each_shell_is_told_in_its_way() {
        let of = |shell: &str| prompt("x", OsStr::new(shell)).first().map(|(name, _)| name.clone());
        assert_eq!(of("/bin/bash"), Some("PROMPT_COMMAND".into()));
        assert_eq!(of("/bin/dash"), Some("PS1".into()));
        assert_eq!(of("fish"), Some(LINK_VARIABLE.into()));
    }
}
