// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A kernel file: is it one that can travel in time, and where does it keep the time?

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, SHT_SYMTAB};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, ReadRef};

use crate::error::{Attempting, Result, WarpError};

/// The kernel's variable that holds the virtual time, in ns since its boot.
const TIME_SYMBOL: &str = "time_travel_time";
/// The variable that our patch adds for entropy from a seed.
const SEED_SYMBOL: &str = "airpath_seed_state";

/// The variable that points to the task that is running.
const RUNNING_SYMBOL: &str = "cpu_tasks";
/// The first task, in which the place of the name is found by the name that it has.
const FIRST_TASK_SYMBOL: &str = "init_task";
const FIRST_TASK_NAME: &[u8] = b"swapper\0";

/// Position of the running task in a kernel's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTask {
    /// Here is the address of the task that is running.
    pub pointer_address: u64,
    /// So far behind the task's beginning is its name, of 16 bytes at most.
    pub name_offset: u64,
}

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    path: PathBuf,
    time_address: u64,
    running_task: Option<RunningTask>,
    seeded: bool,
}

impl Kernel {
    /// Looks at the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no user-mode Linux with time travel.
    pub fn open(path: &Path) -> Result<Kernel> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WarpError::Missing(format!(
                    "no kernel at {}; `airpath warp setup` builds one",
                    path.display()
                )));
            }
            other => other.attempting(|| format!("read the kernel {}", path.display()))?,
        };
        let path = path.canonicalize().attempting(|| format!("find {}", path.display()))?;
        // Most of it is code, which only its process reads.
        Kernel::parse(&ReadCache::new(file), path)
    }

    fn parse<'a>(content: impl ReadRef<'a>, path: PathBuf) -> Result<Kernel> {
        let refuse = |what: &str| {
            WarpError::Missing(format!("{} {what}; `airpath warp setup` builds a suitable kernel", path.display()))
        };
        let symbols = Symbols::read(content).map_err(|error| refuse(&format!("is not an executable ({error})")))?;
        let [time, seed, running, first_task] =
            symbols.find([TIME_SYMBOL, SEED_SYMBOL, RUNNING_SYMBOL, FIRST_TASK_SYMBOL]);
        let time = time
            .ok_or_else(|| refuse("is not a user-mode Linux with CONFIG_UML_TIME_TRAVEL_SUPPORT, or has no symbols"))?;
        let name_offset = first_task.and_then(|first_task| {
            let task = symbols.content_of(&first_task)?;
            task.windows(FIRST_TASK_NAME.len()).position(|bytes| bytes == FIRST_TASK_NAME)
        });
        let running_task = running.zip(name_offset).map(|(running, name_offset)| RunningTask {
            pointer_address: running.address,
            name_offset: name_offset as u64,
        });
        Ok(Kernel { path, time_address: time.address, running_task, seeded: seed.is_some() })
    }

    /// Path of the kernel.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Address, in its own memory, of the virtual time: 64 bits, in ns since its boot.
    pub fn time_address(&self) -> u64 {
        self.time_address
    }

    /// Position of the running task in its memory; none if it is not found, as in a kernel of another make.
    pub fn running_task(&self) -> Option<RunningTask> {
        self.running_task
    }

    /// True if its entropy comes from a seed, so that runs can be repeated.
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }
}

/// A symbol of a kernel.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    size: u64,
    /// Number of its section.
    section: u16,
}

/// The symbols of a file.
struct Symbols<'a, R: ReadRef<'a>> {
    file: R,
    endian: Endianness,
    sections: SectionTable<'a, FileHeader64<Endianness>, R>,
    symbols: &'a [object::elf::Sym64<Endianness>],
    names: &'a [u8],
}

impl<'a, R: ReadRef<'a>> Symbols<'a, R> {
    fn read(file: R) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(file)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, file)?;
        let table = sections.symbols(endian, file, SHT_SYMTAB)?;
        let names = match sections.section(table.string_section()) {
            Ok(names) => names.data(endian, file)?,
            Err(_) => &[], // a file without symbols
        };
        Ok(Symbols { file, endian, symbols: table.symbols(), sections, names })
    }

    /// The first symbols of these names, by one walk over all of them.
    fn find<const N: usize>(&self, names: [&str; N]) -> [Option<Symbol>; N] {
        let mut found = [None; N];
        for symbol in self.symbols {
            let name = self.names.get(symbol.st_name(self.endian) as usize..).unwrap_or_default();
            for (wanted, found) in names.iter().zip(&mut found) {
                if found.is_none() && name.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
                {
                    *found = Some(Symbol {
                        address: symbol.st_value(self.endian),
                        size: symbol.st_size(self.endian),
                        section: symbol.st_shndx(self.endian),
                    });
                }
            }
        }
        found
    }

    /// Content of the file in a symbol's place.
    fn content_of(&self, symbol: &Symbol) -> Option<&'a [u8]> {
        let section = self.sections.section(object::SectionIndex(symbol.section.into())).ok()?;
        let offset_in_section = symbol.address.checked_sub(section.sh_addr(self.endian))?;
        // The file may be damaged: the symbol lies in its section, and the section in the file, or there is nothing.
        if offset_in_section.checked_add(symbol.size)? > section.sh_size(self.endian) {
            return None;
        }
        let offset = offset_in_section.checked_add(section.sh_offset(self.endian))?;
        self.file.read_bytes_at(offset, symbol.size).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_kernel_is_refused_with_the_reason() {
        let error = Kernel::parse(b"#!/bin/sh\n".as_slice(), "/k".into()).unwrap_err().to_string();
        assert!(error.contains("/k is not an executable") && error.contains("warp setup"), "{error}");
        let own = std::fs::read("/proc/self/exe").unwrap();
        let error = Kernel::parse(own.as_slice(), "/k".into()).unwrap_err().to_string();
        assert!(error.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT"), "{error}");
        let error = Kernel::open(Path::new("/nowhere/linux")).unwrap_err().to_string();
        assert!(error.contains("no kernel at /nowhere/linux"), "{error}");
    }

    /// Position of the headers of sections in `kernel`.
    const SECTIONS_AT: usize = 64;
    /// Position of the content of section 1 in `kernel`, which holds the first task.
    const TASK_AT: u64 = 320;
    /// Address of the first task.
    const TASK_ADDRESS: u64 = 0x1000;

    /// A file with the symbols of a kernel, and nothing else of one.
    fn kernel() -> Vec<u8> {
        // Symbols begin at multiples of eight bytes.
        let task = b"12345678swapper\0";
        let names = b"\0time_travel_time\0cpu_tasks\0init_task\0";
        let symbols: Vec<u8> = [(0, 0, 0, 0), (1, 0x100, 8, 1), (18, 0x200, 8, 1), (28, TASK_ADDRESS, 16, 1)]
            .into_iter()
            .flat_map(|(name, address, size, section): (u32, u64, u64, u16)| {
                let section = u32::from(section) << 16;
                let [name, section] = [name, section].map(u32::to_le_bytes);
                [&name[..], &section, &address.to_le_bytes(), &size.to_le_bytes()].concat()
            })
            .collect();
        let symbols_at = TASK_AT + task.len() as u64;
        let names_at = symbols_at + symbols.len() as u64;
        let sections = [
            [0; 8],
            [1, TASK_ADDRESS, TASK_AT, task.len() as u64, 0, 0, 0, 0],
            [2, 0, symbols_at, symbols.len() as u64, 3, 0, 1, 24],
            [3, 0, names_at, names.len() as u64, 0, 0, 1, 0],
        ]
        .map(|[kind, address, offset, size, link, info, alignment, entry]: [u64; 8]| {
            let (name_and_kind, link_and_info) = (kind << 32, link | info << 32);
            [name_and_kind, 0, address, offset, size, link_and_info, alignment, entry].map(u64::to_le_bytes)
        });
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(SECTIONS_AT, 0);
        for (at, value) in [(16, 2), (18, 62), (20, 1), (40, SECTIONS_AT as u16), (52, 64), (58, 64), (60, 4), (62, 3)]
        {
            header[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        [&header[..], sections.as_flattened().as_flattened(), task, &symbols, names].concat()
    }

    #[test]
    fn a_damaged_header_has_no_running_task() {
        let task_of = |content: &[u8]| Kernel::parse(content, "/k".into()).unwrap().running_task();
        assert_eq!(task_of(&kernel()), Some(RunningTask { pointer_address: 0x200, name_offset: 8 }));
        let section = SECTIONS_AT + 64;
        let (address, offset, size) = (section + 16, section + 24, section + 32);
        for (at, value) in [
            (address, TASK_ADDRESS + 1),
            (address, 0),
            (offset, u64::MAX),
            (offset, u64::MAX - 4),
            (offset, 1 << 40),
            (size, 0),
            (size, 15),
        ] {
            let mut damaged = kernel();
            damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert_eq!(task_of(&damaged), None, "{value:#x} at {at}");
        }
        // The sum of the place in the section and that of the section in the file is too large.
        let mut damaged = kernel();
        for (at, value) in [(address, TASK_ADDRESS - 8), (offset, u64::MAX), (size, 24)] {
            damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        assert_eq!(task_of(&damaged), None);
        let last_symbol = TASK_AT as usize + 16 + 3 * 24;
        for (at, value) in [(last_symbol + 8, u64::MAX), (last_symbol + 16, u64::MAX)] {
            let mut damaged = kernel();
            damaged[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert_eq!(task_of(&damaged), None, "{value:#x} at {at}");
        }
    }
}
