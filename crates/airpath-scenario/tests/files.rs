// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files that scenarios name: where they are looked for, what is said when they are wrong, and under
//! which names they are printed.

use std::path::Path;

use airpath_models::channel::ErrorProcessConfig;
use airpath_scenario::Scenario;

fn scenario(folder: &Path, errors: &str) -> Result<Scenario, String> {
    let text = format!("[[hops]]\n[hops.uplink]\nerrors = {errors}\n");
    let origin = folder.join("scenario.toml");
    Scenario::from_toml(&text, origin.to_str().unwrap()).map_err(|report| report.to_string())
}

#[test]
fn what_is_wrong_is_told_with_scenario_line_key_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    write("words", b"ok 3\n\nbroken\n");
    write("binary", &[0, 1, 1, 4]);
    write("empty", b"");
    write("positions", b"1 2\n5 # five\n4\n");
    write("walk", b"ok\ntruncated 40\n");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let file = |name: &str| format!("`{}`", folder.path().join(name).display());
    let trace = |name: &str| format!("{{ type = \"trace\", file = \"{name}\" }}");
    let table = [
        (trace("nowhere"), "errors.file", format!("cannot read {}: No such file", file("nowhere"))),
        (trace("folder"), "errors.file", format!("{} is not a file", file("folder"))),
        (trace("words"), "errors.file", "`words` is no error trace: line 3: `broken` is no record".into()),
        (trace("binary"), "errors.file", "`binary` is no error trace: byte 3 of this binary trace is 4".into()),
        (trace("empty"), "errors.file", "`empty` is no error trace: there is no record in it".into()),
        (
            "{ type = \"positions\", file = \"positions\" }".into(),
            "errors.file",
            "`positions` is no list of positions: line 3: 4 comes after 5".into(),
        ),
        (
            "{ type = \"trace\", file = \"walk\", per = \"bit\" }".into(),
            "errors.file",
            "loses, truncates or flips, which is not done to single bits".into(),
        ),
        (
            "{ type = \"positions\", positions = \"3-1\" }".into(),
            "errors.positions",
            "the run 3-1 ends before it begins".into(),
        ),
        ("{ type = \"positions\" }".into(), "errors.positions", "are missing: write for example".into()),
        (
            "{ type = \"positions\", positions = \"3\", file = \"positions\" }".into(),
            "errors.file",
            "is no list of positions".into(),
        ),
        (
            "{ type = \"positions\", positions = \"3\", repeat = 3 }".into(),
            "errors.repeat",
            "is 3, so that position 3 would never come; write at least 4".into(),
        ),
        (
            "{ type = \"pattern\", burst = 6, every = 5 }".into(),
            "errors.burst",
            "is 6; of every 5 at least 1 is hit".into(),
        ),
        (
            "{ type = \"four_state\", gap_to_burst = 0.7, isolated_loss = 0.4 }".into(),
            "errors.isolated_loss",
            "and gap_to_burst are more than 1 together".into(),
        ),
        (
            "{ type = \"bernoulli\", probability = 1, kept = \"4 bytes\" }".into(),
            "errors.kept",
            "has no meaning without effect = \"truncate\"".into(),
        ),
        (
            "{ type = \"bernoulli\", probability = 1, per = \"bit\", effect = \"truncate\", kept = \"4 bytes\" }"
                .into(),
            "errors.kept",
            "has no meaning per bit".into(),
        ),
    ];
    for (errors, key, told) in table {
        let report = scenario(folder.path(), &errors).unwrap_err();
        let place = format!("{}:3:", folder.path().join("scenario.toml").display());
        assert!(report.starts_with(&place), "{errors}: {report}");
        assert!(report.contains(&format!("radio.uplink.{key}: ")), "{errors}: {report}");
        assert!(report.contains(&told), "{errors}: {report}");
    }
}

#[test]
fn files_are_beside_the_scenario_and_printed_as_written_or_as_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("traces")).unwrap();
    std::fs::write(folder.path().join("traces/a"), "0110").unwrap();
    std::fs::write(folder.path().join("traces/b"), "3 5-6").unwrap();
    let text = "[[hops]]\n[hops.link]\nerrors = { type = \"trace\", file = \"traces/a\" }\n\
                [[states]]\nname = \"later\"\nat = \"1 s\"\n\
                set = { \"radio.uplink.errors\" = { type = \"positions\", file = \"traces/b\", per = \"bit\" } }\n";
    let origin = folder.path().join("scenario.toml");
    let scenario = Scenario::from_toml(text, origin.to_str().unwrap()).unwrap();
    let [a, b] = ["traces/a", "traces/b"].map(|name| folder.path().join(name));
    assert_eq!(scenario.files().unwrap(), [a.clone(), b]);
    let printed = scenario.to_toml().unwrap();
    assert!(printed.contains("file = \"traces/a\"") && printed.contains("file = \"traces/b\""), "{printed}");
    let again = Scenario::from_toml(&printed, origin.to_str().unwrap()).unwrap();
    assert_eq!(again.paths().unwrap(), scenario.paths().unwrap());
    // Only the first is called something else; printing changes nothing in the scenario itself.
    let name = |path: &Path| (path == a).then(|| "files/a".to_string());
    let renamed = scenario.to_toml_with_files(&name).unwrap();
    assert!(renamed.contains("file = \"files/a\"") && renamed.contains("file = \"traces/b\""), "{renamed}");
    assert_eq!(scenario.to_toml().unwrap(), printed);
    // Both directions share what was read.
    let paths = scenario.paths().unwrap();
    let hop = &paths[0].config.hops[0];
    let [ErrorProcessConfig::Trace(up), ErrorProcessConfig::Trace(down)] =
        [&hop.uplink, &hop.downlink].map(|link| &link.errors.process)
    else {
        panic!("{hop:?}")
    };
    assert!(std::sync::Arc::ptr_eq(up.file.data(), down.file.data()));
}
