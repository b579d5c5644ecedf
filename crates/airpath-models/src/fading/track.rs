// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Routes: positions with times, read from GPX 1.1 (Topografix 2004).
//!
//! The points of all tracks, or else of all routes, in the order of the file, each with a `time`. Elevations have no
//! effect. Distances are those on a sphere of the mean radius of the earth, 6371.0088 km (haversine formula, Sinnott
//! 1984).

use roxmltree::{Document, Node};

use crate::file::FileFormat;

const EARTH_RADIUS_METRES: f64 = 6_371_008.8;

/// A place on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

impl Position {
    /// Distance over ground, in metres.
    pub(super) fn metres_to(self, other: Position) -> f64 {
        let half_sine = |one: f64, two: f64| {
            let sine = libm::sin((two - one).to_radians() / 2.0);
            sine * sine
        };
        let north = half_sine(self.latitude, other.latitude);
        let east = half_sine(self.longitude, other.longitude);
        let narrowing = libm::cos(self.latitude.to_radians()) * libm::cos(other.latitude.to_radians());
        2.0 * EARTH_RADIUS_METRES * libm::asin(libm::sqrt((north + narrowing * east).min(1.0)))
    }
}

/// A route: times in seconds since the first point, and positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// At least two, with increasing times.
    pub points: Vec<(f64, Position)>,
}

impl FileFormat for Track {
    const WHAT: &'static str = "GPX route";

    fn parse(bytes: &[u8]) -> Result<Track, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| format!("it is no text: {error}"))?;
        let document = Document::parse(text).map_err(|error| format!("line {}: {error}", error.pos().row))?;
        let line = |node: Node<'_, '_>| document.text_pos_at(node.range().start).row;
        if document.root_element().tag_name().name() != "gpx" {
            return Err(format!("line {}: it does not begin with <gpx>", line(document.root_element())));
        }
        let all = |name: &'static str| document.descendants().filter(move |node| node.tag_name().name() == name);
        let name = if all("trkpt").next().is_some() { "trkpt" } else { "rtept" };
        let mut points: Vec<(f64, Position)> = Vec::new();
        let mut begin = None;
        for node in all(name) {
            let wrong = |what: String| format!("line {}: {what}", line(node));
            let degrees = |key: &str, most: f64| {
                let text = node.attribute(key).ok_or_else(|| wrong(format!("the point has no `{key}`")))?;
                let degrees = text.trim().parse::<f64>().ok().filter(|degrees| degrees.abs() <= most);
                degrees.ok_or_else(|| wrong(format!("`{key}` is `{text}`; it must be from -{most} to {most} degrees")))
            };
            let position = Position { latitude: degrees("lat", 90.0)?, longitude: degrees("lon", 180.0)? };
            let time = node.children().find(|child| child.tag_name().name() == "time");
            let time = time.ok_or_else(|| wrong("the point has no <time>".into()))?;
            let text = time.text().unwrap_or_default().trim();
            let millis = instant(text).ok_or_else(|| {
                format!("line {}: the time is `{text}`; write it as 2026-11-24T11:30:00Z", line(time))
            })?;
            let since = (millis - *begin.get_or_insert(millis)) as f64 / 1000.0;
            if points.last().is_some_and(|(before, _)| *before >= since) {
                return Err(format!("line {}: the time {text} is not after that of the point before", line(time)));
            }
            points.push((since, position));
        }
        match points.len() {
            0 => Err("it has no points (<trkpt> or <rtept>)".into()),
            1 => Err("it has one point; a movement needs two".into()),
            _ => Ok(Track { points }),
        }
    }
}

/// Milliseconds from 1 January of year 0 to an instant of ISO 8601, such as 2026-11-24T11:30:00.5+02:00.
fn instant(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once('T')?;
    let numbers = |text: &str, separator: char| -> Option<[i64; 3]> {
        let mut words = text.split(separator).map(|word| {
            let plain = !word.is_empty() && word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
            if plain { word.parse::<i64>().ok() } else { None }
        });
        let all = [words.next()??, words.next()??, words.next()??];
        words.next().is_none().then_some(all)
    };
    let (clock, offset) = match rest.find(['Z', '+', '-']) {
        Some(place) => (&rest[..place], &rest[place..]),
        // GPX times are in UTC.
        None => (rest, "Z"),
    };
    let offset_minutes = match offset {
        "Z" => 0,
        _ => {
            let [hours, minutes, _] = numbers(&format!("{}:0", &offset[1..]), ':')?;
            (hours * 60 + minutes) * if offset.starts_with('-') { -1 } else { 1 }
        }
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(clock, ':')?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !fits {
        return None;
    }
    // Days before the year, where a year begins in March so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day;
    Some((((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second) * 1000 + (fraction * 1000.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpx(points: &str) -> Result<Track, String> {
        let head = r#"<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1">"#;
        Track::parse(format!("<?xml version=\"1.0\"?>\n{head}<trk><trkseg>\n{points}</trkseg></trk></gpx>").as_bytes())
    }

    #[test]
    fn points_and_times_are_read() {
        let track = gpx("<trkpt lat=\"60\" lon=\"24.9\"><ele>3</ele><time>2024-02-28T23:59:59.5Z</time></trkpt>\n\
             <trkpt lat=\"60.01\" lon=\"24.9\"><time>2024-03-01T02:00:01+02:00</time></trkpt>\n")
        .unwrap();
        // From 28 February to 1 March of a leap year is a day more: 86,401.5 s.
        assert_eq!(track.points[1].0, 86_401.5);
        // A hundredth of a degree of latitude: 6,371,008.8 m·π/18,000 = 1111.95 m.
        let [(_, one), (_, two)] = track.points[..] else { panic!("two points") };
        assert!((one.metres_to(two) - 1_111.950_802).abs() < 1e-5, "{}", one.metres_to(two));
        // A degree of longitude at 60 degrees north is half as long as at the equator, nearly.
        let at = |latitude, longitude| Position { latitude, longitude };
        let ratio = at(60.0, 1.0).metres_to(at(60.0, 1.01)) / at(0.0, 1.0).metres_to(at(0.0, 1.01));
        assert!((ratio - 0.5).abs() < 1e-6, "{ratio}");
    }

    #[test]
    fn bad_files_are_told_with_their_line() {
        let point = |lat: &str, time: &str| format!("<trkpt lat=\"{lat}\" lon=\"2\"><time>{time}</time></trkpt>\n");
        let good = point("1", "2024-01-01T00:00:00Z");
        for (points, says) in [
            (good.clone(), "one point"),
            (String::new(), "no points"),
            (good.clone() + &point("x", "2024-01-01T00:00:01Z"), "line 4: `lat` is `x`"),
            (good.clone() + &point("NaN", "2024-01-01T00:00:01Z"), "line 4: `lat` is `NaN`"),
            (good.clone() + &point("91", "2024-01-01T00:00:01Z"), "line 4: `lat` is `91`"),
            (good.clone() + &point("1", "yesterday"), "line 4: the time is `yesterday`"),
            (good.clone() + &point("1", "2024-13-01T00:00:00Z"), "line 4: the time is"),
            (good.clone() + &point("1", "2024-01-01T00:00:00.9e999Z"), "line 4: the time is"),
            (good.clone() + &good, "line 4: the time 2024-01-01T00:00:00Z is not after"),
            (good.clone() + "<trkpt lat=\"1\"/>", "line 4: the point has no `lon`"),
            (good.clone() + "<trkpt lat=\"1\" lon=\"1\"/>", "line 4: the point has no <time>"),
            (good + "<trkpt", "line 4:"),
        ] {
            let error = gpx(&points).unwrap_err();
            assert!(error.contains(says), "{error} for {says}");
        }
        assert!(Track::parse(b"<kml/>").unwrap_err().contains("line 1"));
        assert!(Track::parse(b"\xff").is_err() && Track::parse(b"").is_err());
    }
}
