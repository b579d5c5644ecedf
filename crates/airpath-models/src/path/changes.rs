// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes of the parameters of a path: states and commands.

use airpath_core::{Command, CommandError, Cx, Direction, EventKind, Pdu, Time};

use super::Path;
use crate::bearers::Bearers;
use crate::config::{HopConfig, Setting};
use crate::entity::LinkEntity;
use crate::filter_list::FilterList;
use crate::hop::Hop;
use crate::medium::Medium;

impl<E: LinkEntity, M: Medium> Path<E, M> {
    /// Puts state number `state` in force.
    pub(super) fn enter(&mut self, at: Time, state: u16, cx: &mut Cx<'_>) {
        self.schedule.enter(at, state);
        cx.record(self.of_path(at, Direction::Uplink, EventKind::StateChanged, &Pdu::default()));
        // Nothing below looks at the list.
        let states = std::mem::take(&mut self.states);
        self.put_in_force(at, &states[usize::from(state)].1, cx);
        self.states = states;
    }

    /// Puts `configs` in force.
    fn put_in_force(&mut self, at: Time, configs: &[HopConfig], cx: &mut Cx<'_>) {
        self.set_windows(configs);
        // What is behind the windows has to be known before the hops go on.
        self.follow_windows(at, cx);
        configure(at, &mut self.hops, &mut self.bearers, configs, self.schedule.state(), cx);
        self.follow_windows(at, cx);
    }

    /// Puts `configs` in force without another state.
    fn configure(&mut self, at: Time, configs: &[HopConfig], kind: EventKind, cx: &mut Cx<'_>) {
        cx.record(self.of_path(at, Direction::Uplink, kind, &Pdu::default()));
        self.put_in_force(at, configs, cx);
    }

    /// True if `configs` have a hop for each of the path's, with as many bearers.
    fn is_described_by(&self, configs: &[HopConfig]) -> bool {
        let counts = (0..self.hop_count()).map(|hop| self.bearers_of(hop).len());
        configs.iter().map(HopConfig::bearer_count).eq(counts)
    }

    /// Parameters in force once `setting` is.
    fn in_force<'a>(&self, setting: &'a Setting) -> Result<&'a [HopConfig], CommandError> {
        if let Some((entries, hops)) = &setting.since
            && *entries == self.schedule.entries()
        {
            return Ok(hops);
        }
        match setting.in_force.get(usize::from(self.schedule.state())) {
            Some(Ok(hops)) => Ok(hops),
            Some(Err(why)) => Err(CommandError::Mismatch(why.clone())),
            None => Err(CommandError::Mismatch("it does not tell of the state in force".into())),
        }
    }

    /// The parameters that `setting` puts in force, if it fits the path in its present state.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn fits<'a>(&self, setting: &'a Setting) -> Result<&'a [HopConfig], CommandError> {
        let mut all = std::iter::once(&setting.beginning).chain(&setting.states);
        if setting.states.len() + 1 != self.states.len() || !all.all(|configs| self.is_described_by(configs)) {
            return Err(CommandError::Mismatch("the setting describes another path".into()));
        }
        self.filters_with(setting)?;
        self.in_force(setting)
    }

    /// The filters with those of `setting`.
    fn filters_with(&self, setting: &Setting) -> Result<FilterList, CommandError> {
        let mut filters = self.filters.as_deref().cloned().unwrap_or_default();
        let hops = std::iter::once(&setting.beginning).chain(&setting.states);
        for hops in hops.chain(setting.in_force.iter().flatten()).chain(setting.since.iter().map(|(_, hops)| hops)) {
            filters.add(hops).map_err(CommandError::Mismatch)?;
        }
        Ok(filters)
    }

    /// Puts `setting` in force at `at`, up to which everything has been run.
    ///
    /// # Errors
    /// Those of [`Path::fits`]; nothing is changed then.
    pub(crate) fn set(&mut self, at: Time, setting: &Setting, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        let now = self.fits(setting)?;
        let filters = self.filters_with(setting)?;
        self.configure(at, &filters.numbered(now), EventKind::ParameterSet, cx);
        let all = std::iter::once(&setting.beginning).chain(&setting.states);
        for ((_, state), configs) in self.states.iter_mut().zip(all) {
            *state = filters.numbered(configs);
        }
        self.filters = filters.shared();
        Ok(())
    }

    /// Carries out a command at `at`, up to which everything has been run: the state in force is known then.
    pub(crate) fn carry_out(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        match command {
            Command::EnterState(name) => {
                let Some(index) = self.state_number(name) else {
                    let known: Vec<&str> = self.state_names().collect();
                    return Err(CommandError::UnknownState { name: name.to_string(), known: known.join(", ") });
                };
                self.enter(at, index, cx);
            }
            Command::Configure(value) => {
                if let Some(setting) = value.downcast_ref::<Setting>() {
                    return self.set(at, setting, cx);
                }
                let Some(hops) = value.downcast_ref::<Vec<HopConfig>>() else {
                    return Err(CommandError::Mismatch("a path takes the parameters of its hops".into()));
                };
                if !self.is_described_by(hops) {
                    let message = format!(
                        "it has {} hops with {} bearers, the command describes {} with {}",
                        self.hop_count(),
                        self.hops.len(),
                        hops.len(),
                        hops.iter().map(HopConfig::bearer_count).sum::<usize>()
                    );
                    return Err(CommandError::Mismatch(message));
                }
                let mut filters = self.filters.as_deref().cloned().unwrap_or_default();
                filters.add(hops).map_err(CommandError::Mismatch)?;
                self.configure(at, &filters.numbered(hops), EventKind::StateChanged, cx);
                self.filters = filters.shared();
            }
        }
        Ok(())
    }

    /// Names of the states, that of the beginning first.
    pub(crate) fn state_names(&self) -> impl Iterator<Item = &str> {
        self.states.iter().map(|(name, _)| name.as_str())
    }

    /// Number of the state of this name.
    pub(crate) fn state_number(&self, name: &str) -> Option<u16> {
        self.state_names().position(|known| known == name).map(|index| index as u16)
    }
}

fn configure<E: LinkEntity, M: Medium>(
    at: Time,
    hops: &mut [Hop<E, M>],
    bearers: &mut Option<Box<Bearers>>,
    configs: &[HopConfig],
    state: u16,
    cx: &mut Cx<'_>,
) {
    if let Some(bearers) = bearers {
        bearers.configure(configs);
    }
    let mut hops = hops.iter_mut();
    for config in configs {
        if config.uplink.bearers.is_empty() {
            hops.by_ref().take(1).for_each(|hop| hop.configure(at, config, state, cx));
            continue;
        }
        for (config, hop) in config.of_bearers().iter().zip(hops.by_ref()) {
            hop.configure(at, config, state, cx);
        }
    }
}
