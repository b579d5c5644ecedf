//! Columns.

/// Lines of `rows`, of which the first `left` columns are aligned left and the others right.
pub fn grid(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
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
    }
}
