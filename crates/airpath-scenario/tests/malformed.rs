// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Malformed scenarios: what is said about each.
//!
//! Every file ends with `# expect: FRAGMENT` lines; each fragment is part of the report.

use airpath_scenario::Scenario;

#[test]
fn every_malformed_scenario_is_explained() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/malformed");
    let (mut count, mut failures) = (0, String::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# expect: ")).collect();
        assert!(!expected.is_empty(), "{path:?} expects nothing");
        count += 1;
        let report = match Scenario::from_toml(&text, "FILE") {
            Ok(_) => "no problem at all".to_string(),
            Err(report) => report.to_string(),
        };
        for fragment in expected.iter().filter(|fragment| !report.contains(**fragment)) {
            failures += &format!("\n{path:?}: expected\n  {fragment}\nin\n{report}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(count >= 30, "only {count} files");
}

#[test]
fn a_report_points_at_what_is_wrong() {
    let text = "[[hops]]\n[hops.link]\npropagation = \"20 msec\" # é\n";
    let report = Scenario::from_toml(text, "my.toml").unwrap_err();
    assert_eq!(
        report.to_string(),
        "my.toml:3:15: radio.link.propagation: `msec` is not a unit of time (h, min, s, ms, us, ns); did you mean \
         `ms`?; write for example \"200 ms\"\n   3 | propagation = \"20 msec\" # é\n     |               ^^^^^^^^^"
    );
    let problem = &report.problems()[0];
    assert_eq!((problem.line, problem.column, problem.key.as_str()), (Some(3), Some(15), "radio.link.propagation"));
}
