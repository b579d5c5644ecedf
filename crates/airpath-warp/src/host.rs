// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Booting the kernel with a job, and keeping watch over it until it ends.
//!
//! Everything happens in the process that [`airpath_live::supervise`] forked: its PID namespace takes
//! the kernel and all its processes down with it, its mount namespace the files that they share.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use airpath_live::presence::live_run_is_on;
use airpath_live::supervise::{ENDING, EngineProcess, EngineSignal, bind_to_this_process, yield_to_others};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::fstat;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::{Pid, isatty};

use crate::console::Console;
use crate::error::{Attempting, Result, WarpError};
use crate::guest::SETTLING;
use crate::job::{self, Job};
use crate::kernel::Kernel;
use crate::memory::{self, GUEST_MIB, INPUT_MIB, SHARED_MIB};
use crate::pace::{Pace, Slow};
use crate::processor::Place;
use crate::relay::Relay;

/// The virtual time at which every guest boots: 2026-01-01 00:00 UTC, in ns since 1970. A guest that
/// booted at the real time would not be the same from run to run.
pub const EPOCH_NS: u64 = 1_767_225_600_000_000_000;
/// The name of the kernel's own folder in ours.
const KERNEL_NAME: &str = "guest";
/// Interval of the host's looks at the guest's output and clock.
const LOOK_EVERY_MS: u16 = 20;
/// Interval of checks for a live run, and of the guest's processor time.
const LOOK_AROUND_EVERY: Duration = Duration::from_millis(250);
/// The longest name of a task of the kernel, with the zero that ends it.
const TASK_NAME_BYTES: usize = 16;
/// Less progress of the virtual time than this is none: a program that spins may read the clock, and
/// each reading takes 256 ns.
const PROGRESS_NS: u64 = 1_000_000;
/// Maximum time for the guest to end after an order: by SIGTERM, then by SIGKILL, to everything in it.
const PATIENCE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(3)];
/// Maximum time for the guest to end, by the wall clock, after a signal that asks for it was handed on.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(4);
/// Number of moments at which the host looks at what runs, to name it.
const MOMENTS: usize = 7;
/// Maximum time for an answer of the kernel.
const ANSWER_PATIENCE: Duration = Duration::from_secs(3);

/// Plan of a guest: its kernel, job and limits.
#[derive(Debug)]
pub struct Plan {
    /// The kernel.
    pub kernel: Kernel,
    /// Job of the guest.
    pub job: Job,
    /// The seed of the kernel's random numbers.
    pub seed: u64,
    /// Limit on the whole, by the wall clock.
    pub wall_limit: Duration,
    /// Limit on a standstill of the virtual time, by the wall clock.
    pub stall_limit: Duration,
}

/// Outcome of a run in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestOutcome {
    /// The engine's exit status in the guest.
    pub status: i32,
    /// Virtual time for which the engine ran.
    pub virtual_time: Duration,
    /// Wall time of the run.
    pub wall_time: Duration,
}

/// True if standard output and standard error of this process lead to the same place.
pub fn outputs_are_one() -> bool {
    let place = |fd: BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino, stat.st_rdev));
    match (place(io::stdout().as_fd()), place(io::stderr().as_fd())) {
        (Ok(out), Ok(err)) => out == err,
        _ => false,
    }
}

/// Boots the kernel, hands on what the guest writes, passes signals in, and waits for the end.
/// `tell` gets lines for the user while that takes long.
///
/// # Errors
/// [`WarpError::Guest`] when the guest breaks or does not end in time, with the program that is to
/// blame as far as it can be told.
pub fn run(process: &EngineProcess, plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<GuestOutcome> {
    memory::check()?;
    prepare_folder(&plan.job)?;
    read_input(process, tell)?;
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let relay = |name: &str, target| {
        Relay::new(&Path::new(job::FOLDER).join(name), target).attempting(|| format!("make the guest's {name}"))
    };
    let mut relays = vec![relay(job::OUTPUT, stdout.as_fd())?, relay(job::ERRORS, stderr.as_fd())?];
    let begun = Instant::now();
    let (child, place) = boot(plan)?;
    let mut watch = Watch {
        process,
        plan,
        child,
        place,
        begun,
        looked_around: begun,
        pace: Pace::default(),
        worked: Duration::ZERO,
        stall_usage: None,
        moved: begun,
        moved_ns: 0,
        now_ns: 0,
        signals: 0,
        interrupted: None,
        ending: None,
    };
    let ended = loop {
        match watch.look() {
            Ok(None) => {
                if let Some(slow) = watch.find_slow() {
                    tell(&watch.say_slow(&slow));
                }
            }
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
        }
        for relay in &mut relays {
            relay.hand_on().attempting(|| "read what the guest wrote".into())?;
        }
    };
    for relay in &mut relays {
        relay.hand_on().attempting(|| "read what the guest wrote".into())?;
    }
    watch.conclude(ended?)
}

/// The manifest of the run that is over, as JSON, if [`Job::manifest`] asked for it and it came.
pub fn manifest() -> Option<Vec<u8>> {
    fs::read(path(job::MANIFEST)).ok().filter(|text| !text.is_empty())
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(job::FOLDER).join(name)
}

/// Makes the folder that both sides see, with what the guest needs to begin.
fn prepare_folder(job: &Job) -> Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = format!("mode=0755,size={SHARED_MIB}m");
    mount(Some("airpath"), job::MOUNT_POINT, Some("tmpfs"), flags, Some(options.as_str()))
        .attempting(|| format!("mount a temporary file system on {} for the guest", job::MOUNT_POINT))?;
    fs::create_dir(job::FOLDER).attempting(|| format!("create {}", job::FOLDER))?;
    let engine = path(job::ENGINE);
    let own = std::env::current_exe().attempting(|| "find this program".into())?;
    File::create(&engine)
        .and_then(|_| Ok(mount(Some(&own), &engine, None::<&str>, MsFlags::MS_BIND, None::<&str>)?))
        .attempting(|| "show this program to the guest".into())?;
    let text = serde_json::to_vec(job).map_err(io::Error::from).attempting(|| "write the job".into())?;
    fs::write(path(job::JOB), text).attempting(|| "write the job".into())
}

/// Standard input, to its end: the guest's time stands still meanwhile, so that how fast it comes
/// makes no difference. A terminal has no end, and the guest gets none of it.
fn read_input(process: &EngineProcess, tell: &mut dyn FnMut(&str)) -> Result<()> {
    let mut copy = File::create(path(job::INPUT)).attempting(|| "copy standard input for the guest".into())?;
    let input = io::stdin();
    if isatty(&input).unwrap_or(true) {
        return Ok(());
    }
    let begun = Instant::now();
    let mut told = false;
    let mut taken: u64 = 0;
    let mut buffer = [0; 64 << 10];
    loop {
        let mut ends =
            [PollFd::new(input.as_fd(), PollFlags::POLLIN), PollFd::new(process.signal_fd(), PollFlags::POLLIN)];
        match poll(&mut ends, PollTimeout::from(500u16)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno).attempting(|| "wait for standard input".into()),
        }
        if ends[1].any() == Some(true)
            && let Some(signal) = next_signal(process)?
        {
            return Err(WarpError::Interrupted(signal as i32));
        }
        if ends[0].any() == Some(true) {
            match nix::unistd::read(&input, &mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    taken += count as u64;
                    if taken > INPUT_MIB << 20 {
                        return Err(WarpError::Guest(format!(
                            "standard input is longer than {INPUT_MIB} MiB, the limit for a guest; let the command \
                             open a file instead"
                        )));
                    }
                    copy.write_all(&buffer[..count]).attempting(|| "copy standard input".into())?;
                }
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
                // Closed, or a folder: commands would find the same.
                Err(_) => return Ok(()),
            }
        } else if !told && begun.elapsed() > Duration::from_secs(2) {
            told = true;
            tell("reading standard input to its end before the run; use </dev/null if the command needs none");
        }
    }
}

/// The next signal that is meant for the commands.
fn next_signal(process: &EngineProcess) -> Result<Option<Signal>> {
    loop {
        let read = process.read_signal().map_err(|error| WarpError::Guest(error.to_string()))?;
        match read {
            None => return Ok(None),
            Some(EngineSignal::ChildEnded) => {}
            // A signal to this process group; the guest is in none of the host's.
            Some(EngineSignal::Forward(signal) | EngineSignal::Group(signal)) => {
                let handed_on = [
                    Signal::SIGINT,
                    Signal::SIGTERM,
                    Signal::SIGHUP,
                    Signal::SIGQUIT,
                    Signal::SIGUSR1,
                    Signal::SIGUSR2,
                ];
                if handed_on.contains(&signal) {
                    return Ok(Some(signal));
                }
            }
        }
    }
}

/// The kernel's command line: the same for every run, as it goes into the random numbers.
fn command_line() -> Vec<OsString> {
    let words = [
        format!("mem={GUEST_MIB}M"),
        "root=/dev/root".into(),
        "rootfstype=hostfs".into(),
        "rootflags=/".into(),
        "rw".into(),
        format!("init={}/{}", job::FOLDER, job::ENGINE),
        "time-travel=inf-cpu".into(),
        format!("time-travel-start={EPOCH_NS}"),
        "con=null".into(),
        "con0=null,fd:1".into(),
        "ssl=null".into(),
        "loglevel=7".into(),
        "panic=-1".into(),
        format!("uml_dir={}/", job::FOLDER),
        format!("umid={KERNEL_NAME}"),
        // A word that the kernel does not know is its first process's argument.
        crate::guest::COMMAND.into(),
    ];
    words.map(OsString::from).to_vec()
}

/// The kernel's process, and where it and its programs run.
fn boot(plan: &Plan) -> Result<(Child, Place)> {
    // Every file that the guest has open is one of the kernel's process; a crash leaves no core.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let console = File::create(path(job::CONSOLE)).attempting(|| "make the guest's console".into())?;
    let errors = console.try_clone().attempting(|| "make the guest's console".into())?;
    let mut command = Command::new(plan.kernel.path());
    command
        .args(command_line())
        .env_clear()
        .env("HOME", job::FOLDER)
        .env("TMPDIR", job::FOLDER)
        .env("AIRPATH_WARP_SEED", plan.seed.to_string())
        .stdin(Stdio::null())
        .stdout(console)
        .stderr(errors)
        .current_dir("/")
        // It signals its own process group when it fails.
        .process_group(0);
    bind_to_this_process(&mut command, None);
    yield_to_others(&mut command);
    let place = Place::find(live_run_is_on());
    let child = place.run_here(|| command.spawn());
    Ok((child.attempting(|| format!("start the kernel {}", plan.kernel.path().display()))?, place))
}

/// Progress of ending the guest, with the reason.
struct Ending {
    reason: WarpError,
    step: usize,
    since: Instant,
}

/// A guest that runs.
struct Watch<'a> {
    process: &'a EngineProcess,
    plan: &'a Plan,
    child: Child,
    place: Place,
    begun: Instant,
    looked_around: Instant,
    pace: Pace,
    /// The processor time that the guest had.
    worked: Duration,
    /// Processor time of the guest, if that can be told, when half the limit of a stall was over.
    stall_usage: Option<Option<Duration>>,
    /// Time at which the virtual time last moved, and its value then.
    moved: Instant,
    moved_ns: u64,
    now_ns: u64,
    /// Number of signals handed on.
    signals: u32,
    /// The first of them that asks for the end, and when.
    interrupted: Option<(Signal, Instant)>,
    ending: Option<Ending>,
}

impl Watch<'_> {
    /// Waits a moment; the kernel's exit status once it has ended.
    fn look(&mut self) -> Result<Option<ExitStatus>> {
        let mut ends = [PollFd::new(self.process.signal_fd(), PollFlags::POLLIN)];
        match poll(&mut ends, PollTimeout::from(LOOK_EVERY_MS)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno).attempting(|| "wait for the guest".into()),
        }
        while let Some(signal) = next_signal(self.process)? {
            self.hand_on(signal);
        }
        if let Some(status) = self.child.try_wait().attempting(|| "wait for the guest".into())? {
            return Ok(Some(status));
        }
        self.read_time();
        if self.looked_around.elapsed() >= LOOK_AROUND_EVERY {
            self.looked_around = Instant::now();
            self.place.follow(live_run_is_on());
            self.worked = self.worked.max(processor_time().unwrap_or_else(|| self.begun.elapsed()));
        }
        self.check_limits();
        Ok(None)
    }

    /// A program that holds the virtual time up, once. While the guest boots and settles nothing is said.
    fn find_slow(&mut self) -> Option<Slow> {
        if self.ending.is_some() || self.now_ns < SETTLING.as_nanos() as u64 {
            return None;
        }
        let running = self.read_running();
        let program = running.filter(|one| !one.is_kernels() && !is_the_engines(&one.name));
        self.pace.look(self.worked, self.now_ns, program.as_ref().map(|one| one.name.as_str()))
    }

    fn say_slow(&self, slow: &Slow) -> String {
        let virtual_time = show_seconds(self.now_ns.saturating_sub(SETTLING.as_nanos() as u64));
        format!(
            "at {virtual_time} s of virtual time: only {:.2} virtual s per second of work, because `{}` hardly \
             sleeps (running in {:.0} % of the samples)\n  Virtual time advances only while all processes sleep. A program that polls the clock or a socket stalls it: use one that blocks, for example `airpath send` and `airpath recv` (docs/warp.md); --wall-limit ends the run.",
            slow.pace,
            slow.program,
            slow.share * 100.0
        )
    }

    /// Running task of the guest, read out of its kernel's memory: nothing in it can notice.
    fn read_running(&self) -> Option<Running> {
        let place = self.plan.kernel.running_task()?;
        let mut pointer = [0; 8];
        let read = |address: u64, bytes: &mut [u8]| {
            let there = RemoteIoVec { base: address as usize, len: bytes.len() };
            let wanted = bytes.len();
            let pid = Pid::from_raw(self.child.id() as i32);
            (process_vm_readv(pid, &mut [IoSliceMut::new(bytes)], &[there]) == Ok(wanted)).then_some(())
        };
        read(place.pointer_address, &mut pointer)?;
        let mut name = [0; TASK_NAME_BYTES];
        read(u64::from_ne_bytes(pointer).checked_add(place.name_offset)?, &mut name)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        Some(Running { pid: u32::from(name != IDLE_TASK), name })
    }

    /// Reads the virtual time out of the kernel's memory: asking the kernel would be an interruption,
    /// and no two runs would be the same.
    fn read_time(&mut self) {
        let mut bytes = [0; 8];
        let there = RemoteIoVec { base: self.plan.kernel.time_address() as usize, len: bytes.len() };
        let pid = Pid::from_raw(self.child.id() as i32);
        if process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &[there]) == Ok(bytes.len()) {
            self.now_ns = u64::from_ne_bytes(bytes);
        }
        if self.now_ns.saturating_sub(self.moved_ns) >= PROGRESS_NS {
            (self.moved_ns, self.moved) = (self.now_ns, Instant::now());
            self.stall_usage = None;
        }
    }

    fn check_limits(&mut self) {
        if let Some(ending) = &mut self.ending {
            if ending.since.elapsed() < PATIENCE[ending.step.min(PATIENCE.len() - 1)] {
                return;
            }
            ending.step += 1;
            ending.since = Instant::now();
            match ending.step {
                1 => drop(self.ask("sysrq i")),
                _ => drop(self.child.kill()),
            }
            return;
        }
        // A program that spins leaves the guest's first process no turn to hand a signal on.
        if let Some((signal, when)) = self.interrupted
            && when.elapsed() >= SIGNAL_PATIENCE
        {
            self.end(WarpError::Interrupted(signal as i32));
            return;
        }
        let virtual_time = show_seconds(self.now_ns.saturating_sub(SETTLING.as_nanos() as u64));
        if self.moved.elapsed() >= self.plan.stall_limit / 2 && self.stall_usage.is_none() {
            self.stall_usage = Some(processor_time());
        }
        if self.moved.elapsed() >= self.plan.stall_limit && self.has_worked_while_time_stood() {
            let who = self.who_runs();
            self.end(WarpError::Guest(format!(
                "virtual time stopped at {virtual_time} s for {} of real time: {who}\n  Virtual time advances only \
                 while all processes sleep, so a busy-waiting program never progresses. If the program computes, \
                 raise --stall-limit.",
                show(self.plan.stall_limit)
            )));
        } else if self.begun.elapsed() >= self.plan.wall_limit {
            let who = self.who_runs();
            self.end(WarpError::Guest(format!(
                "the run had not ended after {} of real time, at {virtual_time} s of virtual time: {who}\n  Raise \
                 --wall-limit. Programs that poll the clock instead of sleeping are slow in virtual time; programs \
                 that wait for an event that never occurs do not end.",
                show(self.plan.wall_limit)
            )));
        }
    }

    /// True if the guest had a processor while its time stood still: where other programs have them all,
    /// nothing can be said of those in the guest.
    fn has_worked_while_time_stood(&self) -> bool {
        let (Some(Some(before)), Some(now)) = (self.stall_usage, processor_time()) else { return true };
        now.saturating_sub(before) >= self.plan.stall_limit / 3
    }

    /// Makes the guest end, in steps, with the files of the run finished if it can. The first is SIGTERM
    /// to all programs, sent by the guest's kernel itself: beside a program that spins, the guest's
    /// first process has no turn to do it.
    fn end(&mut self, reason: WarpError) {
        let _ = self.ask("sysrq e");
        self.ending = Some(Ending { reason, step: 0, since: Instant::now() });
    }

    /// Tells the guest's first process of a signal: the number by a file, and to look by the kernel's
    /// own signal for ctrl-alt-del.
    fn hand_on(&mut self, signal: Signal) {
        let file = path(&format!("{}{}", job::SIGNAL_PREFIX, self.signals));
        let told = path(job::LISTENING).exists()
            && fs::write(&file, (signal as i32).to_string()).and_then(|()| self.ask("cad")).is_ok();
        self.signals += 1;
        if ENDING.contains(&signal) {
            self.interrupted.get_or_insert((signal, Instant::now()));
        }
        if !told {
            // The guest has not booted yet, or is beyond listening.
            let _ = self.child.kill();
        }
        if self.ending.is_none() && !told {
            self.end(WarpError::Interrupted(signal as i32));
        }
    }

    fn ask(&self, command: &str) -> io::Result<String> {
        let own = path("asking");
        let _ = fs::remove_file(&own);
        let answer = Console::new(path(KERNEL_NAME).join("mconsole"), &own)?.ask(command, ANSWER_PATIENCE);
        self.interrupt();
        answer
    }

    /// Makes the guest's kernel look around. It waits for the program that it runs, which is one of its
    /// children, and comes back to itself only when that calls for it; without this, a program that spins
    /// would never be told of a signal. SIGALRM stops the child for a moment and goes no further.
    fn interrupt(&self) {
        let parent = format!("PPid:\t{}\n", self.child.id());
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if fs::read_to_string(entry.path().join("status")).is_ok_and(|text| text.contains(&parent)) {
                let _ = kill(Pid::from_raw(pid), Signal::SIGALRM);
            }
        }
    }

    /// Activity of the guest in words: the program that was running at most of some moments.
    fn who_runs(&self) -> String {
        let mut seen: Vec<(Running, usize)> = Vec::new();
        for _ in 0..MOMENTS {
            match self.ask("sysrq p").map(|text| Running::parse(&text)) {
                Ok(Some(one)) => match seen.iter_mut().find(|(known, _)| *known == one) {
                    Some((_, count)) => *count += 1,
                    None => seen.push((one, 1)),
                },
                Ok(None) => {}
                Err(error) => return format!("its kernel did not report the running process ({error})"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // Sleeping says nothing while anything runs.
        match seen.into_iter().max_by_key(|(one, count)| (!one.is_kernels(), *count)) {
            Some((one, _)) if one.is_kernels() => match self.plan.job.client() {
                Some(client) => format!("all programs were waiting, and `{client}` had not ended"),
                None => "all programs were waiting".into(),
            },
            Some((one, _)) => format!("`{}` was running (process {} of the guest)", one.name, one.pid),
            None => "its kernel did not report the running process".into(),
        }
    }

    fn conclude(self, kernel: ExitStatus) -> Result<GuestOutcome> {
        if let Some(ending) = self.ending {
            return Err(ending.reason);
        }
        if let Ok(failure) = fs::read_to_string(path(job::FAILURE)) {
            return Err(WarpError::Guest(format!("the guest cannot start: {failure}")));
        }
        let Some((status, lasted_ns)) = fs::read_to_string(path(job::STATUS)).ok().and_then(|text| parse_status(&text))
        else {
            return Err(WarpError::Guest(format!(
                "the guest's kernel ended before the run ({kernel}); last lines of its console:\n{}",
                last_words()
            )));
        };
        Ok(GuestOutcome { status, virtual_time: Duration::from_nanos(lasted_ns), wall_time: self.begun.elapsed() })
    }
}

/// Running task in the kernel's register dump: `Pid: 48, comm: python3 Not tainted …`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Running {
    pid: u32,
    name: String,
}

/// The name of the task that runs when nothing else does.
const IDLE_TASK: &str = "swapper";

/// True if a task of this name is the engine's in the guest.
fn is_the_engines(name: &str) -> bool {
    name == job::ENGINE || name == "exe" || name.starts_with("airpath")
}

/// Prefixes of the names of the kernel's own threads, as far as they run after the boot.
const KERNEL_THREADS: [&str; 10] = [
    "kworker/",
    "ksoftirqd/",
    "kthreadd",
    "rcu_",
    "kcompactd",
    "khungtaskd",
    "kswapd",
    "oom_reaper",
    "kdevtmpfs",
    "pool_workqueue_",
];

impl Running {
    /// True for the idle task or a thread of the kernel, which are no programs.
    fn is_kernels(&self) -> bool {
        self.pid == 0 || KERNEL_THREADS.iter().any(|thread| self.name.starts_with(thread))
    }

    fn parse(text: &str) -> Option<Running> {
        let line = text.lines().find_map(|line| line.split_once("Pid: ").map(|(_, rest)| rest))?;
        let (pid, rest) = line.split_once(", comm: ")?;
        // A name may hold spaces; what follows it is one of two words.
        let end = rest.find(" Not tainted").or_else(|| rest.find(" Tainted"))?;
        Some(Running { pid: pid.parse().ok()?, name: rest[..end].to_owned() })
    }
}

/// The processor time of the guest, which is every other process of this PID namespace; none if the kernel
/// does not tell.
fn processor_time() -> Option<Duration> {
    let own = std::process::id();
    let mut total = None;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else { continue };
        if let Some(nanos) = text.split_whitespace().next().and_then(|word| word.parse().ok())
            && pid != own
        {
            *total.get_or_insert(Duration::ZERO) += Duration::from_nanos(nanos);
        }
    }
    total
}

/// The exit status, and how long the engine ran in virtual time.
fn parse_status(text: &str) -> Option<(i32, u64)> {
    let (status, lasted_ns) = text.split_once(' ')?;
    Some((status.parse().ok()?, lasted_ns.parse().ok()?))
}

/// The end of what the kernel printed.
fn last_words() -> String {
    let mut bytes = Vec::new();
    let _ = File::open(path(job::CONSOLE)).and_then(|mut file| file.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn show(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn show_seconds(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_program_is_found_in_a_register_dump() {
        let dump = "sysrq: Show Regs\n\nPid: 48, comm: my prog Not tainted 6.12.117\nRIP: 0000:0\n";
        assert_eq!(Running::parse(dump), Some(Running { pid: 48, name: "my prog".into() }));
        assert_eq!(Running::parse("sysrq: Show Regs\n"), None);
    }

    #[test]
    fn threads_of_the_kernel_are_no_programs() {
        let running = |pid, name: &str| Running { pid, name: name.into() };
        for (pid, name) in [(0, "swapper"), (12, "kworker/0:1"), (9, "ksoftirqd/0")] {
            assert!(running(pid, name).is_kernels(), "{name}");
        }
        assert!(!running(48, "python3").is_kernels());
    }

    #[test]
    fn the_end_of_the_engine_reads_back() {
        assert_eq!(parse_status("137 60000000000"), Some((137, 60_000_000_000)));
        assert_eq!(parse_status(""), None);
    }

    #[test]
    fn the_command_line_is_the_same_for_every_run() {
        let line = command_line();
        assert_eq!(line, command_line());
        let pid = std::process::id().to_string();
        assert!(!line.iter().any(|word| word.to_string_lossy().contains(&pid)));
    }
}
