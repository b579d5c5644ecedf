// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Computes.

use std::hint::black_box;
use std::io;

use super::{Kind, Work};

struct Cpu(u64);

impl Work for Cpu {
    fn step(&mut self) -> io::Result<()> {
        for _ in 0..100_000 {
            self.0 = black_box(self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        Ok(())
    }
}

pub const KIND: Kind = Kind { name: "cpu", what: "computes all the time", prepare: || Ok(Box::new(Cpu(1))) };
