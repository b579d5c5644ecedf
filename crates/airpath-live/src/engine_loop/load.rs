// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Load of the loop, by the processor time of its thread.

/// Share of a core from which on the loop is under load, in millionths.
const LOAD_PPM: u64 = 500_000;
/// Share below which it is not any more.
const REST_PPM: u64 = 100_000;
/// Interval at which the share is looked at.
const LOOK_NS: u64 = 20_000_000;

/// Load of the loop's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    looked_ns: u64,
    processor_ns: u64,
    is_high: bool,
}

impl Load {
    /// An account that begins now.
    pub const fn since(now_ns: u64, processor_ns: u64) -> Load {
        Load { looked_ns: now_ns, processor_ns, is_high: false }
    }

    /// True if the loop is under load, by its processor time, which is asked for once in a while.
    pub fn is_high(&mut self, now_ns: u64, processor_ns: impl FnOnce() -> u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.looked_ns);
        if elapsed_ns >= LOOK_NS {
            let processor_ns = processor_ns();
            let used_ns = processor_ns.saturating_sub(self.processor_ns);
            let share_ppm = u128::from(used_ns) * 1_000_000 / u128::from(elapsed_ns);
            let limit_ppm = if self.is_high { REST_PPM } else { LOAD_PPM };
            self.is_high = share_ppm >= u128::from(limit_ppm);
            (self.looked_ns, self.processor_ns) = (now_ns, processor_ns);
        }
        self.is_high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_begins_at_half_a_core_and_ends_below_a_tenth() {
        let mut load = Load::since(0, 0);
        let mut used_ns = 0;
        let mut look = |turn: u64, percent: u64| {
            used_ns += LOOK_NS * percent / 100;
            load.is_high(turn * LOOK_NS, || used_ns)
        };
        let shares = [49, 50, 20, 10, 9, 49];
        let high: Vec<bool> = (1..).zip(shares).map(|(turn, percent)| look(turn, percent)).collect();
        assert_eq!(high, [false, true, true, true, false, false]);
        // Between two looks nobody asks the kernel.
        assert!(!load.is_high(6 * LOOK_NS + 1, || unreachable!("too early")));
    }
}
