// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Building the kernel: unpack, patch, configure, compile, and put it into the cache in one step.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use airpath_live::supervise::{ENDING, bind_to_this_process};
use airpath_log::place;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::error::{Attempting, Result, WarpError};
use crate::kernel::Kernel;
use crate::{cache, needs, recipe};

/// The beginning of the names of folders in which a kernel is being built.
const BUILD_PREFIX: &str = "warp-build-";
/// Interval of progress messages.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// Number of lines shown of a failed step.
const LINES_SHOWN: usize = 20;
/// Parts of the source that this kernel has no use for; their Kconfig files must stay.
const LEFT_PACKED: [&str; 11] = [
    "*/Documentation/*/*",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/infiniband/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/scsi/*.[ch]",
    "*/drivers/staging/*.[ch]",
    "linux*/sound/*.[ch]",
    "*/tools/perf",
    "*/tools/testing",
];

/// Options of the build.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of parallel compiler processes.
    pub jobs: usize,
    /// A packed source of the kernel instead of the distribution's.
    pub source: Option<PathBuf>,
}

/// Builds the kernel, unless it is there already. `tell` gets lines about what is going on.
///
/// # Errors
/// When something that is needed is missing, a step fails, or a signal breaks it off
/// ([`WarpError::Interrupted`]); then nothing is left behind.
pub fn setup(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Kernel> {
    needs::check_architecture()?;
    let missing = needs::missing_packages(options.source.is_none());
    if !missing.is_empty() {
        tell(&format!("installing {}", missing.join(" ")));
        needs::install(&missing)?;
    }
    let archive = options.source.clone().unwrap_or_else(|| recipe::SOURCE_ARCHIVE.into());
    let version = version_of(&archive, options.source.is_none());
    let folder = cache::folder()?;
    place::make_folder(&folder).attempting(|| format!("create {}", folder.display()))?;
    let _lock = lock(&folder, tell)?;
    let target = folder.join(recipe::file_name(&version));
    if let Ok(kernel) = Kernel::open(&target) {
        tell("the kernel is already built");
        return Ok(kernel);
    }
    remove_leftovers(&folder);
    needs::check_room(&folder)?;
    let work = tempfile::Builder::new()
        .prefix(BUILD_PREFIX)
        .tempdir_in(&folder)
        .attempting(|| format!("create a folder in {}", folder.display()))?;
    let mut builder = Builder { tell, signals: Signals::take()?, begun: Instant::now() };
    let built = builder.build(&archive, work.path(), options.jobs)?;
    fs::rename(&built, &target).attempting(|| format!("put the kernel at {}", target.display()))?;
    Kernel::open(&target)
}

/// Version of the source: the package's version, else the archive's name and size.
fn version_of(archive: &Path, packaged: bool) -> String {
    let queried = Command::new("dpkg-query")
        .args(["-W", "-f", "${Version}", recipe::SOURCE_PACKAGE])
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| packaged && output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .filter(|version| !version.is_empty());
    queried.unwrap_or_else(|| {
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}-{}", fs::metadata(archive).map_or(0, |data| data.len()))
    })
}

/// One builds at a time: the others wait and find the kernel there.
fn lock(folder: &Path, tell: &mut dyn FnMut(&str)) -> Result<Flock<File>> {
    let path = folder.join("warp-build.lock");
    let open = || place::open_lock(&path).attempting(|| format!("write {}", path.display()));
    match Flock::lock(open()?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err(_) => {
            tell("another process is building the kernel; waiting for it");
            Flock::lock(open()?, FlockArg::LockExclusive)
                .map_err(|(_, errno)| errno)
                .attempting(|| format!("lock {}", path.display()))
        }
    }
}

/// Removes what a build that was killed left; the lock tells that none is going on.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(BUILD_PREFIX) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

struct Builder<'a> {
    tell: &'a mut dyn FnMut(&str),
    signals: Signals,
    begun: Instant,
}

impl Builder<'_> {
    fn build(&mut self, archive: &Path, work: &Path, jobs: usize) -> Result<PathBuf> {
        (self.tell)(&format!("unpacking {}", archive.display()));
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(archive).args(["--strip-components=1", "-C"]).arg(work);
        tar.args(LEFT_PACKED.map(|pattern| format!("--exclude={pattern}")));
        self.run("unpack the kernel's source", tar)?;
        for patch in recipe::PATCHES {
            (self.tell)(&format!("patching: {}", patch.purpose()));
            let file = work.join(patch.name);
            fs::write(&file, patch.text).attempting(|| format!("write {}", file.display()))?;
            let mut command = Command::new("patch");
            command.current_dir(work).args(["-p1", "--batch", "--no-backup-if-mismatch", "-i", patch.name]);
            self.run(&format!("apply {} to this version of the kernel", patch.name), command)?;
        }
        (self.tell)("configuring");
        let config = work.join("warp.config");
        fs::write(&config, recipe::CONFIG).attempting(|| format!("write {}", config.display()))?;
        let mut configure = make(work, jobs);
        configure.env("KCONFIG_ALLCONFIG", &config).arg("allnoconfig");
        self.run("configure the kernel", configure)?;
        let taken = fs::read_to_string(work.join(".config")).attempting(|| "read the kernel's configuration".into())?;
        let unmet = recipe::unmet_options(&taken);
        if !unmet.is_empty() {
            return Err(WarpError::Build(format!(
                "this kernel version rejects these options: {}; use the source of {}",
                unmet.join(", "),
                recipe::SOURCE_PACKAGE
            )));
        }
        (self.tell)(&format!("compiling with {jobs} parallel jobs"));
        let mut compile = make(work, jobs);
        compile.arg("linux");
        self.run("compile the kernel", compile)?;
        let kernel = work.join("linux");
        Kernel::open(&kernel)?;
        Ok(kernel)
    }

    /// Runs one step to its end, telling how far it is.
    fn run(&mut self, what: &str, mut command: Command) -> Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        bind_to_this_process(&mut command, None);
        let mut child = command.spawn().attempting(|| format!("start {}", command.get_program().to_string_lossy()))?;
        let mut output = Output::default();
        let mut told = Instant::now();
        let outcome = loop {
            match self.step(&mut child, &mut output) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                (self.tell)(&format!("{}{} s so far", show_objects(output.objects), self.begun.elapsed().as_secs()));
            }
        };
        if outcome.is_err() {
            // make and all that it has started are a process group of their own.
            let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        }
        let status = child.wait().attempting(|| format!("wait for the end of: {what}"))?;
        outcome?;
        if status.success() {
            return Ok(());
        }
        Err(WarpError::Build(format!("cannot {what} ({status}); last lines of output:\n{}", output.last_lines())))
    }

    /// Waits for output, the end of it (then `false`), or a signal.
    fn step(&mut self, child: &mut Child, output: &mut Output) -> Result<bool> {
        let (Some(out), Some(err)) = (child.stdout.as_mut(), child.stderr.as_mut()) else { return Ok(false) };
        let readable = {
            let mut ends = [
                PollFd::new(out.as_fd(), PollFlags::POLLIN),
                PollFd::new(err.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.0.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut ends, PollTimeout::from(1000u16)) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(errno).attempting(|| "wait for a step of the build".into()),
            }
            ends.map(|end| end.any().unwrap_or(false))
        };
        if readable[2]
            && let Some(number) = self.signals.read()
        {
            return Err(WarpError::Interrupted(number));
        }
        let mut buffer = [0; 16 << 10];
        let mut take = |stream: &mut dyn Read| stream.read(&mut buffer).map(|count| output.take(&buffer[..count]));
        // A pipe whose other end is closed is always readable: the end of one alone is no end.
        let mut closed = [false; 2];
        if readable[0] {
            closed[0] = take(out).attempting(|| "read a step's output".into())? == 0;
        }
        if readable[1] {
            closed[1] = take(err).attempting(|| "read a step's output".into())? == 0;
        }
        if closed[1] && !closed[0] {
            // Standard output alone tells the end from now on.
            child.stderr = File::open("/dev/null").ok().map(|file| std::os::fd::OwnedFd::from(file).into());
        }
        Ok(!closed[0])
    }
}

/// `make` for user-mode Linux, with nothing of this machine in what it makes: the kernel's name and
/// date go into its random numbers.
fn make(work: &Path, jobs: usize) -> Command {
    let mut command = Command::new("make");
    command.current_dir(work).arg("ARCH=um").arg(format!("-j{jobs}"));
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CROSS_COMPILE", "KCFLAGS", "LOCALVERSION", "SUBARCH"] {
        command.env_remove(name);
    }
    command.envs([
        ("KBUILD_BUILD_TIMESTAMP", "@0"),
        ("KBUILD_BUILD_USER", "airpath"),
        ("KBUILD_BUILD_HOST", "airpath"),
        ("KBUILD_BUILD_VERSION", "1"),
        ("LC_ALL", "C"),
    ]);
    command
}

/// Progress of compiling in words. Another source than the recipe's may have some more.
fn show_objects(done: usize) -> String {
    match done {
        0 => String::new(),
        done if done <= recipe::OBJECTS => format!("{done} of about {} objects, ", recipe::OBJECTS),
        done => format!("{done} objects, "),
    }
}

/// Output of a step.
#[derive(Default)]
struct Output {
    text: Vec<u8>,
    objects: usize,
}

impl Output {
    fn take(&mut self, bytes: &[u8]) -> usize {
        let unfinished = self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
        self.text.extend_from_slice(bytes);
        let lines = self.text[unfinished..].split_inclusive(|byte| *byte == b'\n');
        self.objects += lines.filter(|line| line.ends_with(b"\n") && line.starts_with(b"  CC ")).count();
        bytes.len()
    }

    fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

/// The signals that break a build off, taken from the queue instead of ending this process at once.
struct Signals(SignalFd);

impl Signals {
    fn take() -> Result<Signals> {
        let set: SigSet = ENDING.into_iter().collect();
        set.thread_block().attempting(|| "block signals".into())?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        SignalFd::with_flags(&set, flags).attempting(|| "make a signal descriptor".into()).map(Signals)
    }

    fn read(&mut self) -> Option<i32> {
        self.0.read_signal().ok().flatten().map(|info| info.ssi_signo as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<()> {
        let mut told = |_: &str| {};
        let mut builder = Builder { tell: &mut told, signals: Signals::take().unwrap(), begun: Instant::now() };
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        builder.run("try it", command)
    }

    #[test]
    fn a_step_that_fails_shows_its_last_words() {
        run("echo fine; exec 2>&-; sleep 0.1; echo more").unwrap();
        let error = run("seq 100; echo 'no such header' >&2; exit 2").unwrap_err().to_string();
        assert!(error.starts_with("cannot try it (exit status: 2)"), "{error}");
        assert!(error.contains("no such header") && !error.contains("\n1\n"), "{error}");
    }

    #[test]
    fn compiled_objects_are_counted_across_reads() {
        let mut output = Output::default();
        for part in ["  CC      a.o\n  C", "C      b.o\n", "  HOSTCC  c.o\n  LD      d\n  CC   e.o"] {
            output.take(part.as_bytes());
        }
        assert_eq!(output.objects, 2);
    }

    #[test]
    fn progress_has_a_total() {
        assert_eq!(show_objects(0), "");
        assert_eq!(show_objects(7), format!("7 of about {} objects, ", recipe::OBJECTS));
        assert_eq!(show_objects(recipe::OBJECTS + 1), format!("{} objects, ", recipe::OBJECTS + 1));
    }

    #[test]
    fn what_a_killed_build_left_goes_and_kernels_stay() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("warp-build-abc/arch")).unwrap();
        fs::write(base.path().join("warp-kernel-1"), "").unwrap();
        remove_leftovers(base.path());
        let names: Vec<_> = fs::read_dir(base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["warp-kernel-1"]);
    }
}
