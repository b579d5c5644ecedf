// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Links that share nothing: the groups of paths that media connect, each a scenario of its own.

use airpath_core::Direction;
use airpath_models::MachineConfig;
use airpath_models::PathConfig;
use airpath_models::cell::{CellConfig, UserConfig};

use crate::build::PathTree;
use crate::report::Report;
use crate::scenario::{NamedPath, Scenario};

/// A link of a scenario that shares nothing with the others.
#[derive(Clone, Debug)]
pub struct IndependentLink {
    /// Its name: that of its path, or those of the media that its paths share.
    pub name: String,
    /// Its paths and media, and what the whole scenario says about itself.
    pub scenario: Scenario,
}

impl Scenario {
    /// The links that share nothing with each other, in the order of their first paths: a path without shared media is
    /// one, and so are all paths that media connect, directly or by way of others. A scenario of one link is that link.
    ///
    /// # Errors
    /// As [`Scenario::paths`].
    pub fn independent(&self) -> Result<Vec<IndependentLink>, Report> {
        let paths = self.paths()?;
        let groups = groups(&paths.iter().map(|path| media_of(&path.config)).collect::<Vec<_>>());
        let mut links: Vec<IndependentLink> = Vec::with_capacity(groups.len());
        for Group { paths: members, media } in groups {
            let names: Vec<&str> = members.iter().flat_map(|number| self.paths[*number].host_names()).collect();
            let scenario = Scenario {
                hosts: self.hosts.iter().filter(|host| names.contains(&host.name.as_str())).cloned().collect(),
                media: self.media.iter().filter(|medium| media.contains(&medium.name.as_str())).cloned().collect(),
                paths: members.iter().map(|number| self.paths[*number].clone()).collect(),
                ..self.clone()
            };
            let own = match media.as_slice() {
                [] => paths[members[0]].name.clone(),
                media => media.join("-"),
            };
            // Names of media and of paths are told apart by place only.
            let numbered = |number: u32| if number == 1 { own.clone() } else { format!("{own}-{number}") };
            let is_free = |name: &String| !links.iter().any(|link| link.name.eq_ignore_ascii_case(name));
            let name = (1..).map(numbered).find(is_free).unwrap_or_else(|| own.clone());
            links.push(IndependentLink { name, scenario });
        }
        Ok(links)
    }

    /// The scenario with its paths in the order of its independent links, and the users of all of them with the
    /// media, as if they were one machine: to name users, not to run them.
    ///
    /// # Errors
    /// As [`Scenario::paths`].
    pub fn together(&self) -> Result<(Scenario, MachineConfig), Report> {
        let order: Vec<PathTree> = self.independent()?.into_iter().flat_map(|link| link.scenario.paths).collect();
        let scenario = Scenario { paths: order, ..self.clone() };
        let user = |NamedPath { name, config }| UserConfig { name, is_unnamed: false, path: config };
        let users = scenario.paths()?.into_iter().map(user).collect();
        let machine = MachineConfig::Cell(CellConfig { media: scenario.media()?, users });
        Ok((scenario, machine))
    }
}

/// Paths by number, and the media that connect them.
#[derive(Debug, PartialEq)]
struct Group<'a> {
    paths: Vec<usize>,
    media: Vec<&'a str>,
}

/// The media of a path, in all of its states.
pub(crate) fn media_of(path: &PathConfig) -> Vec<&str> {
    let hops = path.hops.iter().chain(path.states.iter().flat_map(|state| &state.hops));
    let mut names: Vec<&str> =
        hops.flat_map(|hop| Direction::ALL.map(|way| hop.link(way).medium.name())).flatten().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn groups<'a>(media: &[Vec<&'a str>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (number, names) in media.iter().enumerate() {
        let (mut connected, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.media.iter().any(|name| names.contains(name)));
        groups = others;
        connected.push(Group { paths: vec![number], media: names.clone() });
        let mut paths: Vec<usize> = connected.iter().flat_map(|group| group.paths.clone()).collect();
        let mut media: Vec<&str> = connected.into_iter().flat_map(|group| group.media).collect();
        paths.sort_unstable();
        media.sort_unstable();
        media.dedup();
        groups.push(Group { paths, media });
    }
    groups.sort_by_key(|group| group.paths[0]);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_connect_paths_directly_and_by_way_of_others() {
        let found = groups(&[vec!["x"], vec![], vec!["y"], vec!["x", "y"], vec![], vec!["z"]]);
        let shown: Vec<(Vec<usize>, Vec<&str>)> = found.into_iter().map(|group| (group.paths, group.media)).collect();
        assert_eq!(
            shown,
            [(vec![0, 2, 3], vec!["x", "y"]), (vec![1], vec![]), (vec![4], vec![]), (vec![5], vec!["z"])]
        );
    }

    const MIXED: &str = r#"
        name = "mixed"
        [[media]]
        name = "air"
        type = "continuous"
        uplink = "1 Mbit/s"
        downlink = "1 Mbit/s"
        [[paths]]
        name = "a"
        hops = [{ name = "radio", link = { rate = "1 Mbit/s" } }]
        [[paths]]
        name = "b"
        hops = [{ name = "radio", link = { medium = "air" } }]
        [[paths]]
        name = "c"
        hops = [{ name = "radio", link = { propagation = "7 ms" } }]
        [[paths]]
        name = "d"
        hops = [{ name = "radio", link = { medium = "air" } }]
    "#;

    #[test]
    fn each_link_is_a_scenario_that_can_be_read_again() {
        let scenario = Scenario::from_toml(MIXED, "mixed.toml").unwrap();
        let links = scenario.independent().unwrap();
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["a", "air", "c"]);
        let users: Vec<Vec<String>> = links
            .iter()
            .map(|link| link.scenario.paths().unwrap().into_iter().map(|path| path.name).collect())
            .collect();
        assert_eq!(users, [vec!["a"], vec!["b", "d"], vec!["c"]]);
        for link in &links {
            let again = Scenario::from_toml(&link.scenario.to_toml().unwrap(), "again").unwrap();
            assert_eq!(again.machine().unwrap(), link.scenario.machine().unwrap(), "{}", link.name);
            assert_eq!(again.name.as_deref(), Some("mixed"));
        }
        let (together, machine) = scenario.together().unwrap();
        let order: Vec<String> = together.paths().unwrap().into_iter().map(|path| path.name).collect();
        assert_eq!(order, ["a", "b", "d", "c"]);
        assert_eq!(machine.users().len(), 4);
    }

    #[test]
    fn what_is_one_link_stays_as_it_is() {
        let links = Scenario::transparent().independent().unwrap();
        assert_eq!((links.len(), links[0].name.as_str()), (1, "path"));
    }
}
