// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Runs the example `passthrough` as root and as an ordinary user, and looks
//! for what it might leave behind.

#![allow(dead_code)] // Each test program uses its part of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Generous: only a hang should meet it.
pub const PATIENCE: Duration = Duration::from_secs(60);

const MARKER: &str = "AIRPATH_TEST_MARKER";

/// User who runs the example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests.
    Own,
    /// Nobody, by setpriv (only when root runs the tests).
    Nobody,
}

/// A copy of the example that everybody may execute, and a marker by which
/// all processes of a test are known.
pub struct Bench {
    directory: tempfile::TempDir,
    marker: String,
}

impl Bench {
    pub fn new(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let copy = directory.path().join("passthrough");
        // By another process: a descriptor open for writing here could be
        // inherited by a test that starts something just then, and a file
        // open for writing cannot be executed.
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(example()).arg(&copy);
        assert!(install.status().unwrap().success());
        let marker = format!("{name}-{}", std::process::id());
        Self { directory, marker }
    }

    /// Writes a file that commands can read.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn program(&self) -> PathBuf {
        self.directory.path().join("passthrough")
    }

    /// The example with `arguments`, to be run by `user`.
    pub fn command(&self, user: User, arguments: &[&str]) -> Command {
        let mut command = match user {
            User::Own => Command::new(self.program()),
            User::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(self.program());
                command
            }
        };
        command
            .args(arguments)
            .env(MARKER, &self.marker)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end, and checks that nothing is left.
    pub fn run(&self, user: User, arguments: &[&str]) -> Output {
        let child = self.command(user, arguments).spawn().unwrap();
        let output = finish(child);
        self.assert_nothing_left();
        output
    }

    /// The pids of living processes that this test started.
    pub fn processes(&self) -> BTreeSet<i32> {
        let wanted = format!("{MARKER}={}", self.marker);
        let mut found = BTreeSet::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
                found.insert(pid);
            }
        }
        found
    }

    /// Waits until no process of this test lives; anonymous namespaces live no
    /// longer than processes, and interfaces no longer than namespaces.
    pub fn assert_nothing_left(&self) {
        let begun = Instant::now();
        while !self.processes().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "processes are left: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(10));
        }
        let interfaces = interfaces();
        assert!(!interfaces.iter().any(|name| name.starts_with("airpath")), "interfaces are left: {interfaces:?}");
    }

    /// Waits for a command inside to create this file.
    pub fn wait_for_file(&self, path: &Path) {
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < PATIENCE, "{path:?} never appeared");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A directory that every user may write to.
    pub fn shared_directory(&self) -> PathBuf {
        let path = self.directory.path().join("shared");
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        path
    }
}

/// Waits with a limit, and returns everything it wrote.
pub fn finish(mut child: Child) -> Output {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn interfaces() -> BTreeSet<String> {
    fs::read_dir("/sys/class/net")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Users that can be tested here, with their ports.
pub fn variants() -> Vec<(User, &'static str)> {
    let mut variants = vec![(User::Own, "--packet")];
    match fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => variants.push((User::Own, "--tun")),
        Err(error) => eprintln!("skipped: TUN, for /dev/net/tun cannot be opened ({error})"),
    }
    if nix::unistd::geteuid().is_root() {
        variants.push((User::Nobody, "--packet"));
    } else {
        eprintln!("skipped: another user, for only root can become one");
    }
    let allowed = Bench::new("probe");
    variants.retain(|(user, port)| {
        let output = allowed.run(*user, &[port, "--", "true"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = text.contains("the kernel refuses");
        if refused {
            eprintln!("skipped: {user:?} with {port}: {text}");
        }
        !refused
    });
    variants
}

/// The example's binary, built anew: cargo leaves an old one in place when only
/// one test program is asked for.
fn example() -> PathBuf {
    let mut directory = std::env::current_exe().unwrap();
    while directory.file_name().is_some_and(|name| name != "deps") {
        assert!(directory.pop());
    }
    let profile = directory.parent().unwrap();
    let path = profile.join("examples/passthrough");
    static BUILD: std::sync::Once = std::sync::Once::new();
    BUILD.call_once(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            // Of the whole workspace, as its tests are built: by itself this package takes other
            // features of its dependencies, and they would all be compiled once more.
            .args(["build", "--quiet", "--workspace"])
            .args(["--example", "passthrough"])
            .arg("--manifest-path")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.status().is_ok_and(|status| status.success());
        assert!(built || path.exists(), "the example cannot be built");
    });
    path
}

/// Fails with everything the example wrote unless it ended with `status`.
pub fn assert_status(output: &Output, status: i32) {
    assert_eq!(
        output.status.code(),
        Some(status),
        "stdout: {}\nstderr: {}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
