// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Exit statuses of Airpath's own, declared here and nowhere else. A command behind a link keeps its own.
//!
//! What a user has to do differs from status to status. Those that tell of the machine rather than of what was typed
//! are above 120, as those of `env`, `timeout` and `docker run` are, because programs behind a link seldom end with
//! such a status themselves.

/// An exit status.
#[derive(Clone, Copy, Debug)]
pub struct ExitStatus {
    /// Its name, for programs.
    pub name: &'static str,
    /// The number.
    pub status: i32,
    /// Meaning, and what to do.
    pub meaning: &'static str,
}

macro_rules! statuses {
    ($($constant:ident $name:literal $status:literal $meaning:literal)*) => {
        $(#[doc = $meaning] pub const $constant: i32 = $status;)*

        /// All of them.
        pub const ALL: &[ExitStatus] =
            &[$(ExitStatus { name: $name, status: $constant, meaning: $meaning }),*];
    };
}

statuses! {
    DONE "done" 0
        "Everything was done."
    UNDONE "undone" 1
        "A workload, a transfer, a check, a comparison or an expectation did not come out as it should, or there is nothing to show."
    USAGE "usage" 2
        "A mistake in what was typed, or in a file that it names: one that is not there, cannot be read, or holds something wrong. Nothing was run."
    NOT_TRUSTED "not_trusted" 3
        "With `--strict`: a verdict is not `trusted`."
    DAMAGED "damaged" 4
        "Files of a run are damaged; the rest was shown."
    UNWRITABLE "unwritable" 122
        "Output cannot be written: no permission, no such folder, no space."
    LACKING "lacking" 123
        "Something is not installed or not permitted here: a package, a program, the kernel for virtual time, namespaces. The message says how to get it."
    NOT_READY "not_ready" 124
        "The server's command ended, or did not listen in time, before the client's began."
    FAILED "failed" 125
        "Airpath itself failed."
    NOT_STARTED "not_started" 126
        "The command could not be started."
    NOT_FOUND "not_found" 127
        "The command was not found."
    INTERRUPTED "interrupted" 130
        "Interrupted by Ctrl-C; 128 plus the number of the signal in general."
}

const _: () = assert!(FAILED == airpath_live::supervise::ENGINE_FAILED_STATUS);

/// Status of a run that signal `number` ended.
pub const fn of_signal(number: i32) -> i32 {
    128 + number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_share_a_number_or_a_name() {
        for (index, one) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.status != one.status && other.name != one.name), "{one:?}");
        }
        assert_eq!(of_signal(libc::SIGINT), INTERRUPTED);
        assert!(ALL.is_sorted_by_key(|one| one.status), "as the table in the documents");
    }
}
