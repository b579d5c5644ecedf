// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Columns.

/// Lines of `rows`, of which the first `left` columns are aligned left and the others right. A row of one
/// cell is a line of its own, and widens no column.
pub fn grid(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter(|row| row.len() > 1).filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        if let [only] = row.as_slice() {
            text += only;
            text.push('\n');
            continue;
        }
        for (column, cell) in row.iter().enumerate() {
            let space = " ".repeat(widths[column] - cell.chars().count());
            let separator = if column == 0 { "" } else { "  " };
            line +=
                &if column < left { format!("{separator}{cell}{space}") } else { format!("{separator}{space}{cell}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "µ", "1"], ["bcd", "x", "100"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(grid(&rows, 1), "a    µ    1\nbcd  x  100\n");
        let rows = [&rows[..], &[vec!["a long remark".to_string()]]].concat();
        assert_eq!(grid(&rows, 1), "a    µ    1\nbcd  x  100\na long remark\n");
    }
}
