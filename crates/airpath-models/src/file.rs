// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files that parameters name: traces, tables of distributions.
//!
//! Models read no files. A parameter holds a [`FileRef`]; whoever reads scenarios loads what it names
//! through a [`FileSource`] before any model is built. Loaded data are shared between all parameters
//! that name the same file.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Contents of a file.
pub trait FileFormat: Send + Sync + Sized + 'static {
    /// Name in messages, such as "rate trace".
    const WHAT: &'static str;

    /// Reads the whole file.
    ///
    /// # Errors
    /// What is wrong, beginning with the line where that helps ("line 5: …").
    fn parse(bytes: &[u8]) -> Result<Self, String>;

    /// Remark about a file called `name` whose `bytes` cannot be read: what it is instead, and what to do about it.
    fn advice(_name: &str, _bytes: &[u8]) -> Option<String> {
        None
    }
}

/// Data of any format, shared.
pub type AnyData = Arc<dyn Any + Send + Sync>;

/// Parser from the bytes of a file to data.
pub type ParseFile<'a> = &'a dyn Fn(&[u8]) -> Result<AnyData, String>;

/// Source of files.
pub trait FileSource {
    /// The data of the file called `name`, of the format that `format` identifies and `parse` reads.
    /// The same file asked for twice in one format is the same data.
    ///
    /// # Errors
    /// Why it cannot be had, naming the file.
    fn load(&mut self, name: &str, format: TypeId, parse: ParseFile<'_>) -> Result<AnyData, String>;

    /// Path of the file called `name`, for whoever wants to keep a copy; none if it is no file.
    fn origin(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}

/// A file by its name, and what it holds once it is loaded. Written as text.
pub struct FileRef<T> {
    name: String,
    origin: Option<PathBuf>,
    data: Option<Arc<T>>,
}

/// A [`FileRef`] of any format.
pub trait AnyFile {
    /// The name as it was written.
    fn name(&self) -> &str;

    /// Path from which it was loaded, if it was.
    fn origin(&self) -> Option<&Path>;

    /// Calls it something else.
    fn rename(&mut self, name: String);

    /// Loads it.
    ///
    /// # Errors
    /// Those of the source.
    fn load(&mut self, source: &mut dyn FileSource) -> Result<(), String>;
}

impl<T: FileFormat> FileRef<T> {
    /// A reference to a file that has yet to be loaded.
    pub fn new(name: impl Into<String>) -> FileRef<T> {
        FileRef { name: name.into(), origin: None, data: None }
    }

    /// A reference with data that come from elsewhere, for tests and examples.
    pub fn with_data(name: impl Into<String>, data: T) -> FileRef<T> {
        FileRef { name: name.into(), origin: None, data: Some(Arc::new(data)) }
    }

    /// Contents.
    ///
    /// # Panics
    /// Where nobody has loaded it.
    pub fn data(&self) -> &Arc<T> {
        self.data.as_ref().expect("files are loaded before models are built")
    }

    /// Contents, if it is loaded.
    pub fn loaded(&self) -> Option<&Arc<T>> {
        self.data.as_ref()
    }
}

impl<T: FileFormat> AnyFile for FileRef<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> Option<&Path> {
        self.origin.as_deref()
    }

    fn rename(&mut self, name: String) {
        self.name = name;
    }

    fn load(&mut self, source: &mut dyn FileSource) -> Result<(), String> {
        let parse = |bytes: &[u8]| {
            let data = T::parse(bytes).map_err(|problem| {
                let problem = T::advice(&self.name, bytes).unwrap_or(problem);
                format!("`{}` is no {}: {problem}", self.name, T::WHAT)
            })?;
            Ok(Arc::new(data) as AnyData)
        };
        let data = source.load(&self.name, TypeId::of::<T>(), &parse)?;
        let wrong = |_| format!("`{}` was loaded in another format", self.name);
        self.data = Some(data.downcast::<T>().map_err(wrong)?);
        self.origin = source.origin(&self.name);
        Ok(())
    }
}

impl<T> Clone for FileRef<T> {
    fn clone(&self) -> FileRef<T> {
        FileRef { name: self.name.clone(), origin: self.origin.clone(), data: self.data.clone() }
    }
}

impl<T> std::fmt::Debug for FileRef<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "file {:?}", self.name)
    }
}

/// The same name and the same data, or none loaded.
impl<T> PartialEq for FileRef<T> {
    fn eq(&self, other: &FileRef<T>) -> bool {
        let same = match (&self.data, &other.data) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same && self.name == other.name
    }
}

impl<T> Serialize for FileRef<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de, T> Deserialize<'de> for FileRef<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FileRef<T>, D::Error> {
        Ok(FileRef { name: String::deserialize(deserializer)?, origin: None, data: None })
    }
}

impl<T> JsonSchema for FileRef<T> {
    fn schema_name() -> Cow<'static, str> {
        "File".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of a file; a relative one is looked for beside the scenario.",
            "examples": ["traces/downlink.csv"],
        })
    }
}

/// Visitor of each file that parameters name: its key, and the reference.
pub type VisitFile<'a> = dyn FnMut(&str, &mut dyn AnyFile) + 'a;

/// Visits the files of a table within, whose keys are under `table`.
pub fn under<'a>(table: &'a str, visit: &'a mut VisitFile<'_>) -> impl FnMut(&str, &mut dyn AnyFile) + 'a {
    move |key, file| {
        let key = if key.is_empty() { table.to_string() } else { format!("{table}.{key}") };
        visit(&key, file);
    }
}
