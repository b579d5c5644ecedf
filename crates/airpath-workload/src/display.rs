// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Writes a workload as the text that reads as the same.

use std::fmt;

use airpath_core::Span;

use crate::Workload;
use crate::words::quoted;

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let name = self.name.iter().map(|name| ("name", name.clone()));
        let user = self.user.iter().map(|user| ("user", user.clone()));
        let start = (self.start != Span::ZERO).then(|| ("start", self.start.to_string()));
        for (key, value) in name.chain(user).chain(start).chain(self.kind.pairs()) {
            write!(f, " {key}={}", quoted(&value))?;
        }
        Ok(())
    }
}
