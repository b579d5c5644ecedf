// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The control of a live run: one thread between the socket and the loop, which waits for both and
//! which nothing waits for.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use airpath_core::{Command, StateInForce, Time};
use airpath_live::clock;
use airpath_live::engine_loop::{Answer, Handle, Order, Word};
use airpath_live::processor_time::ProcessorTime;
use airpath_log::verdict::{CalibrationFacts, Measurements, judge};
use airpath_models::MachineConfig;
use airpath_scenario::{Running, Scenario};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use super::{RunRequest, machine, measured};
use crate::control::around::Around;
use crate::control::folder::{self, Folder, Socket};
use crate::control::protocol::{LONGEST_LINE_BYTES, Refusal, Request, VERSION};

/// Number of the user of a live run.
const ONLY_USER: u16 = 0;
/// Maximum number of clients.
const CLIENTS: usize = 64;
/// Maximum time for an answer of the loop.
const PATIENCE: Duration = Duration::from_secs(5);
/// A request, or the beginning of one.
type Line = Vec<u8>;

/// The control of a run; dropping it ends it.
pub struct Control {
    /// The number of the run.
    pub number: u32,
    /// The folder in which its socket is.
    pub folder: PathBuf,
    /// Closing it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Opens the socket of the run that `request` describes, whose loop `handle` reaches.
    ///
    /// # Errors
    /// When there is no folder for it, or the system refuses.
    pub fn start(request: &RunRequest, handle: Handle) -> io::Result<Control> {
        let folder = folder::path();
        let socket = Folder::open(&folder, true)?.listen()?;
        let number = socket.number;
        socket.listener.set_nonblocking(true)?;
        let (stopped, stop) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let desk = Desk {
            handle,
            running: Running::new(&as_recorded(&request.scenario)),
            machine: request.machine.clone(),
            states: request.places().states().to_vec(),
            about: about(request, number),
            nested: request.enclosing,
            begun: ProcessorTime::now(),
            calibration: request.calibration_facts,
        };
        let thread =
            std::thread::Builder::new().name("airpath-control".into()).spawn(move || serve(&socket, &stopped, desk))?;
        Ok(Control { number, folder, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The scenario as the manifest has it, from which a replay starts: it does not say of a state that it
/// sets a parameter to the value of the beginning. Files are read from where they lie.
fn as_recorded(scenario: &Scenario) -> Scenario {
    let printed = scenario
        .to_toml_with_files(&|file| Some(file.display().to_string()))
        .ok()
        .and_then(|text| Scenario::from_toml(&text, "scenario").ok());
    printed.unwrap_or_else(|| scenario.clone())
}

/// Unchanging part of a run's description.
fn about(request: &RunRequest, number: u32) -> Value {
    let shown = |words: &Vec<OsString>| words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command: Vec<String> = request.clients.first().map(shown).unwrap_or_default();
    json!({
        "run": number,
        "folder": request.out.as_ref().map(|folder| folder.display().to_string()),
        "scenario": request.scenario.name,
        "command": command,
        "seed": request.seed,
        "hops": request.places().hops(),
        "states": request.places().states(),
        "airpath_version": env!("CARGO_PKG_VERSION"),
    })
}

struct Client {
    stream: UnixStream,
    buffer: Line,
    watched: Option<Watched>,
}

/// Baseline of a client's watch: the state of the run's link, and of the run around it, when it began.
struct Watched {
    start: Measurements,
    processors: ProcessorTime,
    around: Option<Around>,
}

/// Serves clients until `stopped` is closed at its other end.
fn serve(socket: &Socket, stopped: &OwnedFd, mut desk: Desk) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let mut ends = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        ends.push(PollFd::new(socket.listener.as_fd(), PollFlags::POLLIN));
        ends.extend(clients.iter().map(|client| PollFd::new(client.stream.as_fd(), PollFlags::POLLIN)));
        match poll(&mut ends, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
        let ready: Vec<bool> = ends.iter().map(|end| end.any().unwrap_or_default()).collect();
        if ready[0] {
            return;
        }
        let mut index = 1;
        clients.retain_mut(|client| {
            index += 1;
            !ready[index] || desk.attend(client).is_ok()
        });
        if ready[1] {
            accept(&socket.listener, &mut clients);
        }
    }
}

/// Takes those who want to talk, if they are who started the run.
fn accept(listener: &UnixListener, clients: &mut Vec<Client>) {
    while let Ok((mut stream, _)) = listener.accept() {
        let owner = getsockopt(&stream, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw());
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let refusal = match (owner, clients.len() < CLIENTS) {
            (false, _) => Refusal::new("owner", "only the user who started the run may control it"),
            (_, false) => Refusal::new("busy", "too many control connections; close some"),
            _ => {
                clients.push(Client { stream, buffer: Vec::new(), watched: None });
                continue;
            }
        };
        let _ = writeln!(stream, "{}", refusal.answer());
    }
}

/// Executor of requests.
struct Desk {
    handle: Handle,
    running: Running,
    machine: MachineConfig,
    states: Vec<String>,
    about: Value,
    /// True if there is a run around this one.
    nested: bool,
    /// State of the processors when the run began.
    begun: ProcessorTime,
    /// Quality of the run's calibration.
    calibration: Option<CalibrationFacts>,
}

impl Desk {
    /// Reads what `client` has sent and answers every whole line; an error means that they are gone, or
    /// do not read what they asked for.
    fn attend(&mut self, client: &mut Client) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match client.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => client.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while let Some(end) = client.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Line = client.buffer.drain(..=end).collect();
                let answer = self.answer(&String::from_utf8_lossy(&line), &mut client.watched);
                client.stream.write_all(format!("{answer}\n").as_bytes())?;
            }
            if client.buffer.len() > LONGEST_LINE_BYTES {
                let message = format!("a request line is limited to {LONGEST_LINE_BYTES} bytes");
                client.stream.write_all(format!("{}\n", Refusal::new("request", message).answer()).as_bytes())?;
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    fn answer(&mut self, line: &str, watched: &mut Option<Watched>) -> Value {
        Request::read(line)
            .and_then(|request| self.carry_out(request, watched))
            .unwrap_or_else(|refusal| refusal.answer())
    }

    fn carry_out(&mut self, request: Request, watched: &mut Option<Watched>) -> Result<Value, Refusal> {
        if let (Request::Get { .. } | Request::Set { .. }, true) = (&request, self.machine.users().len() > 1) {
            let message = "the run has several users, whose parameters cannot be read or set while it runs; give \
                           users states in the scenario, and enter them with `airpath state`";
            return Err(Refusal::new("parameter", message));
        }
        match request {
            Request::Watch {} => {
                // Whoever is further out is asked first: this takes longer than the own link.
                let around = self.nested.then(Around::watch);
                let start = self.look()?;
                let answer = json!({ "version": VERSION, "ok": true, "time_ns": start.duration_ns });
                *watched = Some(Watched { start, processors: ProcessorTime::now(), around });
                Ok(answer)
            }
            Request::Verdict {} => {
                let now = self.look()?;
                let time_ns = now.duration_ns;
                let Watched { start, processors, around } = watched.take().unwrap_or_else(|| Watched {
                    start: Measurements::default(),
                    processors: self.begun,
                    around: self.nested.then(Around::watch),
                });
                let mut measured = now.since(&start);
                measured.machine = machine::seen_from_beside(ProcessorTime::now().since(&processors), self.calibration);
                measured.ends.around = around.map(Around::judge);
                Ok(json!({
                    "version": VERSION,
                    "ok": true,
                    "time_ns": time_ns,
                    "since_ns": start.duration_ns,
                    "verdict": judge(&measured),
                }))
            }
            Request::Describe {} => {
                let done = self.order(None)?;
                let mut answer = self.done(&done);
                if let (Value::Object(answer), Value::Object(about)) = (&mut answer, &self.about) {
                    answer.extend(about.clone());
                }
                Ok(answer)
            }
            Request::Get { parameter } => {
                let done = self.order(None)?;
                let value = self.running.get(&parameter, done.state);
                let value = value.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                let mut answer = self.done(&done);
                answer["parameter"] = parameter.into();
                answer["value"] = value;
                Ok(answer)
            }
            Request::State { name } => {
                let record = json!({ "enter_state": name }).to_string();
                let done = self.order(Some((Command::EnterState(name.into()), record)))?;
                Ok(self.done(&done))
            }
            Request::Set { parameter, value, mut parameters } => {
                match (parameter, value) {
                    (Some(parameter), Some(value)) => drop(parameters.insert(parameter, value)),
                    (None, None) => {}
                    _ => return Err(Refusal::new("request", "`parameter` and `value` go together")),
                }
                if parameters.is_empty() {
                    let message = "name a `parameter` and its `value`, or several as `parameters`";
                    return Err(Refusal::new("request", message));
                }
                let assignments = Running::assignments(&parameters);
                let setting = self.running.set(&assignments);
                let setting = setting.map_err(|report| Refusal::new("parameter", report.to_string()))?;
                let record = json!({ "set": assignments }).to_string();
                let done = self.order(Some((Command::Configure(self.machine.setting(ONLY_USER, setting)), record)))?;
                self.running.took_effect(done.state);
                Ok(self.done(&done))
            }
        }
    }

    /// Measurements of the link until now.
    fn look(&self) -> Result<Measurements, Refusal> {
        let (answer, answered) = channel();
        self.handle.send(Word::Look(0, answer));
        match answered.recv_timeout(PATIENCE) {
            Ok(Some(look)) => Ok(measured::of_link(&look)),
            Ok(None) => Err(not_begun()),
            Err(_) => Err(Refusal::new("ended", "the run has ended")),
        }
    }

    /// Hands an order to the loop and waits for what became of it.
    fn order(&self, command: Option<(Command, String)>) -> Result<Done, Refusal> {
        let (answer, answered) = channel();
        let received_ns = clock::monotonic_ns();
        self.handle.send(Word::Order(Order { link: 0, received_ns, command, answer }));
        match answered.recv_timeout(PATIENCE) {
            Ok(Answer::Done { received, at, state }) => Ok(Done { received, at, state }),
            Ok(Answer::NotBegun) => Err(not_begun()),
            Ok(Answer::Behind(by)) => {
                let message = format!("the link is {by} behind its clock: the engine cannot keep up with its load");
                Err(Refusal::new("behind", message))
            }
            Ok(Answer::Refused(error)) => {
                let kind = match error {
                    airpath_core::CommandError::UnknownState { .. } => "state",
                    airpath_core::CommandError::Mismatch(_) => "parameter",
                };
                Err(Refusal::new(kind, error.to_string()))
            }
            Err(_) => Err(Refusal::new("ended", "the run has ended")),
        }
    }

    fn done(&self, done: &Done) -> Value {
        json!({
            "version": VERSION,
            "ok": true,
            "time_ns": done.at.nanos(),
            "received_ns": done.received.nanos(),
            "state": self.states.get(usize::from(done.state.number)),
        })
    }
}

fn not_begun() -> Refusal {
    Refusal::new("not_begun", "the run has not started; try again in a moment")
}

struct Done {
    received: Time,
    at: Time,
    state: StateInForce,
}
