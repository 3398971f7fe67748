//! Columns of text, laid out as kubectl lays them out.

use unicode_width::UnicodeWidthStr as _;

pub use net::words::{cut, is_command, tame};

/// Blanks between two columns.
const GAP: usize = 3;

/// Lays out rows below their headings, without trailing blanks.
pub fn lay_out(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(self::width(cell));
        }
    }
    let mut text = String::new();
    line(&mut text, &widths, heads.iter().copied());
    for row in rows {
        line(&mut text, &widths, row.iter().map(String::as_str));
    }
    text
}

/// The width of a cell on a terminal. Colours take none.
fn width(cell: &str) -> usize {
    let mut parts = cell.split("\x1b[");
    let first = parts.next().unwrap_or_default().width();
    first + parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest).width()).sum::<usize>()
}

fn line<'a>(text: &mut String, widths: &[usize], cells: impl Iterator<Item = &'a str>) {
    let begin = text.len();
    for (width, cell) in widths.iter().zip(cells) {
        text.push_str(cell);
        let blanks = width.saturating_sub(self::width(cell)) + GAP;
        text.extend(std::iter::repeat_n(' ', blanks));
    }
    let end = text[begin..].trim_end_matches(' ').len();
    text.truncate(begin + end);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["berlin", "Ready", ""], ["京都", "Unreachable", "x"]].map(|row| row.map(str::to_owned).to_vec());
        let expected = "NAME     STATUS        WHY\nberlin   Ready\n京都     Unreachable   x\n";
        assert_eq!(lay_out(&["NAME", "STATUS", "WHY"], &rows), expected);
    }

    #[test]
    fn colours_take_no_room() {
        let rows = [["\x1b[32m✓\x1b[0m hub".to_owned(), "1ms".to_owned()].to_vec()];
        assert_eq!(lay_out(&["HOP", "TIME"], &rows), "HOP     TIME\n\x1b[32m✓\x1b[0m hub   1ms\n");
    }
}
