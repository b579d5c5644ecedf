// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Exit statuses, signals, and clean-up after every kind of violent end.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Bench, User, assert_status, finish, variants};

#[test]
fn exit_statuses_are_the_commands() {
    let bench = Bench::new("status");
    for (user, port) in variants() {
        let shell = |line: &str| bench.run(user, &[port, "--", "sh", "-c", line]);
        assert_status(&shell("exit 7"), 7);
        assert_status(&shell("kill -KILL $$"), 137);
        assert_status(&shell("kill -TERM $$"), 143);
        assert_status(&bench.run(user, &[port, "--", "/no/such/program"]), 127);
        assert_status(&bench.run(user, &[port, "--", "/etc/passwd"]), 126);
    }
}

#[test]
fn commands_see_a_clean_world() {
    let bench = Bench::new("world");
    let line = "grep -E 'SigBlk|SigIgn|^CapAmb' /proc/self/status; \
                cat /proc/self/timerslack_ns; ls /sys/class/net; ls -d /proc/[0-9]* | wc -l";
    for (user, port) in variants() {
        let output = bench.run(user, &[port, "--", "sh", "-c", line]);
        assert_status(&output, 0);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("SigBlk:\t0000000000000000"), "{said}");
        assert!(said.contains("50000"), "{said}");
        assert!(said.contains("airpath0") && said.contains("lo"), "{said}");
        assert!(!said.contains("eth0"), "{said}");
    }
    let output = bench.run(User::Own, &["--packet", "--", "pwd"]);
    assert_eq!(output.stdout, b"/\n");
}

#[test]
fn as_root_is_uid_zero() {
    let bench = Bench::new("as-root");
    for (user, port) in variants() {
        let output = bench.run(user, &[port, "--as-root", "--", "id", "-u"]);
        assert_status(&output, 0);
        assert_eq!(output.stdout, b"0\n");
        if user == User::Nobody {
            let output = bench.run(user, &[port, "--", "id", "-u"]);
            assert_eq!(output.stdout, b"65534\n");
        }
    }
}

/// Process to kill.
enum Victim {
    Foreground,
    Engine,
    Command,
}

/// Starts a command with children of its own, kills the victim, and returns
/// what the foreground process left with.
fn end_violently(bench: &Bench, user: User, port: &str, victim: &Victim) -> std::process::Output {
    let flag = bench.shared_directory().join("ready");
    let line = format!("sleep 1000 & setsid sleep 1000 & touch {}; wait", flag.display());
    let child = bench
        .command(user, &[port, "--server", "exec python3 -m http.server", "--", "sh", "-c", &line])
        .spawn()
        .unwrap();
    bench.wait_for_file(&flag);
    fs::remove_file(&flag).unwrap();
    let foreground = child.id() as i32;
    let engine = child_of(foreground);
    let command = *bench.processes().iter().find(|pid| command_line(**pid).contains("touch")).unwrap();
    let victim = match victim {
        Victim::Foreground => foreground,
        Victim::Engine => engine,
        Victim::Command => first_shell(bench, command, engine),
    };
    kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
    let output = finish(child);
    bench.assert_nothing_left();
    output
}

fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // The example's own command line holds the words of the command, too.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.starts_with("sh\0") { text } else { String::new() }
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit(')').next()?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

fn child_of(parent: i32) -> i32 {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| parent_of(*pid) == Some(parent)).unwrap()
}

fn first_shell(bench: &Bench, found: i32, engine: i32) -> i32 {
    bench
        .processes()
        .into_iter()
        .find(|pid| parent_of(*pid) == Some(engine) && command_line(*pid).contains("touch"))
        .unwrap_or(found)
}

#[test]
fn nothing_is_left_when_the_foreground_process_is_killed() {
    let bench = Bench::new("kill-foreground");
    for (user, port) in variants() {
        let output = end_violently(&bench, user, port, &Victim::Foreground);
        assert_eq!(output.status.code(), None);
    }
}

#[test]
fn nothing_is_left_when_the_engine_is_killed_and_it_is_said() {
    let bench = Bench::new("kill-engine");
    for (user, port) in variants() {
        let output = end_violently(&bench, user, port, &Victim::Engine);
        assert_status(&output, 125);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("killed by SIGKILL"), "{said}");
    }
}

#[test]
fn nothing_is_left_when_the_command_is_killed() {
    let bench = Bench::new("kill-command");
    for (user, port) in variants() {
        let output = end_violently(&bench, user, port, &Victim::Command);
        assert_status(&output, 137);
    }
}

/// Counts the interrupts and terminations it gets until told to end by a line.
const COUNTER: &str = "import signal, sys\n\
    counts = {'INT': 0, 'TERM': 0, 'WINCH': 0}\n\
    def count(number, frame):\n    counts[signal.Signals(number).name[3:]] += 1\n\
    for name in counts:\n    signal.signal(getattr(signal, 'SIG' + name), count)\n\
    print('ready', flush=True)\n\
    sys.stdin.readline()\n\
    print(counts, flush=True)\n";

fn read_until(mut from: impl Read, wanted: &str) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.contains(wanted) {
        match from.read(&mut byte) {
            Ok(1) => text.push(char::from(byte[0])),
            _ => panic!("ended before {wanted:?}: {text}"),
        }
    }
    text
}

#[test]
fn signals_to_the_foreground_process_reach_the_command_once() {
    let bench = Bench::new("signals");
    let script = bench.file("counter.py", COUNTER);
    for (user, port) in variants() {
        let mut child = bench
            .command(user, &[port, "--", "python3", script.to_str().unwrap()])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        read_until(&mut output, "ready");
        let pid = Pid::from_raw(child.id() as i32);
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            kill(pid, signal).unwrap();
        }
        // Let them arrive: signals pass through two processes.
        std::thread::sleep(std::time::Duration::from_millis(500));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let said = read_until(&mut output, "}");
        assert!(said.contains("'INT': 1, 'TERM': 1"), "{said}");
        assert_status(&finish(child), 0);
        bench.assert_nothing_left();
    }
}

#[test]
fn a_terminals_interrupt_reaches_the_command_once() {
    let bench = Bench::new("terminal");
    let script = bench.file("counter.py", COUNTER);
    for (user, port) in variants() {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let slave = terminal.slave.as_raw_fd();
        let mut command = bench.command(user, &[port, "--", "python3", script.to_str().unwrap()]);
        command.stdin(terminal.slave.try_clone().unwrap()).stdout(terminal.slave.try_clone().unwrap());
        make_controlling(&mut command, slave);
        let child = command.spawn().unwrap();
        drop(command);
        let mut master = fs::File::from(terminal.master.as_fd().try_clone_to_owned().unwrap());
        read_until(&mut master, "ready");
        master.write_all(b"\x03").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
        master.write_all(b"\n").unwrap();
        let said = read_until(&mut master, "}");
        assert!(said.contains("'INT': 1, 'TERM': 0"), "{said}");
        assert_status(&finish(child), 0);
        bench.assert_nothing_left();
    }
}

/// Makes the child the leader of a session on the terminal.
#[allow(unsafe_code)]
fn make_controlling(command: &mut std::process::Command, terminal: i32) {
    let enter = move || {
        nix::unistd::setsid()?;
        // SAFETY: TIOCSCTTY takes an integer; the descriptor is open in the
        // child until it executes.
        nix::errno::Errno::result(unsafe { libc::ioctl(terminal, libc::TIOCSCTTY, 0) })?;
        Ok(())
    };
    // SAFETY: two system calls, no allocation.
    unsafe { command.pre_exec(enter) };
}
