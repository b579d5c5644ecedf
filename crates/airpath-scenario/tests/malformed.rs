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

#[test]
fn a_long_line_is_shown_around_the_place() {
    let spaces = " ".repeat(300);
    let text = format!("[[hops]]\nlink = {{{spaces}propagation = \"20 msec\"{spaces}}}\n");
    let report = Scenario::from_toml(&text, "my.toml").unwrap_err();
    assert_eq!((report.problems()[0].line, report.problems()[0].column), (Some(2), Some(323)));
    let shown = report.to_string();
    let [_, line, mark] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    let place = |text: &str, of: &str| text.split(of).next().unwrap().chars().count();
    assert_eq!(place(line, "\"20 msec\""), place(mark, "^"), "{shown}");
    assert!(line.starts_with("   2 | … ") && line.ends_with(" …") && mark.ends_with(" ^^^^^^^^^"), "{shown}");
    // A mistake every few characters: were the line kept with each, they would take memory as its square.
    let text = format!("[[hops]]\nqueue = {{ type = {}\n", "\"".repeat(20_000));
    let problems = Scenario::from_toml(&text, "my.toml").unwrap_err().problems().to_vec();
    assert_eq!(problems.len(), 1_000, "of some thousands");
    let longest = problems.iter().map(|problem| problem.to_string().len()).max();
    assert!(longest < Some(2_000), "{longest:?}");
}
