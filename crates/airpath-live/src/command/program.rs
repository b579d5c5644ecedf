// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Starting a program at a cost that depends neither on the engine's memory nor on the number of its descriptors.
//!
//! A child of `fork` gets a copy of all page tables and of the table of descriptors, and the engine's loop pays for
//! each page that it writes to next. With many links that is milliseconds for each command. Here the child shares
//! memory and descriptors with the engine until it executes the program, and the calling thread waits for that.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

/// Search path of a program without a PATH (`execvp` of the C library).
pub(super) const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Interpreter of a script that names none.
const SHELL: &CStr = c"/bin/sh";
const NULL_DEVICE: &CStr = c"/dev/null";
/// Stack of the child: it makes system calls only.
const STACK_BYTES: usize = 64 << 10;
/// The stack grows down from a multiple of this.
const STACK_ALIGNMENT: usize = 16;
/// Signal numbers are below this.
const SIGNALS: c_int = 65;

/// Standard input, output or error of a command.
#[derive(Debug, Default)]
pub enum Stream {
    /// That of the engine.
    #[default]
    Inherited,
    /// The null device.
    Null,
    /// This file or pipe.
    To(OwnedFd),
}

/// Step of a child before it executes the program. It runs in the engine's memory: it makes system calls, and neither
/// allocates nor takes a lock nor panics.
pub(super) type Step<'a> = &'a (dyn Fn() -> io::Result<()> + Sync);

/// A program with all that it is started with.
#[derive(Debug)]
pub(super) struct Program {
    /// Places at which it may be, in the order of the search.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    streams: [Stream; 3],
    /// Descriptors from this number on are the engine's own, and no program inherits them.
    first_own: RawFd,
}

impl Program {
    /// `name` with `arguments`, in `environment`; a name without a slash is looked for on the PATH of that.
    ///
    /// # Errors
    /// When a text holds a zero byte.
    pub(super) fn new(
        name: &OsStr,
        arguments: &[OsString],
        environment: BTreeMap<OsString, OsString>,
        streams: [Stream; 3],
        first_own: RawFd,
    ) -> io::Result<Program> {
        let path = environment.get(OsStr::new("PATH")).map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
        let candidates = candidates(name, path)?;
        let variable = |(name, value): (OsString, OsString)| {
            let mut text = name.into_vec();
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            c_string(text)
        };
        Ok(Program {
            candidates,
            arguments: std::iter::once(name)
                .chain(arguments.iter().map(OsString::as_os_str))
                .map(|word| c_string(word.as_bytes().to_vec()))
                .collect::<io::Result<_>>()?,
            environment: environment.into_iter().map(variable).collect::<io::Result<_>>()?,
            streams,
            first_own,
        })
    }

    /// Starts it. The child takes the step `enter` while it still has the engine's descriptors, and `settle` behind
    /// its streams, last of all.
    ///
    /// # Errors
    /// Those of the steps, and of executing the program.
    pub(super) fn spawn(&self, enter: Step<'_>, settle: Step<'_>) -> io::Result<Pid> {
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        let mut script = vec![SHELL.as_ptr(), ptr::null()];
        script.extend_from_slice(&arguments[1..]);
        let mut child = Child { program: self, enter, settle, arguments, environment, script, error: 0 };
        let mut stack: Vec<u8> = Vec::with_capacity(STACK_BYTES);
        // SAFETY: the end of the allocation.
        let top = unsafe { stack.as_mut_ptr().add(STACK_BYTES) };
        let top = top.wrapping_sub(top as usize % STACK_ALIGNMENT);
        let mut mask = SigSet::empty();
        // A handler of the engine must not run in the child.
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut mask))?;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: the stack and `child` outlive the child's use of them, since the call returns only once it has
        // executed the program or ended; meanwhile this thread does not run.
        let pid = unsafe { libc::clone(begin, top.cast(), flags, ptr::from_mut(&mut child).cast()) };
        let pid = Errno::result(pid);
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
        let pid = Pid::from_raw(pid?);
        // SAFETY: the child wrote it, which the compiler does not see.
        match unsafe { ptr::read_volatile(&child.error) } {
            0 => Ok(pid),
            error => {
                let _ = waitpid(pid, None);
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }
}

/// Places at which `name` may be.
fn candidates(name: &OsStr, path: &OsStr) -> io::Result<Vec<CString>> {
    let name = name.as_bytes();
    if name.is_empty() || name.contains(&b'/') {
        return Ok(vec![c_string(name.to_vec())?]);
    }
    let place = |folder: &[u8]| match folder {
        // An empty entry is the working directory.
        b"" => c_string(name.to_vec()),
        _ => c_string([folder, name].join(&b'/')),
    };
    path.as_bytes().split(|byte| *byte == b':').map(place).collect()
}

fn c_string(text: Vec<u8>) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a word or variable holds a zero byte"))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// All that a child needs, in the engine's memory.
struct Child<'a> {
    program: &'a Program,
    enter: Step<'a>,
    settle: Step<'a>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// Arguments of the shell for a script without an interpreter; the second is the script.
    script: Vec<*const c_char>,
    /// The error that ended it, if one did.
    error: c_int,
}

extern "C" fn begin(child: *mut c_void) -> c_int {
    // SAFETY: it is the `Child` of the thread that waits.
    let child = unsafe { &mut *child.cast::<Child<'_>>() };
    let Err(error) = child.run();
    let number = error.raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: plain memory of the thread that waits.
    unsafe { ptr::write_volatile(&mut child.error, number) };
    // SAFETY: it runs no code of the engine's.
    unsafe { libc::_exit(127) }
}

impl Child<'_> {
    fn run(&mut self) -> io::Result<Infallible> {
        (self.enter)()?;
        self.leave_descriptors()?;
        for (number, stream) in (0..).zip(&self.program.streams) {
            self.connect(number, stream)?;
        }
        reset_handlers();
        (self.settle)()?;
        Err(self.execute())
    }

    /// Leaves the engine's table of descriptors with those that a program inherits, which are few: the others are not
    /// even copied. A stream that is one of the engine's own needs all of them.
    fn leave_descriptors(&self) -> io::Result<()> {
        let needs_all = self.program.streams.iter().any(|stream| matches!(stream, Stream::To(_)));
        let first = self.program.first_own.max(libc::STDERR_FILENO + 1) as libc::c_uint;
        // SAFETY: integers only. Linux before 5.9 has no such call.
        let left = !needs_all
            && unsafe {
                libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) == 0
            };
        if left {
            return Ok(());
        }
        // SAFETY: a flag.
        check(unsafe { libc::unshare(libc::CLONE_FILES) })
    }

    fn connect(&self, number: RawFd, stream: &Stream) -> io::Result<()> {
        let from = match stream {
            Stream::Inherited => return Ok(()),
            // SAFETY: a C string.
            Stream::Null => unsafe { libc::open(NULL_DEVICE.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) },
            Stream::To(file) => file.as_raw_fd(),
        };
        check(from)?;
        // SAFETY: descriptors of this process; those of the engine are above the standard ones.
        check(unsafe { libc::dup2(from, number) })
    }

    /// Executes the program at the first place where it is; returns only with the reason why not.
    fn execute(&mut self) -> io::Error {
        let mut error = Errno::ENOENT;
        for candidate in &self.program.candidates {
            // SAFETY: C strings, and arrays of them with a null pointer at the end.
            unsafe { libc::execve(candidate.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr()) };
            match Errno::last() {
                // Somewhere it may still be found.
                Errno::ENOENT | Errno::ENOTDIR | Errno::ENODEV | Errno::ETIMEDOUT | Errno::ESTALE => {}
                Errno::EACCES => error = Errno::EACCES,
                Errno::ENOEXEC => {
                    if let Some(script) = self.script.get_mut(1) {
                        *script = candidate.as_ptr();
                    }
                    // SAFETY: as above.
                    unsafe { libc::execve(SHELL.as_ptr(), self.script.as_ptr(), self.environment.as_ptr()) };
                    return Errno::last().into();
                }
                other => return other.into(),
            }
        }
        error.into()
    }
}

/// Handlers of the engine are none of the program's, and neither is its indifference to broken pipes.
fn reset_handlers() {
    for signal in 1..SIGNALS {
        // SAFETY: an all-zero sigaction is valid; the kernel fills it. The C library's own signals are refused.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer lives over the call.
        let known = unsafe { libc::sigaction(signal, ptr::null(), &mut action) } == 0;
        if known && (signal == libc::SIGPIPE || ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)) {
            action.sa_sigaction = libc::SIG_DFL;
            // SAFETY: as above; the table of handlers is this process's own.
            let _ = unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use nix::sys::wait::WaitStatus;

    use super::*;

    const NOTHING: Step<'_> = &|| Ok(());

    fn program(words: &[&str], streams: [Stream; 3], first_own: RawFd) -> Program {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Program::new(&words[0], &words[1..], std::env::vars_os().collect(), streams, first_own).unwrap()
    }

    fn status(program: &Program) -> i32 {
        let pid = program.spawn(NOTHING, NOTHING).unwrap();
        match waitpid(pid, None).unwrap() {
            WaitStatus::Exited(_, status) => status,
            other => panic!("{other:?}"),
        }
    }

    fn said(words: &[&str]) -> String {
        let (mut reader, writer) = io::pipe().unwrap();
        let program = program(words, [Stream::Null, Stream::To(writer.into()), Stream::Inherited], 3);
        assert_eq!(status(&program), 0);
        drop(program);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_program_is_found_and_gets_its_words_and_streams() {
        assert_eq!(status(&program(&["sh", "-c", "exit 7"], Default::default(), 3)), 7);
        assert_eq!(
            status(&program(&["/bin/sh", "-c", "cat; exit 3"], [Stream::Null, Stream::Null, Stream::Null], 3)),
            3
        );
        assert_eq!(said(&["sh", "-c", "echo \"$0 $1\"; cat", "a", "b c"]), "a b c\n");
    }

    #[test]
    fn what_cannot_be_executed_says_why() {
        let error = |name: &str| program(&[name], Default::default(), 3).spawn(NOTHING, NOTHING).unwrap_err();
        assert_eq!(error("airpath-no-such-program").raw_os_error(), Some(libc::ENOENT));
        assert_eq!(error("").raw_os_error(), Some(libc::ENOENT));
        assert_eq!(error("/dev/null").raw_os_error(), Some(libc::EACCES));
        let refused = program(&["true"], Default::default(), 3).spawn(&|| Err(Errno::EPERM.into()), NOTHING);
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
        let words: [OsString; 2] = ["sh".into(), "a\0b".into()];
        assert!(Program::new(&words[0], &words[1..], BTreeMap::new(), Default::default(), 3).is_err());
    }

    #[test]
    fn a_script_without_an_interpreter_is_the_shells() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "exit $1\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(status(&program(&[script.to_str().unwrap(), "9"], Default::default(), 3)), 9);
    }

    #[test]
    fn a_program_inherits_what_was_inheritable_and_no_descriptor_of_the_engine() {
        let kept = std::fs::File::open("/dev/null").unwrap();
        fcntl(&kept, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let own = std::fs::File::open("/dev/null").unwrap();
        let number = kept.as_raw_fd();
        let line = format!("test -e /proc/self/fd/{number} && test ! -e /proc/self/fd/{}", own.as_raw_fd());
        assert_eq!(status(&program(&["sh", "-c", &line], Default::default(), number + 1)), 0);
        // The engine's are as they were.
        assert!(kept.metadata().is_ok() && own.metadata().is_ok());
    }

    #[test]
    fn a_broken_pipe_ends_a_program_although_the_engine_ignores_it() {
        let line = said(&["grep", "SigIgn", "/proc/self/status"]);
        let ignored = u64::from_str_radix(line.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        assert_eq!(ignored >> (libc::SIGPIPE - 1) & 1, 0, "{line}");
    }
}
