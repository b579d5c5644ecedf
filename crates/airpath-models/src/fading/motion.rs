// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Movement of a station: the distance travelled as a function of time.
//!
//! A station moves with a constant speed, by a speed profile, or along a route of positions with times, straight and
//! with constant speed from one to the next; behind its last position the station stands. Within a block of slots the speed is that
//! of the block, so that phases turn uniformly; the distance at the beginning of every block is exact.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::{Seconds, Speed};
use super::track::{Position, Track};
use super::{BLOCK, Block};
use crate::problem::Problem;

/// Speed of a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SpeedConfig {
    /// Always the same.
    Constant(Speed),
    /// Times and speeds; between two times the speed changes in a straight line, and the last one stays.
    Profile(Vec<(Seconds, Speed)>),
}

impl Default for SpeedConfig {
    fn default() -> SpeedConfig {
        SpeedConfig::Constant(Speed(0.0))
    }
}

impl SpeedConfig {
    pub(super) fn problems(&self) -> Vec<Problem> {
        let wrong = |message: String| vec![Problem::new("speed", message)];
        let points = match self {
            SpeedConfig::Constant(speed) => &[(Seconds(0.0), *speed)][..],
            SpeedConfig::Profile(points) => points,
        };
        // Beyond this, distances would lose digits within the longest runs.
        if let Some((_, speed)) = points.iter().find(|(_, speed)| !(0.0..=10_000.0).contains(&speed.0)) {
            return wrong(format!("is {speed}; it must be from 0 to 10000 m/s"));
        }
        if points.first().is_none_or(|(time, _)| time.0 != 0.0) {
            return wrong("must begin with the time \"0 s\"".into());
        }
        match points.windows(2).find(|pair| pair[1].0.0 <= pair[0].0.0) {
            Some(pair) => wrong(format!("has times that do not go up: {} follows {}", pair[1].0, pair[0].0)),
            None => Vec::new(),
        }
    }
}

/// The movement.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    /// Time, speed and distance at each point, in seconds, metres per second and metres.
    points: Vec<[f64; 3]>,
    /// True if the speed stays that of a point up to the next, as on a route; else it changes in a straight line.
    has_steps: bool,
    /// Positions at the points of a route.
    positions: Vec<Position>,
    slots_per_second: f64,
}

impl Motion {
    pub(super) fn new(config: &SpeedConfig, slots_per_second: u32) -> Motion {
        let mut points: Vec<[f64; 3]> = Vec::new();
        let given = match config {
            SpeedConfig::Constant(speed) => vec![(Seconds(0.0), *speed)],
            SpeedConfig::Profile(points) => points.clone(),
        };
        for (time, speed) in given {
            let distance = points
                .last()
                .map_or(0.0, |[since, before, distance]| distance + (time.0 - since) * (before + speed.0) * 0.5);
            points.push([time.0, speed.0, distance]);
        }
        let slots_per_second = f64::from(slots_per_second);
        Motion { points, has_steps: false, positions: Vec::new(), slots_per_second }
    }

    pub(super) fn along(track: &Track, slots_per_second: u32) -> Motion {
        let mut points: Vec<[f64; 3]> = Vec::new();
        let mut distance = 0.0;
        for pair in track.points.windows(2) {
            let [(since, here), (until, there)] = [pair[0], pair[1]];
            let metres = here.metres_to(there);
            points.push([since, metres / (until - since), distance]);
            distance += metres;
        }
        points.extend(track.points.last().map(|(time, _)| [*time, 0.0, distance]));
        let positions = track.points.iter().map(|(_, position)| *position).collect();
        Motion { points, has_steps: true, positions, slots_per_second: f64::from(slots_per_second) }
    }

    /// Number of the point at or before `time`, and the time since.
    fn since(&self, time: f64) -> (usize, f64) {
        let place = self.points.partition_point(|[since, ..]| *since <= time) - 1;
        (place, time - self.points[place][0])
    }

    /// The distance travelled at `time`, in metres.
    fn distance(&self, time: f64) -> f64 {
        let (place, past) = self.since(time);
        let [since, speed, distance] = self.points[place];
        let gain = match self.points.get(place + 1) {
            Some([until, then, _]) if !self.has_steps => (then - speed) / (until - since),
            _ => 0.0,
        };
        distance + past * (speed + past * gain * 0.5)
    }

    /// The position in slot number `slot`, on a route.
    pub(super) fn position(&self, slot: u64) -> Option<Position> {
        let (place, past) = self.since(slot as f64 / self.slots_per_second);
        let here = *self.positions.get(place)?;
        let Some(there) = self.positions.get(place + 1) else { return Some(here) };
        let part = past / (self.points[place + 1][0] - self.points[place][0]);
        Some(Position {
            latitude: here.latitude + part * (there.latitude - here.latitude),
            longitude: here.longitude + part * (there.longitude - here.longitude),
        })
    }

    /// Block number `index`.
    pub(super) fn block(&self, index: u64) -> Block {
        let time = |block: u64| (block * BLOCK as u64) as f64 / self.slots_per_second;
        let distance = self.distance(time(index));
        let step = match &self.points[..] {
            // The same for every block, so that models need not turn to sines anew.
            [[_, speed, _]] => speed / self.slots_per_second,
            _ => (self.distance(time(index + 1)) - distance) / BLOCK as f64,
        };
        Block { index, distance, step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_adds_up() {
        let points = vec![(Seconds(0.0), Speed(0.0)), (Seconds(10.0), Speed(20.0)), (Seconds(20.0), Speed(20.0))];
        let motion = Motion::new(&SpeedConfig::Profile(points), 640);
        // From 0 to 20 m/s in 10 s: v²/2a = 100 m; then 20 m/s.
        assert_eq!(motion.distance(5.0), 25.0);
        assert_eq!(motion.distance(10.0), 100.0);
        assert_eq!(motion.distance(30.0), 500.0);
        // A block is a tenth of a second: from 25 m to 26.01 m.
        let block = motion.block(50);
        assert!((block.distance - 25.0).abs() < 1e-12 && (block.step * 64.0 - 1.01).abs() < 1e-12);
    }

    #[test]
    fn a_route_has_its_positions_and_distances() {
        let at = |time, latitude| (time, Position { latitude, longitude: 25.0 });
        let track = Track { points: vec![at(0.0, 60.0), at(10.0, 60.001), at(30.0, 60.002)] };
        let motion = Motion::along(&track, 10);
        // A thousandth of a degree of latitude is 111.195 m: 11.12 m/s, then 5.56 m/s, then rest.
        for (slot, metres, latitude) in
            [(50, 55.597_54, 60.0005), (100, 111.195_08, 60.001), (200, 166.792_62, 60.0015), (999, 222.390_16, 60.002)]
        {
            let distance = motion.distance(slot as f64 / 10.0);
            assert!((distance - metres).abs() < 1e-4, "{slot}: {distance}");
            assert!((motion.position(slot).expect("a route").latitude - latitude).abs() < 1e-12);
        }
    }
}
