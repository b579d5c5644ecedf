// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The same link in ns-3, compiled here and now from a program of ours.

use std::process::{Command, Output};

use tempfile::TempDir;

const SOURCE: &str = include_str!("../../../ns3/point_to_point.cc");

/// The program, ready to run.
pub struct Ns3 {
    folder: TempDir,
}

/// The last line that a program has complained with.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().find(|line| line.contains("error")).or_else(|| text.lines().last()).unwrap_or("").trim().to_owned()
}

impl Ns3 {
    /// Compiles the program.
    ///
    /// # Errors
    /// Why it cannot be had, in a sentence.
    pub fn build() -> Result<Ns3, String> {
        Ns3::build_with("g++")
    }

    fn build_with(compiler: &str) -> Result<Ns3, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let source = folder.path().join("point_to_point.cc");
        std::fs::write(&source, SOURCE).map_err(|error| format!("the source cannot be written: {error}"))?;
        let output = Command::new(compiler)
            .args(["-O2", "-std=c++17", "-o"])
            .args([&folder.path().join("point_to_point"), &source])
            .args(["-lns3-point-to-point", "-lns3-network", "-lns3-core"])
            .output()
            .map_err(|error| format!("{compiler} cannot be run ({error}); install g++ and libns3-dev"))?;
        if !output.status.success() {
            return Err(format!("it does not compile ({}); install libns3-dev", complaint(&output)));
        }
        Ok(Ns3 { folder })
    }

    /// Nanoseconds of processor time for a packet, over `links` links that share `packets` packets.
    ///
    /// # Errors
    /// When it cannot be run, or does not deliver every packet.
    pub fn cost_ns(&self, packets: u64, links: u64) -> Result<f64, String> {
        let output = Command::new(self.folder.path().join("point_to_point"))
            .args([packets.to_string(), links.to_string()])
            .output()
            .map_err(|error| format!("it cannot be run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [received, processor_ns] = numbers[..] else {
            return Err(format!("it says nothing of use: {}", complaint(&output)));
        };
        let sent = packets / links * links;
        if received != sent {
            return Err(format!("it delivered {received} of {sent} packets"));
        }
        Ok(processor_ns as f64 / sent as f64)
    }

    /// The version of the Debian package, if it is one.
    pub fn version() -> String {
        let output = Command::new("dpkg-query").args(["-W", "-f=${Version}", "libns3-dev"]).output();
        match output {
            Ok(output) if output.status.success() => {
                format!("ns-3 {}, Debian's package", String::from_utf8_lossy(&output.stdout).trim())
            }
            _ => "ns-3 of this machine".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let why = |compiler| Ns3::build_with(compiler).err().unwrap();
        assert!(why("no-such-compiler").contains("no-such-compiler cannot be run"), "{}", why("no-such-compiler"));
        // Something that fails without a word, as a compiler without ns-3's headers does with many.
        assert!(why("false").contains("install libns3-dev"), "{}", why("false"));
    }
}
