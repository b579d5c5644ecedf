// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Recipe of the kernel: the distribution's source, our configuration, our patches.

use airpath_log::hash::hash64;

/// The package of Debian that holds the source.
pub const SOURCE_PACKAGE: &str = "linux-source-6.12";
/// Path at which that package installs it.
pub const SOURCE_ARCHIVE: &str = "/usr/src/linux-source-6.12.tar.xz";
/// The options of the kernel, on top of `allnoconfig`.
pub const CONFIG: &str = include_str!("../kernel/warp.config");
/// Number of objects compiled from the package's source with these options.
pub const OBJECTS: usize = 789;
/// The patches, in the order in which they are applied.
pub const PATCHES: [Patch; 8] = [
    Patch { name: "1-hz.patch", text: include_str!("../kernel/1-hz.patch") },
    Patch { name: "2-seed.patch", text: include_str!("../kernel/2-seed.patch") },
    Patch { name: "3-registers.patch", text: include_str!("../kernel/3-registers.patch") },
    Patch { name: "4-lazy-registers.patch", text: include_str!("../kernel/4-lazy-registers.patch") },
    Patch { name: "5-clock.patch", text: include_str!("../kernel/5-clock.patch") },
    Patch { name: "6-series.patch", text: include_str!("../kernel/6-series.patch") },
    Patch { name: "7-seccomp.patch", text: include_str!("../kernel/7-seccomp.patch") },
    Patch { name: "8-following-pages.patch", text: include_str!("../kernel/8-following-pages.patch") },
];

/// A change to the source.
#[derive(Debug, Clone, Copy)]
pub struct Patch {
    /// The name of its file.
    pub name: &'static str,
    /// A unified diff below a line that says why.
    pub text: &'static str,
}

impl Patch {
    /// Purpose of the patch: its first line.
    pub fn purpose(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// The beginning of the names of all kernels made after this recipe.
pub fn file_prefix() -> String {
    let mut recipe = CONFIG.as_bytes().to_vec();
    for patch in PATCHES {
        recipe.push(0);
        recipe.extend_from_slice(patch.text.as_bytes());
    }
    format!("warp-kernel-{:016x}-", hash64(&recipe))
}

/// The name of the kernel made after this recipe from a source of `version`.
pub fn file_name(version: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || ".+~-".contains(letter) { letter } else { '_' };
    file_prefix() + &version.chars().map(plain).collect::<String>()
}

/// The lines of the configuration that ask for something: `CONFIG_X=y` or `# CONFIG_X is not set`.
pub fn wanted_options() -> impl Iterator<Item = &'static str> {
    CONFIG.lines().filter(|line| line.starts_with("CONFIG_") || line.ends_with(" is not set"))
}

/// The options asked for that `config`, a kernel's `.config`, does not have as asked.
pub fn unmet_options(config: &str) -> Vec<&'static str> {
    let has = |wanted: &str| match wanted.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set")) {
        // What depends on something else that is off is not mentioned at all.
        Some(name) => !config.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))),
        None => config.lines().any(|line| line == wanted),
    };
    wanted_options().filter(|wanted| !has(wanted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_depends_on_the_recipe_and_the_source_and_is_safe() {
        assert!(file_name("6.12.1-1~deb12u1").starts_with(&file_prefix()));
        assert_ne!(file_name("6.12.1"), file_name("6.12.2"));
        assert!(!file_name("a/../b c").contains(['/', ' ']));
    }

    #[test]
    fn options_that_a_kernel_refused_are_found() {
        let taken: String = wanted_options().map(|line| format!("{line}\n")).collect();
        assert!(unmet_options(&taken).is_empty());
        let without = taken.replace("CONFIG_HOSTFS=y\n", "# CONFIG_HOSTFS is not set\n");
        assert_eq!(unmet_options(&without), ["CONFIG_HOSTFS=y"]);
        assert_eq!(unmet_options(&format!("{taken}CONFIG_HW_RANDOM=y\n")), ["# CONFIG_HW_RANDOM is not set"]);
    }

    #[test]
    fn patches_say_why_and_what() {
        for patch in PATCHES {
            assert!(!patch.purpose().is_empty() && patch.text.contains("\n--- a/"), "{}", patch.name);
        }
    }
}
