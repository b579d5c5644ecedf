// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Scenarios: TOML with units in strings, read into the typed configuration of paths.
//!
//! [`Scenario::from_toml`] reads a file, [`Scenario::profile`] a built-in profile;
//! [`Scenario::set`] and [`Scenario::apply_plain`] change parameters by name, and
//! [`Scenario::machine`] gives what the models run: a path, or a cell of users that share media. Whatever is wrong comes as a [`Report`]: every
//! problem with its line, its key, and the nearest thing that would be right.
//!
//! How parameters combine, everywhere:
//!
//! - The defaults come first, then `[hops.link]` (both directions), then `[hops.uplink]` or
//!   `[hops.downlink]`, then what is set by name; the later wins, key by key.
//! - A table within (`queue`, `errors`, `fragmentation`) that names its `type` replaces the earlier
//!   one as a whole; one that does not changes single keys of it. Changing `type` alone keeps those
//!   keys which the new type has too.
//! - An optional key is taken away again by `"none"`.
//! - A state is the parameters of the beginning plus its own `set`, whatever state came before.

mod advice;
mod attachment;
mod background;
mod blackout;
mod build;
mod check;
mod document;
mod files;
mod format;
mod hosts;
mod independent;
mod keys;
mod locate;
mod machine;
mod media;
mod merge;
mod named;
mod parameter;
mod place;
mod placement;
mod plain;
mod print;
mod profiles;
mod read;
mod report;
mod running;
mod scenario;
mod states;
mod synonyms;
mod toml_text;
mod tree;

pub use format::schema;
pub use hosts::{HERE, HostConfig, Part, UdpConfig};
pub use independent::IndependentLink;
pub use plain::PlainOptions;
pub use profiles::{Profile, ProfileSummary, profile_text, profiles};
pub use report::{Diagnostic, Report};
pub use running::Running;
pub use scenario::{NamedPath, ONLY_HOP, Scenario};
