// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lists of configuration options, RFC 1661, section 6.

/// An option: its type and its data.
pub(crate) type ConfigurationOption<'a> = (u8, &'a [u8]);

/// Options of a list, or `None` if a length does not fit.
pub(crate) fn parse(mut list: &[u8]) -> Option<Vec<ConfigurationOption<'_>>> {
    let mut options = Vec::new();
    while let [kind, length, ..] = *list {
        let option = list.get(..usize::from(length))?;
        options.push((kind, option.get(2..)?));
        list = &list[option.len()..];
    }
    list.is_empty().then_some(options)
}

/// Appends an option of at most 253 bytes.
pub(crate) fn append(list: &mut Vec<u8>, kind: u8, data: &[u8]) {
    debug_assert!(data.len() <= 253);
    list.extend([kind, data.len() as u8 + 2]);
    list.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_wrong_lengths_are_refused() {
        let mut list = Vec::new();
        append(&mut list, 1, &[5, 220]);
        append(&mut list, 7, &[]);
        assert_eq!(parse(&list), Some(vec![(1, &[5, 220][..]), (7, &[][..])]));
        for wrong in [&[1][..], &[1, 0], &[1, 1], &[1, 4, 5], &[7, 2, 9]] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
