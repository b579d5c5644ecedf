// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The machine that models nothing: what the loop and the ports cost by themselves.

use airpath_core::{Command, CommandError, Cx, Item, Machine, PortId, Time};

/// Passes everything on at the instant at which it is offered.
#[derive(Debug, Default)]
pub struct Pass {
    waiting: Vec<(Time, PortId, Item)>,
}

impl Machine for Pass {
    fn offer(&mut self, at: Time, port: PortId, item: Item, _: &mut Cx<'_>) {
        let far = if port == PortId::CLIENT { PortId::SERVER } else { PortId::CLIENT };
        self.waiting.push((at, far, item));
    }

    fn control(&mut self, _: Time, _: &Command, _: &mut Cx<'_>) -> Result<(), CommandError> {
        Err(CommandError::Mismatch("it has no parameters".into()))
    }

    fn advance(&mut self, _: Time, cx: &mut Cx<'_>) {
        for (at, port, item) in self.waiting.drain(..) {
            cx.emit(at, port, item);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.waiting.first().map(|(at, ..)| *at)
    }

    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
}
