// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The first process of the guest: sets the place up, runs the engine with the job's arguments, hands
//! on what it writes, and powers off.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use airpath_live::clock::monotonic_ns;
use airpath_live::netlink::{LinkOptions, RouteSocket};
use airpath_live::supervise::bind_to_this_process;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open, openat};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::reboot::{RebootMode, reboot, set_cad_enabled};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, pipe2, sync};

use crate::error::{Attempting, Result, WarpError};
use crate::job::{self, Job};

/// The hidden command under which the engine is the guest's first process.
pub const COMMAND: &str = "warp-init";
/// Directory for temporary files of commands: in the guest's memory, gone with it.
const TEMPORARY: &str = "/run/tmp";
/// Directory for lock files of devices, to which /var/lock leads: `pppd` does not start without.
const LOCKS: &str = "/run/lock";
/// Age of the guest when the engine starts. Programs take a monotonic clock that reads 0 seconds for one that
/// was never read (ping does), and the kernel has a few things to do after its boot.
pub(crate) const SETTLING: Duration = Duration::from_secs(60);

/// True if this process runs in a kernel whose time travels, be it ours or another.
pub fn is_guest() -> bool {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    line.split_whitespace().any(|word| word == "time-travel" || word.starts_with("time-travel="))
}

/// Runs the job and powers off; returns only if this process is not the first of a guest.
///
/// # Errors
/// When this process is not PID 1.
pub fn main() -> Result<std::convert::Infallible> {
    if getpid() != Pid::from_raw(1) {
        return Err(WarpError::Guest(format!("{COMMAND} is only for the init process of a guest")));
    }
    let folder = Folder::find()?;
    let outcome = run(&folder);
    let (name, text) = match &outcome {
        Ok((status, lasted_ns)) => (job::STATUS, format!("{status} {lasted_ns}")),
        Err(error) => (job::FAILURE, error.to_string()),
    };
    sync();
    if let Err(error) = folder.write(name, &text) {
        let _ = fs::write("/dev/kmsg", format!("airpath: cannot report to the host: {error}\n"));
    }
    sync();
    let _ = reboot(RebootMode::RB_POWER_OFF);
    std::process::exit(125)
}

/// The folder shared with the host, by a descriptor: the guest's own /sys hides its name.
struct Folder(OwnedFd);

impl Folder {
    fn find() -> Result<Folder> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        open(job::FOLDER, flags, Mode::empty()).attempting(|| format!("open {}", job::FOLDER)).map(Folder)
    }

    /// Opens a file in it. What is written goes through at once: the host reads its own file system.
    fn open(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_SYNC | OFlag::O_CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::from_bits_truncate(0o644))?.into())
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        self.open(name, OFlag::O_WRONLY | OFlag::O_CREAT)?.write_all(text.as_bytes())
    }

    fn read(&self, name: &str) -> io::Result<String> {
        io::read_to_string(self.open(name, OFlag::O_RDONLY)?)
    }
}

/// The engine's exit status, and how long it ran.
fn run(folder: &Folder) -> Result<(i32, u64)> {
    let text = folder.read(job::JOB).attempting(|| "read the job".into())?;
    let job: Job = serde_json::from_str(&text).map_err(io::Error::from).attempting(|| "read the job".into())?;
    let append = |name| {
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND;
        folder.open(name, flags).attempting(|| format!("open {name} for what commands write"))
    };
    let targets = [append(job::OUTPUT)?, append(job::ERRORS)?];
    let signals = take_signals()?;
    folder.write(job::LISTENING, "").attempting(|| "tell the host that this guest listens".into())?;
    set_up(&job.host_name)?;
    std::thread::sleep(SETTLING);
    let begun_ns = monotonic_ns();
    let (mut child, mut pipes) = start(folder, &job)?;
    let mut handed_on = 0;
    loop {
        let mut ends = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        ends.extend(pipes.iter().map(|pipe| PollFd::new(pipe.source.as_fd(), PollFlags::POLLIN)));
        match poll(&mut ends, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).attempting(|| "wait for the engine".into()),
        }
        let readable: Vec<bool> = ends.iter().map(|end| end.any().unwrap_or(false)).collect();
        drop(ends);
        for (pipe, _) in pipes.iter_mut().zip(&readable[1..]).filter(|(_, readable)| **readable) {
            pipe.hand_on(&targets)?;
        }
        pipes.retain(|pipe| pipe.open);
        if readable[0] {
            while let Some(info) = signals.read_signal().attempting(|| "read a signal".into())? {
                if info.ssi_signo == Signal::SIGINT as u32 {
                    hand_signals_on(folder, &child, &mut handed_on);
                }
            }
            if let Some(status) = reap(&mut child)? {
                for pipe in &mut pipes {
                    while pipe.open && pipe.hand_on(&targets)? {}
                }
                return Ok((status, monotonic_ns() - begun_ns));
            }
        }
    }
}

fn take_signals() -> Result<SignalFd> {
    // Ctrl-alt-del, by which the host has something to say, is to be told to this process.
    set_cad_enabled(false).attempting(|| "take ctrl-alt-del".into())?;
    let set: SigSet = [Signal::SIGCHLD, Signal::SIGINT].into_iter().collect();
    set.thread_block().attempting(|| "block signals".into())?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .attempting(|| "make a signal descriptor".into())
}

/// Mounts what a system has, and sets the kernel as a machine with much memory has it.
fn set_up(host_name: &str) -> Result<()> {
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let at = |kind: &str, path: &str, flags, options: Option<&str>| {
        mount(Some(kind), path, Some(kind), flags, options).attempting(|| format!("mount {kind} on {path}"))
    };
    at("proc", "/proc", plain, None)?;
    at("sysfs", "/sys", plain, None)?;
    at("tmpfs", "/run", MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=0755"))?;
    for folder in [TEMPORARY, LOCKS] {
        fs::create_dir(folder)
            .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)))
            .attempting(|| format!("create {folder}"))?;
    }
    at("devtmpfs", "/dev", MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, Some("mode=0755"))?;
    for (folder, kind, options) in [("/dev/pts", "devpts", "mode=620,ptmxmode=666"), ("/dev/shm", "tmpfs", "mode=1777")]
    {
        fs::create_dir(folder).attempting(|| format!("create {folder}"))?;
        at(kind, folder, MsFlags::MS_NOSUID, Some(options))?;
    }
    for (link, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let link = Path::new("/dev").join(link);
        symlink(format!("/proc/self/fd{target}"), &link).attempting(|| format!("make {}", link.display()))?;
    }
    fs::set_permissions("/dev/net/tun", fs::Permissions::from_mode(0o666))
        .attempting(|| "open /dev/net/tun to everybody".into())?;
    let settings = [
        ("kernel/hostname", host_name),
        // The kernel's own choice for machines with more than a gigabyte, so that windows are a live run's.
        ("net/ipv4/tcp_rmem", "4096 131072 6291456"),
        ("net/ipv4/tcp_wmem", "4096 16384 4194304"),
    ];
    for (name, value) in settings {
        let path = Path::new("/proc/sys").join(name);
        fs::write(&path, value).attempting(|| format!("set {}", path.display()))?;
    }
    allow_every_congestion_control().attempting(|| "allow every congestion control".into())?;
    bring_loopback_up()
}

fn allow_every_congestion_control() -> io::Result<()> {
    let folder = Path::new("/proc/sys/net/ipv4");
    let all = fs::read_to_string(folder.join("tcp_available_congestion_control"))?;
    fs::write(folder.join("tcp_allowed_congestion_control"), all.trim())
}

fn bring_loopback_up() -> Result<()> {
    let up = || {
        let mut socket = RouteSocket::open()?;
        let index = socket.link_index("lo")?;
        socket.configure_link(index, &LinkOptions { up: true, ..LinkOptions::default() })
    };
    up().attempting(|| "bring the loopback interface up".into())
}

/// Starts the engine as the job's user; what it writes comes out of the pipes.
fn start(folder: &Folder, job: &Job) -> Result<(Child, Vec<Pipe>)> {
    let input = folder.open(job::INPUT, OFlag::O_RDONLY).attempting(|| "open standard input".into())?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("airpath-engine").env_clear().envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.env("TMPDIR", TEMPORARY).uid(job.uid).gid(job.gid).stdin(input);
    let mut arguments = job.arguments.iter();
    command.args(arguments.next());
    let manifest = if job.manifest {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT;
        let file = folder.open(job::MANIFEST, flags).attempting(|| "open the manifest".into())?;
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).attempting(|| "hand the manifest over".into())?;
        command.arg("--manifest-descriptor").arg(file.as_raw_fd().to_string());
        Some(file)
    } else {
        None
    };
    command.args(arguments);
    let (out, out_writer) = pipe2(OFlag::O_CLOEXEC).attempting(|| "make a pipe".into())?;
    let mut pipes = vec![Pipe::new(out, 0)?];
    if job.merged_output {
        command.stderr(out_writer.try_clone().attempting(|| "make a pipe".into())?);
    } else {
        let (err, err_writer) = pipe2(OFlag::O_CLOEXEC).attempting(|| "make a pipe".into())?;
        pipes.push(Pipe::new(err, 1)?);
        command.stderr(err_writer);
    }
    command.stdout(out_writer);
    // This process blocks signals that its children must hear.
    bind_to_this_process(&mut command, None);
    if std::env::set_current_dir(&job.directory).is_err() {
        return Err(WarpError::Guest(format!(
            "the working directory {} does not exist in the guest, which has its own /dev, /proc, /run and /sys",
            job.directory.to_string_lossy()
        )));
    }
    umask(Mode::from_bits_truncate(job.umask));
    let _ = setrlimit(Resource::RLIMIT_NOFILE, 4096, 1 << 20);
    let child = command.spawn().attempting(|| "start the engine in the guest".into());
    drop(manifest);
    Ok((child?, pipes))
}

/// Reaps whatever has ended; the exit status of the engine once that has.
fn reap(child: &mut Child) -> Result<Option<i32>> {
    let engine = Pid::from_raw(child.id() as i32);
    let mut ended = None;
    loop {
        let status = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(ended),
            Err(Errno::EINTR) => continue,
            other => other.attempting(|| "reap processes".into())?,
        };
        match status {
            WaitStatus::Exited(pid, status) if pid == engine => ended = Some(status),
            WaitStatus::Signaled(pid, signal, _) if pid == engine => ended = Some(128 + signal as i32),
            _ => {}
        }
    }
}

/// Hands the engine the signals that the host has written down since the last time.
fn hand_signals_on(folder: &Folder, child: &Child, handed_on: &mut u32) {
    while let Some(signal) = folder
        .read(&format!("{}{handed_on}", job::SIGNAL_PREFIX))
        .ok()
        .and_then(|text| text.parse().ok())
        .and_then(|number: i32| Signal::try_from(number).ok())
    {
        *handed_on += 1;
        // ESRCH: it has ended, and reaping will tell.
        let _ = kill(Pid::from_raw(child.id() as i32), signal);
    }
}

/// Pipe for one of the outputs of commands.
struct Pipe {
    source: OwnedFd,
    target: usize,
    open: bool,
}

impl Pipe {
    fn new(source: OwnedFd, target: usize) -> Result<Pipe> {
        fcntl(&source, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).attempting(|| "prepare a pipe".into())?;
        Ok(Pipe { source, target, open: true })
    }

    /// Hands on what is in it now; whether there was anything.
    fn hand_on(&mut self, targets: &[File; 2]) -> Result<bool> {
        let mut buffer = [0; 64 << 10];
        match nix::unistd::read(&self.source, &mut buffer) {
            Ok(0) => {
                self.open = false;
                Ok(false)
            }
            Ok(count) => {
                (&targets[self.target])
                    .write_all(&buffer[..count])
                    .attempting(|| "hand on what a command wrote".into())?;
                Ok(true)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno).attempting(|| "read what a command wrote".into()),
        }
    }
}
