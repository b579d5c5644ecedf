// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The loop that carries packets between ports and machines in real time: one thread, any number of
//! links. The machines live in logical time; the loop offers packets with the time at which they
//! arrived, and writes what is due. How late it is is measured and reported, never fed back.

mod ahead;
mod asleep;
mod circling;
mod credits;
mod egress;
mod foretelling;
mod frame;
mod frames;
mod held_back;
mod ingress;
mod journeys;
mod later;
mod layout;
mod link;
mod load;
mod measure;
mod plans;
mod spin;
mod stamps;
mod step;
mod traffic;
mod unread;
mod waiter;

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use ahead::Foretold;
use airpath_core::{BufferPool, PortId, Span, Time};
use asleep::{Kept, OwnThread};
use nix::sys::eventfd::{EfdFlags, EventFd};
use smallvec::SmallVec;

use airpath_log::{Economy, Quantum};
pub use circling::{Circling, CirclingCounts};
use later::Later;
use link::Reading;
pub use link::{FinishedLink, LinkLook, LiveLink, PortLosses};
use load::Load;
pub use measure::LinkMeasurements;
use plans::Plans;
pub use spin::{AutoSpin, MOST_MARGIN_NS, MarginCourse, Spin, SpinPolicy, WHOLE_CORE_PPM, share_of_a_core, show_share};
use stamps::Stamps;
pub use stamps::{ClockReport, ClockStep};
use step::Step;
pub use traffic::TrafficNotifier;
use waiter::{Waiter, Wake};

use crate::clock;
use crate::scheduling::ThreadUsage;
use crate::series;
use crate::watchdog;

/// Slabs are large enough for a burst of super-packets, small enough for the second-level cache.
const SLAB_BYTES: usize = 1 << 20;
/// Number of slabs before the first packet.
const SLABS_AT_START: usize = 4;
/// Maximum number of reads per port before an order is carried out, where a port has more than one turn takes.
const READS_BEFORE_AN_ORDER: usize = 64;
/// Interval of wake-ups where packets bear no stamps. A stop is told in any case; that it cannot have begun
/// before the last look-up bounds for how long packets may have waited.
const HEARTBEAT_NS: u64 = 100_000_000;
/// Time after the last packet for which it does so.
const HEARTBEATS_LAST_NS: u64 = 5_000_000_000;
/// Interval of wake-ups after that: an idle link costs next to nothing.
const SLOW_HEARTBEAT_NS: u64 = 1_000_000_000;

/// Factor of the time for which ports may be left unread where the clock stands still while there is work: only what
/// comes in that time has to find room, and not what comes while the loop is kept from reading.
const LONGER_UNREAD: u32 = 20;

/// A word to the loop from another thread.
#[derive(Debug)]
pub enum Word {
    /// The run begins: t = 0 is this instant of CLOCK_MONOTONIC in ns.
    /// It answers once it is so, for what is sent earlier is thrown away.
    Start(u64, Sender<()>),
    /// Carry out an order on a link.
    Order(Order),
    /// Say what was measured at a link up to now; nothing before the run begins.
    Look(usize, Sender<Option<LinkLook>>),
    /// Stop. The run ends at this instant of CLOCK_MONOTONIC in ns where the clock stands still while there is work;
    /// elsewhere it ends when the loop has heard it.
    Stop(u64),
}

/// A command to a machine, or the question how it stands.
#[derive(Debug)]
pub struct Order {
    /// Index of the link.
    pub link: usize,
    /// Time of receipt, by CLOCK_MONOTONIC in ns: the time at which it takes effect, unless the machine has
    /// been driven further meanwhile. A time to come is waited for, and met exactly.
    pub received_ns: u64,
    /// The command, and how the input log is to have it; none to ask only.
    pub command: Option<(airpath_core::Command, String)>,
    /// Channel of the answer.
    pub answer: Sender<Answer>,
}

/// Answer to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The run has not begun.
    NotBegun,
    /// The machine is so far behind its clock that it is not yet where the command is to take effect.
    Behind(Span),
    /// The machine refused the command.
    Refused(airpath_core::CommandError),
    /// It was carried out.
    Done {
        /// Time of receipt, in run time.
        received: Time,
        /// Time at which it took effect.
        at: Time,
        /// State in force of each user of the machine.
        states: Vec<airpath_core::StateInForce>,
    },
}

/// The other threads' end of the loop.
#[derive(Clone)]
pub struct Handle {
    words: Sender<Word>,
    notifier: std::sync::Arc<EventFd>,
}

impl Handle {
    /// Begins the run with t = 0 at `epoch_ns` of CLOCK_MONOTONIC, and returns once the loop has heard
    /// it: packets that are sent from then on are the run's.
    pub fn begin(&self, epoch_ns: u64) {
        let (answer, answered) = channel();
        self.send(Word::Start(epoch_ns, answer));
        // A loop that has ended drops the word, and with it the answer.
        let _ = answered.recv();
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.send(Word::Stop(clock::monotonic_ns()));
    }

    /// Sends a word; a loop that has ended hears nothing.
    pub fn send(&self, word: Word) {
        if self.words.send(word).is_ok() {
            let _ = self.notifier.write(1);
        }
    }
}

/// Report of the loop at the end.
#[derive(Clone, Debug, Default)]
pub struct LoopReport {
    /// Start of the run, by CLOCK_MONOTONIC in ns.
    pub epoch_ns: u64,
    /// Time spent watching the clock, in ns.
    pub spun_ns: u64,
    /// Processor time of the thread, in ns.
    pub processor_ns: u64,
    /// Number of wake-ups.
    pub wake_ups: u64,
    /// Margins of wake-ups before deadlines.
    pub margin: MarginCourse,
    /// Resource usage of the thread meanwhile.
    pub usage: ThreadUsage,
    /// Time at which it lost its real-time priority because it had not slept for too long, in run time.
    pub demoted: Option<Time>,
    /// Number of signals from programs that imitate the kernel's demotion signal.
    pub false_alarms: u64,
    /// Observations of the wall clock, which the kernel's stamps use.
    pub clock: ClockReport,
    /// Packets bear no stamps, and the kernel does not tell how long the loop waited for a processor.
    pub reads_unwatched: bool,
    /// End of the loop, in run time.
    pub ended: Time,
}

/// The loop with its links.
pub struct EngineLoop {
    links: Vec<LiveLink>,
    /// Number of the first port of each link, and behind them that of all ports.
    first_ports: Vec<u32>,
    waiter: Waiter,
    words: Receiver<Word>,
    notifier: std::sync::Arc<EventFd>,
    spin_policy: SpinPolicy,
    pool: BufferPool,
    epoch_ns: u64,
    started: bool,
    /// End of the run, where it is not the moment at which the loop hears of it.
    stopped: Option<Time>,
    stamps: Stamps,
    reads_unwatched: bool,
    frozen_clock: bool,
    economy: Economy,
    single_departures: bool,
    /// Orders whose time is to come.
    later: Later,
    plans: Plans,
    /// Packets that leave during a nap.
    foretold: Foretold,
    /// Links whose packets bear no stamps.
    unstamped: Vec<usize>,
    /// Is told of each link that is lost; without it the loss of one ends the loop.
    on_lost: Option<OnLost>,
}

/// Hears the index of a link that is lost.
type OnLost = Box<dyn FnMut(usize) + Send>;

impl EngineLoop {
    /// A loop over `links`, and the handle by which it is started and stopped.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new(mut links: Vec<LiveLink>, spin_policy: SpinPolicy) -> io::Result<(EngineLoop, Handle)> {
        let notifier = std::sync::Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
        let (sender, words) = channel();
        let mut waiter = Waiter::new(notifier.as_fd())?;
        let mut first_ports = vec![0];
        let mut count = 0;
        for link in &mut links {
            for port in &*link.ports() {
                waiter.add_port(port.as_fd(), count)?;
                count += 1;
            }
            first_ports.push(count);
        }
        let unstamped = (0..links.len()).filter(|link| !links[*link].has_kernel_stamps()).collect();
        let engine = EngineLoop {
            plans: Plans::new(links.len()),
            foretold: Foretold::default(),
            unstamped,
            on_lost: None,
            links,
            first_ports,
            waiter,
            words,
            notifier: notifier.clone(),
            spin_policy,
            pool: BufferPool::new(SLAB_BYTES),
            epoch_ns: clock::monotonic_ns(),
            started: false,
            stopped: None,
            stamps: Stamps::of_this_host(),
            reads_unwatched: false,
            frozen_clock: false,
            economy: Economy::Off,
            single_departures: false,
            later: Later::default(),
        };
        Ok((engine, Handle { words: sender, notifier }))
    }

    /// For a kernel whose time passes only while everything sleeps: the clock is read after waiting
    /// and not again while there is work, since a look at it is a system call there, and the most
    /// frequent one. Packets are handed over with the next call that waits, and those that are certain to leave before
    /// the loop has to look around with that call, too, which sends each at its time. Every packet leaves at its own
    /// instant: waiting for others would save nothing.
    #[must_use]
    pub fn with_frozen_clock(mut self) -> EngineLoop {
        self.waiter.heed_deferred();
        self.links.iter_mut().flat_map(LiveLink::ports).for_each(|port| port.defer_writes());
        self.links.iter_mut().for_each(|link| link.leave_unread_times(LONGER_UNREAD));
        EngineLoop { frozen_clock: true, single_departures: true, ..self }
    }

    /// Goes on without a link that is lost because one of its ports is gone, and tells `on_lost` its index.
    #[must_use]
    pub fn outliving_links(self, on_lost: impl FnMut(usize) + Send + 'static) -> EngineLoop {
        EngineLoop { on_lost: Some(Box::new(on_lost)), ..self }
    }

    /// Trades exactness of departures for processor time, within their bound.
    #[must_use]
    pub fn with_economy(self, economy: Economy) -> EngineLoop {
        EngineLoop { economy, ..self }
    }

    /// Every packet leaves at its own instant, whatever that costs.
    #[must_use]
    pub fn with_single_departures(self) -> EngineLoop {
        EngineLoop { single_departures: true, ..self }
    }

    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// When the kernel refuses to wait, or a port goes away and the loop does not outlive its links.
    pub fn run(mut self) -> io::Result<(Vec<FinishedLink>, LoopReport)> {
        // With memory locked, what is new is fetched page by page, and the first packets would wait. Where the
        // clock stands still, nothing waits.
        if !self.frozen_clock {
            self.pool.prepare(SLABS_AT_START);
            crate::ports::prepare_thread();
        }
        // Of an earlier loop of this thread.
        series::forget_received();
        let mut spin = Spin::new(self.spin_policy, clock::monotonic_ns());
        let mut readable: Vec<u32> = Vec::new();
        let mut report = LoopReport::default();
        let stamped = self.unstamped.is_empty();
        // In a guest nothing is stopped or starved while its time runs.
        let own = (!stamped && !self.frozen_clock).then(OwnThread::open);
        self.reads_unwatched = own.as_ref().is_some_and(|own| !own.is_told());
        let mut last_read_ns = None;
        let mut looked_ns = clock::monotonic_ns();
        let processor_start = clock::thread_processor_ns();
        let mut load = Load::since(looked_ns, processor_start);
        let mut economical = self.economy == Economy::On;
        self.economise(economical, &mut spin);
        let usage_start = ThreadUsage::now();
        loop {
            let mut commanded = false;
            readable.clear();
            let deadline_ns = self.next_deadline_ns();
            let now_ns = clock::monotonic_ns();
            if self.economy == Economy::Auto {
                let is_high = load.is_high(now_ns, clock::thread_processor_ns);
                if is_high != economical {
                    economical = is_high;
                    self.economise(economical, &mut spin);
                }
            }
            if self.started {
                let (from, until) = (self.time_of(looked_ns), self.time_of(now_ns));
                self.away(from, until);
            }
            let mut note = |wake: Wake| match wake {
                Wake::Port(port) => readable.push(port),
                Wake::Command => commanded = true,
            };
            let busy = last_read_ns.is_some_and(|last_ns| now_ns - last_ns < HEARTBEATS_LAST_NS);
            let heartbeat_ns = match (&own, busy) {
                _ if stamped => u64::MAX,
                (_, true) => HEARTBEAT_NS,
                // Without the kernel's account nothing else tells of a loop that was starved.
                (Some(own), false) => {
                    if own.is_told() {
                        SLOW_HEARTBEAT_NS
                    } else {
                        HEARTBEAT_NS
                    }
                }
                (None, false) => u64::MAX,
            };
            // The last look at the clock.
            let mut known_ns = now_ns;
            // Whether the loop waited for the deadline, and not for packets.
            let mut awaited = false;
            let mut polled_in_vain = false;
            // How long packets without stamps may have waited while it slept.
            let mut kept: Option<Kept> = None;
            match Step::next(now_ns, deadline_ns, heartbeat_ns, || self.may_leave_unread_ns(), &mut spin) {
                Step::Look => self.waiter.poll(&mut note)?,
                Step::Poll => {
                    self.waiter.poll(&mut note)?;
                    polled_in_vain = readable.is_empty() && !commanded;
                }
                Step::Nap { mut wake_ns, mut deadline_ns } => {
                    let mut polled = false;
                    if wake_ns > now_ns {
                        // Where the clock stands still, nothing is to be done between waking and looking.
                        polled = self.frozen_clock;
                        if polled {
                            wake_ns = self.send_ahead(now_ns, wake_ns)?;
                            deadline_ns = deadline_ns.max(wake_ns);
                            self.waiter.nap_and_poll(wake_ns, &mut note)?;
                            self.note_sent();
                        } else {
                            self.waiter.nap(wake_ns);
                        }
                        report.wake_ups += 1;
                    }
                    let woke_ns = clock::monotonic_ns();
                    known_ns = woke_ns;
                    if wake_ns > now_ns && woke_ns >= wake_ns {
                        spin.woke(wake_ns, woke_ns);
                    }
                    // One that a signal cut short just looks around earlier.
                    if woke_ns >= wake_ns {
                        if woke_ns < deadline_ns {
                            spin.spent(self.waiter.watch_clock(deadline_ns)? - woke_ns);
                        }
                        awaited = true;
                    }
                    if !polled {
                        self.waiter.poll(&mut note)?;
                    }
                }
                Step::Beat { wake_ns } => {
                    let before = own.as_ref().map(OwnThread::now);
                    let interrupted = self.waiter.sleep(wake_ns, &mut note)?;
                    report.wake_ups += 1;
                    let woke_ns = clock::monotonic_ns();
                    known_ns = woke_ns;
                    if interrupted || woke_ns >= wake_ns {
                        // A process that was stopped is told of the interruption and of nothing else.
                        self.waiter.poll(&mut note)?;
                    }
                    // Nobody waited for a late look-up that found nothing: it did no harm.
                    if !readable.is_empty()
                        && let (Some(own), Some(before)) = (&own, before)
                    {
                        kept =
                            Some(Kept::between(&before, &own.now(), interrupted).or_late_by(woke_ns, wake_ns, now_ns));
                    }
                }
                Step::Sleep { wake_ns, margin_ns } => {
                    if wake_ns > now_ns {
                        // A short sleep is not worth asking the kernel about.
                        let own = own.as_ref().filter(|_| wake_ns - now_ns > asleep::SHORT_NS);
                        let before = own.map(OwnThread::now);
                        let interrupted = self.waiter.sleep(wake_ns, &mut note)?;
                        report.wake_ups += 1;
                        known_ns = clock::monotonic_ns();
                        if interrupted {
                            self.waiter.poll(&mut note)?;
                        }
                        if !readable.is_empty()
                            && let (Some(own), Some(before)) = (own, before)
                        {
                            kept = Some(
                                Kept::between(&before, &own.now(), interrupted).or_late_by(known_ns, wake_ns, now_ns),
                            );
                        }
                    } else {
                        self.waiter.poll(&mut note)?;
                    }
                    let woke_ns = clock::monotonic_ns();
                    known_ns = woke_ns;
                    if readable.is_empty() && !commanded && deadline_ns != u64::MAX {
                        if wake_ns > now_ns && woke_ns >= wake_ns {
                            spin.woke(wake_ns, woke_ns);
                            // Whatever kept the loop from waking kept it from reading, too.
                            let (due, woke) = (self.time_of(wake_ns), self.time_of(woke_ns));
                            self.away(due, woke);
                        }
                        // A sleep that a signal cut short ended at no margin: the deadline may be far off.
                        if margin_ns > 0 && (wake_ns..deadline_ns).contains(&woke_ns) {
                            spin.spent(self.waiter.watch_clock(deadline_ns)? - woke_ns);
                            self.waiter.poll(|wake| match wake {
                                Wake::Port(port) => readable.push(port),
                                Wake::Command => commanded = true,
                            })?;
                        }
                        awaited = woke_ns >= wake_ns;
                    }
                }
            }
            looked_ns = if self.frozen_clock { known_ns } else { clock::monotonic_ns() };
            if !readable.is_empty() {
                last_read_ns = Some(looked_ns);
            }
            if polled_in_vain {
                spin.polled(looked_ns - now_ns);
            }
            if let (Some(kept), true) = (kept, self.started) {
                let at_most = Span::from_nanos(kept.at_most_ns);
                self.unstamped.iter().for_each(|link| self.links[*link].measurements.kept(at_most));
            }
            let stepped = self.waiter.take_clock_step();
            self.stamps.waited(looked_ns, stepped);
            if commanded {
                if self.listen(looked_ns)? {
                    if self.stopped.is_some() {
                        self.turn(looked_ns, &mut readable)?;
                    }
                    break;
                }
                if self.started {
                    spin.begin(looked_ns);
                }
            }
            while let Some(order) = self.later.pop_due(looked_ns) {
                self.answer(order, looked_ns)?;
            }
            self.turn(looked_ns, &mut readable)?;
            if awaited && let Some(work_ns) = self.work_since(deadline_ns.max(looked_ns)) {
                spin.worked(work_ns + looked_ns.saturating_sub(deadline_ns.max(known_ns)));
            }
        }
        // Sends what is deferred.
        self.waiter.poll(|_| ())?;
        report.ended = self.stopped.unwrap_or_else(|| self.time_of(clock::monotonic_ns()));
        if self.started {
            let epoch_ns = self.epoch_ns;
            let clock = || Time::from_nanos(clock::monotonic_ns().saturating_sub(epoch_ns));
            for index in 0..self.links.len() {
                let link = &mut self.links[index];
                if !link.is_lost()
                    && let Err(error) = link.settle(report.ended, clock)
                {
                    self.lose(index, error)?;
                }
            }
        }
        report.spun_ns = spin.spun_ns();
        report.margin = spin.course();
        report.processor_ns = clock::thread_processor_ns() - processor_start;
        report.usage = ThreadUsage::now().since(usage_start);
        report.demoted = watchdog::demoted_at_ns().map(|at_ns| self.time_of(at_ns));
        report.false_alarms = watchdog::false_alarms();
        report.clock = self.stamps.report().clone();
        report.epoch_ns = self.epoch_ns;
        report.reads_unwatched = self.reads_unwatched;
        Ok((self.links.into_iter().map(LiveLink::finish).collect(), report))
    }

    /// Chooses between the widest quantum and the precise one.
    fn economise(&mut self, economical: bool, spin: &mut Spin) {
        let quantum = match (self.single_departures, economical) {
            (true, _) => Quantum::None,
            (false, true) => Quantum::Widest,
            (false, false) => Quantum::Precise,
        };
        self.links.iter_mut().for_each(|link| link.set_quantum(quantum));
        spin.rest(economical);
    }

    fn time_of(&self, monotonic_ns: u64) -> Time {
        Time::from_nanos(monotonic_ns.saturating_sub(self.epoch_ns))
    }

    fn next_deadline_ns(&self) -> u64 {
        if !self.started {
            return u64::MAX;
        }
        let next = self.plans.next();
        let next_ns = if next == Time::NEVER { u64::MAX } else { self.epoch_ns.saturating_add(next.nanos()) };
        next_ns.min(self.later.next_ns().unwrap_or(u64::MAX))
    }

    /// Time until the first packet that has left since was gone, in ns.
    fn work_since(&self, from_ns: u64) -> Option<u64> {
        let departed = self.plans.departed_since(self.time_of(from_ns))?;
        Some(self.epoch_ns.saturating_add(departed.nanos()).saturating_sub(from_ns))
    }

    /// Time for which every port may be left unread.
    fn may_leave_unread_ns(&self) -> u64 {
        self.plans.least_unread().nanos()
    }

    /// The loop was away from the ports from `from` until `until`, which matters where packets bear no stamps.
    fn away(&mut self, from: Time, until: Time) {
        self.unstamped.iter().for_each(|link| self.links[*link].away(from, until));
    }

    /// Reads the ports that have something and drives every link that has something to do.
    fn turn(&mut self, now_ns: u64, readable: &mut Vec<u32>) -> io::Result<()> {
        let now = self.time_of(now_ns);
        readable.sort_unstable();
        readable.dedup();
        // No machine goes beyond an order that is to come, nor beyond the end.
        let order = self.later.next_ns().map_or(Time::NEVER, |at_ns| self.time_of(at_ns));
        let limit = order.min(self.stopped.unwrap_or(Time::NEVER));
        // Before the run begins there is no time for a machine to be in.
        let flushes = self.started && self.plans.next() <= now;
        let mut rest = &readable[..];
        for index in 0..self.links.len() {
            let (ports, others) = rest.split_at(rest.partition_point(|port| *port < self.first_ports[index + 1]));
            rest = others;
            if ports.is_empty() && !(flushes && self.plans.is_due(index, now)) || self.links[index].is_lost() {
                if rest.is_empty() && !flushes {
                    break;
                }
                continue;
            }
            if let Err(error) = self.serve(index, ports, now_ns, limit) {
                self.lose(index, error)?;
            }
            self.note(index)?;
        }
        if flushes {
            self.plans.flushed(now);
        }
        for link in &self.unstamped {
            let link = &mut self.links[*link];
            if !link.is_behind() {
                link.measurements.looked();
            }
        }
        Ok(())
    }

    /// Reads `ports` of a link and drives its machine, at most to `limit`.
    fn serve(&mut self, index: usize, ports: &[u32], now_ns: u64, limit: Time) -> io::Result<()> {
        let (epoch, still, now) = (self.epoch_ns, self.frozen_clock, self.time_of(now_ns));
        let clock = move || if still { now } else { Time::from_nanos(clock::monotonic_ns().saturating_sub(epoch)) };
        let mut reading =
            Reading { now_ns, epoch_ns: epoch, clock: &clock, pool: &mut self.pool, stamps: &mut self.stamps };
        let link = &mut self.links[index];
        for port in ports {
            link.read((*port - self.first_ports[index]) as usize, &mut reading)?;
        }
        if self.started {
            let now = if ports.is_empty() { now } else { clock() };
            link.drive(now.min(limit), clock)?;
            link.tell_of_traffic();
        }
        Ok(())
    }

    /// Notes what a link plans, and which of its ports are to be left alone.
    fn note(&mut self, index: usize) -> io::Result<()> {
        let link = &mut self.links[index];
        if link.is_lost() {
            return Ok(());
        }
        self.plans.note(index, link.plan());
        let unread: SmallVec<[(PortId, bool); 2]> = link.take_unread_ports().collect();
        for (port, leave) in unread {
            let descriptor = link.ports()[usize::from(port.0)].as_fd();
            self.waiter.watch_port(descriptor, self.first_ports[index] + u32::from(port.0), !leave)?;
        }
        Ok(())
    }

    /// Goes on without a link, whose port is gone.
    ///
    /// # Errors
    /// The reason itself, where the loop does not outlive its links.
    fn lose(&mut self, index: usize, error: io::Error) -> io::Result<()> {
        let Some(on_lost) = &mut self.on_lost else { return Err(error) };
        let link = &mut self.links[index];
        link.ports().iter().for_each(|port| self.waiter.forget_port(port.as_fd()));
        link.lose(error);
        self.plans.forget(index);
        on_lost(index);
        Ok(())
    }

    /// Carries out an order and answers it; a link that is lost gives no answer.
    fn answer(&mut self, order: Order, now_ns: u64) -> io::Result<()> {
        if self.links[order.link].is_lost() {
            return Ok(());
        }
        match self.carry_out(&order, now_ns) {
            Ok(answer) => {
                let _ = order.answer.send(answer);
                self.note(order.link)
            }
            Err(error) => self.lose(order.link, error),
        }
    }

    /// Carries out an order at the time at which it was received: what came before it is read and
    /// offered first.
    fn carry_out(&mut self, order: &Order, now_ns: u64) -> io::Result<Answer> {
        let (now, received) = (self.time_of(now_ns), self.time_of(order.received_ns.min(now_ns)));
        let (epoch, still) = (self.epoch_ns, self.frozen_clock);
        let clock = move || if still { now } else { Time::from_nanos(clock::monotonic_ns().saturating_sub(epoch)) };
        let link = &mut self.links[order.link];
        if let Some((command, record)) = &order.command {
            let received = link.effective(received);
            for _ in 0..READS_BEFORE_AN_ORDER {
                let mut reading =
                    Reading { now_ns, epoch_ns: epoch, clock: &clock, pool: &mut self.pool, stamps: &mut self.stamps };
                for side in 0..link.ports().len() {
                    // What came with the wait, then what has come since.
                    link.read(side, &mut reading)?;
                    if still {
                        link.read(side, &mut reading)?;
                    }
                }
                link.drive(received, clock)?;
                if link.driven_to() >= received {
                    break;
                }
            }
            if link.driven_to() < received && link.is_behind() {
                return Ok(Answer::Behind(received.since(link.driven_to())));
            }
            if let Err(error) = link.control(received, command, record) {
                return Ok(Answer::Refused(error));
            }
            link.drive(link.driven_to(), clock)?;
            link.tell_of_traffic();
        }
        let at = if order.command.is_some() { link.driven_to() } else { now };
        Ok(Answer::Done { received, at, states: link.states_in_force() })
    }

    /// Measurements of a link up to now, once the run has begun.
    fn look(&mut self, link: usize, now_ns: u64) -> Option<LinkLook> {
        let demoted = watchdog::demoted_at_ns().map(|at_ns| self.time_of(at_ns));
        let now = self.time_of(now_ns);
        let (clock, epoch_ns, reads_unwatched) = (self.stamps.report().clone(), self.epoch_ns, self.reads_unwatched);
        let link = self.links.get_mut(link).filter(|_| self.started)?;
        Some(LinkLook { demoted, clock, epoch_ns, reads_unwatched, ..link.look(now) })
    }

    /// Hears what other threads said; true if the loop has to end.
    ///
    /// # Errors
    /// A port that is gone.
    fn listen(&mut self, now_ns: u64) -> io::Result<bool> {
        let _ = self.notifier.read();
        loop {
            match self.words.try_recv() {
                Ok(Word::Start(epoch_ns, answer)) => {
                    // What waits at the ports came before the run; where no stamp tells so, this is the
                    // last moment to know it.
                    self.turn(now_ns, &mut (0..self.first_ports[self.links.len()]).collect())?;
                    self.epoch_ns = epoch_ns;
                    self.started = true;
                    self.stamps.begin();
                    self.links.iter_mut().for_each(LiveLink::start);
                    (0..self.links.len()).try_for_each(|index| self.note(index))?;
                    let _ = answer.send(());
                }
                Ok(Word::Order(order)) if self.started && order.received_ns > now_ns => self.later.push(order),
                Ok(Word::Order(order)) if self.started => self.answer(order, now_ns)?,
                Ok(Word::Order(order)) => {
                    let _ = order.answer.send(Answer::NotBegun);
                }
                Ok(Word::Look(link, answer)) => {
                    let _ = answer.send(self.look(link, now_ns));
                }
                Ok(Word::Stop(at_ns)) => {
                    if self.frozen_clock {
                        // A long nap may have gone on, and what was handed to the kernel has left.
                        let stopped = self.time_of(at_ns.min(now_ns));
                        self.stopped = self.links.iter().map(|link| link.effective(stopped)).max();
                    }
                    return Ok(true);
                }
                Err(TryRecvError::Disconnected) => return Ok(true),
                Err(TryRecvError::Empty) => return Ok(false),
            }
        }
    }
}
