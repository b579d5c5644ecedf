// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Policies: the number of blocks of a frame, and the redundancy of each.
//!
//! Source: Eckhardt and Steenkiste 2002, section 4: BOLD, LIGHT, ROBUST and FLEX. They give shares of redundancy (5 %,
//! 29 %, 0 to 78 %), not bytes, and say of FLEX only that it adapts size and redundancy independently, "according to
//! simple heuristics". The bytes and the heuristics here are Airpath's own; see [`Flex`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::frame::{Arrived, Finding, MOST_BLOCKS, Shape};

/// Choice of blocks and redundancy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// 5 blocks without redundancy.
    Bold,
    /// 5 blocks, of whose 255 bytes 12 are parity: 5 %.
    Light,
    /// 1 block, of whose 255 bytes 74 are parity: 29 %.
    Robust,
    /// 1 to 5 blocks and 0 to 199 parity bytes (78 %), each by what became of the last frames.
    #[default]
    Flex,
    /// As `blocks` and `parity` say.
    Custom,
}

/// Parity bytes of the levels between which FLEX chooses: 0, 5, 9, 19, 29, 43, 59 and 78 % of a block.
const LEVELS: [u8; 8] = [0, 12, 24, 48, 74, 110, 150, 199];

/// Frames that must arrive whole one after the other before a frame may have one block more.
const GROWS_AFTER: u8 = 4;

/// Frames whose corrected bytes count.
const RECENT: usize = 16;

/// The shape of the next frame.
#[derive(Clone, Debug)]
pub enum Adaptation {
    /// It is always the same.
    Fixed(Shape),
    /// It follows the last frames.
    Flex(Flex),
}

impl Adaptation {
    /// The shape of the next frame.
    pub fn shape(&self) -> Shape {
        match self {
            Adaptation::Fixed(shape) => *shape,
            Adaptation::Flex(flex) => flex.shape(),
        }
    }

    /// The shape that takes the fewest bits for a packet.
    pub fn least(&self) -> Shape {
        match self {
            Adaptation::Fixed(shape) => *shape,
            Adaptation::Flex(_) => Shape { blocks: MOST_BLOCKS, parity: 0 },
        }
    }

    /// Learns what became of a frame.
    pub fn learn(&mut self, finding: Finding) {
        if let Adaptation::Flex(flex) = self {
            flex.learn(finding);
        }
    }
}

/// FLEX: size and redundancy, each by its own rule.
///
/// *Size.* A frame that was cut tells how long a frame may be: the next one has as many blocks as arrived whole. One of
/// which nothing arrived halves the number of blocks. After four frames in a row that arrived from beginning to end
/// there is one block more. Errors do not count: against them there is redundancy.
///
/// *Redundancy.* A frame that arrived from beginning to end and could not be decoded raises it by a level: the receiver
/// cannot tell how many bytes were wrong. Of decoded frames it tells the most bytes that it corrected in a block. If
/// twice that number and a quarter more is above the present level, the level that covers it holds at once; after 16
/// decoded frames at one level, in all of which a lower one would have done, the next lower one holds.
#[derive(Clone, Debug)]
pub struct Flex {
    blocks: u8,
    /// Place of the redundancy in `LEVELS`.
    level: usize,
    /// Number of frames in a row that arrived from beginning to end since the size changed.
    whole: u8,
    /// Number of frames decoded since the level changed, and most bytes corrected in a block of them.
    decoded: usize,
    corrected: u8,
}

impl Flex {
    /// The beginning: the longest frames without redundancy.
    pub fn new() -> Flex {
        Flex { blocks: MOST_BLOCKS, level: 0, whole: 0, decoded: 0, corrected: 0 }
    }

    fn shape(&self) -> Shape {
        Shape { blocks: self.blocks, parity: LEVELS[self.level] }
    }

    fn learn(&mut self, finding: Finding) {
        self.learn_size(finding.arrived);
        self.learn_redundancy(finding);
    }

    fn learn_size(&mut self, arrived: Arrived) {
        let blocks = match arrived {
            Arrived::Everything if self.whole + 1 < GROWS_AFTER => {
                self.whole += 1;
                return;
            }
            Arrived::Everything => self.blocks + 1,
            Arrived::Beginning(blocks) => blocks.min(self.blocks),
            Arrived::Nothing => self.blocks / 2,
        };
        self.whole = 0;
        self.blocks = blocks.clamp(1, MOST_BLOCKS);
    }

    fn learn_redundancy(&mut self, finding: Finding) {
        if !finding.is_received {
            if finding.arrived == Arrived::Everything {
                self.go_to(self.level + 1);
            }
            return;
        }
        self.decoded += 1;
        self.corrected = self.corrected.max(finding.corrected);
        let enough = level_for(self.corrected);
        if enough > self.level {
            self.go_to(enough);
        } else if self.decoded >= RECENT {
            let level = if enough < self.level { self.level - 1 } else { self.level };
            self.go_to(level);
        }
    }

    fn go_to(&mut self, level: usize) {
        self.level = level.min(LEVELS.len() - 1);
        (self.decoded, self.corrected) = (0, 0);
    }
}

/// The least level that corrects `corrected` bytes in a block, with a quarter in reserve.
fn level_for(corrected: u8) -> usize {
    let needed = (u32::from(corrected) * 5).div_ceil(2);
    LEVELS.iter().position(|parity| u32::from(*parity) >= needed).unwrap_or(LEVELS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Finding = Finding { is_received: true, arrived: Arrived::Everything, corrected: 0 };
    const UNDECODED: Finding = Finding { is_received: false, ..WHOLE };
    const LOST: Finding = Finding { is_received: false, arrived: Arrived::Nothing, corrected: 0 };

    fn cut(blocks: u8) -> Finding {
        Finding { is_received: false, arrived: Arrived::Beginning(blocks), corrected: 0 }
    }

    fn learn(flex: &mut Flex, findings: &[Finding]) -> (u8, u8) {
        findings.iter().for_each(|finding| flex.learn(*finding));
        (flex.shape().blocks, flex.shape().parity)
    }

    #[test]
    fn levels_are_shares_of_a_block() {
        let shares = LEVELS.map(|parity| (f64::from(parity) * 100.0 / 255.0).round() as u32);
        assert_eq!(shares, [0, 5, 9, 19, 29, 43, 59, 78]);
    }

    #[test]
    fn size_follows_losses_and_cuts() {
        let mut flex = Flex::new();
        assert_eq!(learn(&mut flex, &[WHOLE; 9]), (5, 0));
        assert_eq!(learn(&mut flex, &[cut(3)]), (3, 0));
        assert_eq!(learn(&mut flex, &[WHOLE; 3]), (3, 0));
        assert_eq!(learn(&mut flex, &[WHOLE; 1]), (4, 0));
        assert_eq!(learn(&mut flex, &[LOST]), (2, 0));
        assert_eq!(learn(&mut flex, &[WHOLE, WHOLE, WHOLE, LOST, WHOLE, WHOLE, WHOLE]), (1, 0));
        assert_eq!(learn(&mut flex, &[LOST, cut(0)]), (1, 0));
        // A frame of fewer blocks than the size tells no size above it.
        assert_eq!(learn(&mut flex, &[cut(4)]), (1, 0));
        assert_eq!(learn(&mut flex, &[WHOLE; 16]), (5, 0));
    }

    #[test]
    fn redundancy_follows_errors() {
        let mut flex = Flex::new();
        assert_eq!(learn(&mut flex, &[UNDECODED]), (5, 12));
        assert_eq!(learn(&mut flex, &[UNDECODED, UNDECODED]), (5, 48));
        let corrected = |corrected| Finding { corrected, ..WHOLE };
        // 19 bytes take 38 parity bytes, with a quarter in reserve 47.5; 20 take 50.
        assert_eq!(learn(&mut flex, &[corrected(19)]), (5, 48));
        assert_eq!(learn(&mut flex, &[corrected(20)]), (5, 74));
        assert_eq!(learn(&mut flex, &[corrected(1); 15]), (5, 74));
        assert_eq!(learn(&mut flex, &[corrected(1); 1]), (5, 48));
        // Of the last 16 frames one needed the level.
        let mut frames = [WHOLE; 16];
        frames[7] = corrected(12);
        assert_eq!(learn(&mut flex, &frames), (5, 48));
        assert_eq!(learn(&mut flex, &[WHOLE; 47]), (5, 12));
        assert_eq!(learn(&mut flex, &[WHOLE; 1]), (5, 0));
        assert_eq!(learn(&mut flex, &[UNDECODED; 20]), (5, 199));
        assert_eq!(learn(&mut flex, &[LOST, LOST, cut(1)]), (1, 199));
    }
}
