// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Enumerations whose values have a stable name and a sentence.

/// Declares an enumeration with a stable name and a sentence for each value.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal : $doc:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $doc] $variant,)* }

        impl $name {
            /// Every value, in order of its number.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// Number of values.
            pub const COUNT: usize = $name::ALL.len();

            /// The word used in logs.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The meaning, in a sentence.
            pub const fn description(self) -> &'static str {
                match self { $($name::$variant => $doc,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
