//! Laying out text for a terminal: tables whose rows are one line each, wrapped paragraphs, colours.
//!
//! Text is escaped here and nowhere else on its way to a terminal; callers hand in what they have.

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Row, Table, TableStyle, presets};

use super::escape;
use crate::judge::Status;

/// Lines of prose are not longer than this, however wide the terminal is.
const PROSE_WIDTH: usize = 110;

/// A rule under the header and nothing else.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// A column of a table, still as text from anywhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// First line of the header, shared by neighbours: `TTFT`.
    pub(super) group: &'static str,
    /// Second line of the header: `p95`.
    pub(super) name: String,
    /// One cell per row.
    pub(super) cells: Vec<String>,
    /// Numbers are aligned to the right.
    pub(super) right: bool,
    /// Columns with the highest rank are left out first where the width is short; rank 0 always stays.
    pub(super) rank: u8,
}

impl Column {
    /// A column of words, with a header of one line.
    pub(super) fn words(name: &str, cells: Vec<String>) -> Self {
        Self { name: name.to_owned(), cells, ..Self::default() }
    }

    /// A column of numbers, with a header of one line.
    pub(super) fn numbers(name: &str, cells: Vec<String>) -> Self {
        Self { right: true, ..Self::words(name, cells) }
    }

    /// The same column, to be left out with this rank.
    pub(super) fn ranked(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// A table that was laid out: what stands above the rows, and one line per row.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Header and rule.
    pub(super) header: Vec<String>,
    /// One line per row, in order.
    pub(super) rows: Vec<String>,
    /// Names of the columns that there was no room for.
    pub(super) left_out: Vec<String>,
}

/// A page being written for a terminal.
#[derive(Debug)]
pub(super) struct Page {
    out: String,
    width: usize,
    color: bool,
}

impl Page {
    /// An empty page of `width` columns, with colours or without any control sequence.
    pub(super) fn new(width: usize, color: bool) -> Self {
        Self { out: String::new(), width: width.clamp(40, 400), color }
    }

    /// The columns of the page.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The page's text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// An empty line, unless there is one already or nothing is written yet.
    pub(super) fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A paragraph, wrapped.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.prose(text, 0, Style::new());
    }

    /// A remark: dim, wrapped, indented.
    pub(super) fn remark(&mut self, text: &str, indent: usize) {
        self.prose(text, indent, Style::new().dimmed());
    }

    /// A remark, if there is one.
    pub(super) fn remark_if(&mut self, text: Option<&String>, indent: usize) {
        if let Some(text) = text {
            self.remark(text, indent);
        }
    }

    /// One item of a list.
    pub(super) fn item(&mut self, text: &str) {
        self.prose(&format!("· {text}"), 2, Style::new());
    }

    /// A heading over a part of the page.
    pub(super) fn heading(&mut self, text: &str) {
        self.blank();
        self.prose(text, 0, Style::new().bold());
    }

    /// A line that begins with a status and goes on with a text.
    pub(super) fn status_line(&mut self, status: Option<Status>, word: &str, text: &str) {
        let text = shortened(&escape::terminal(text, escape::TEXT_CAP), self.width.saturating_sub(word.len() + 2));
        let (word, text) = (self.paint(word, status_style(status)), self.paint(&text, Style::new().bold()));
        self.push(&format!("{word}  {text}"));
    }

    /// The lines above a table's rows.
    pub(super) fn table_header(&mut self, lines: &Lines) {
        for line in &lines.header {
            let style = if line.starts_with('─') { Style::new().dimmed() } else { Style::new() };
            let line = self.paint(line, style);
            self.push(&line);
        }
    }

    /// A table's row; the last occurrence of `status`' word in it is coloured. Right of a status stand only codes of this
    /// tool, so the last occurrence is the status itself, whatever others named their rows.
    pub(super) fn table_row(&mut self, line: &str, status: Option<Status>) {
        let Some((status, at)) = status.and_then(|s| line.rfind(s.word()).map(|at| (s, at))) else {
            return self.push(line);
        };
        let (before, rest) = line.split_at(at);
        let (word, after) = rest.split_at(status.word().len());
        let word = self.paint(word, status_style(Some(status)));
        self.push(&format!("{before}{word}{after}"));
    }

    /// A table's row that stands out.
    pub(super) fn strong_row(&mut self, line: &str) {
        let line = self.paint(line, Style::new().bold());
        self.push(&line);
    }

    /// A whole table without remarks.
    pub(super) fn table(&mut self, columns: Vec<Column>) {
        let lines = lay_out(columns, self.width);
        self.table_header(&lines);
        for row in &lines.rows {
            self.push(row);
        }
    }

    fn prose(&mut self, text: &str, indent: usize, style: Style) {
        let width = self.width.min(PROSE_WIDTH).saturating_sub(indent);
        for line in wrap(&escape::terminal(text, escape::TEXT_CAP), width) {
            let line = self.paint(&line, style);
            self.push(&format!("{:indent$}{line}", ""));
        }
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if self.color && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn push(&mut self, line: &str) {
        self.out.push_str(escape::uncommanding(line).trim_end());
        self.out.push('\n');
    }
}

/// The colour of a status; a run that was not judged has none.
fn status_style(status: Option<Status>) -> Style {
    match status {
        Some(Status::Pass) => AnsiColor::Green.on_default().bold(),
        Some(Status::Fail) => AnsiColor::Red.on_default().bold(),
        Some(Status::Unknown | Status::Accepted) => AnsiColor::Yellow.on_default().bold(),
        None => Style::new().bold(),
    }
}

/// Lays a table out in at most `width` columns: columns of high rank are left out until the rest fits, and only when none
/// is left to omit are texts cut.
pub(super) fn lay_out(mut columns: Vec<Column>, width: usize) -> Lines {
    let mut left_out = Vec::new();
    loop {
        let (mut table, needed) = spaced(&columns, width);
        let worst = columns.iter().map(|c| c.rank).max().unwrap_or(0);
        if needed > width && worst > 0 {
            left_out.extend(columns.extract_if(.., |c| c.rank == worst).map(|c| c.name));
            continue;
        }
        if needed > width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        let mut header: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let rows = header.split_off(header.len().saturating_sub(table.row_count()));
        return Lines { header, rows, left_out };
    }
}

/// The table of these columns, closer together where that makes it fit a narrow page, and the columns of the page that it needs.
fn spaced(columns: &[Column], width: usize) -> (Table, usize) {
    let needed = |table: &Table, gap: usize| {
        let text: usize = table.column_max_content_widths().iter().map(|w| usize::from(*w)).sum();
        text + gap * columns.len().saturating_sub(1)
    };
    let roomy = build(columns, 2);
    let roomy_needs = needed(&roomy, 2);
    if roomy_needs <= width || width >= 100 {
        return (roomy, roomy_needs);
    }
    let close = build(columns, 1);
    let close_needs = needed(&close, 1);
    (close, close_needs)
}

/// The table of these columns, with every row held to one line.
fn build(columns: &[Column], gap: usize) -> Table {
    let mut table = Table::new();
    table.load_style(RULED).set_truncation_indicator("…");
    table.set_header(header(columns));
    for index in 0..columns.first().map_or(0, |c| c.cells.len()) {
        let cells = columns.iter().map(|column| {
            let text = column.cells.get(index).map_or("", String::as_str);
            aligned(&escape::terminal(text, 80), column.right)
        });
        let mut row = Row::from(cells.collect::<Vec<_>>());
        row.max_height(1);
        table.add_row(row);
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { gap as u16 }));
    }
    table
}

/// The header, in two lines where columns are grouped; a group is named once, over its first column.
fn header(columns: &[Column]) -> Row {
    let grouped = columns.iter().any(|c| !c.group.is_empty());
    let mut former = "";
    let mut cells = Vec::with_capacity(columns.len());
    for column in columns {
        let group = if column.group == former { "" } else { column.group };
        former = column.group;
        let text = if grouped { format!("{group}\n{}", column.name) } else { column.name.clone() };
        cells.push(aligned(&text, column.right));
    }
    Row::from(cells)
}

fn aligned(text: &str, right: bool) -> Cell {
    Cell::new(text).set_alignment(if right { CellAlignment::Right } else { CellAlignment::Left })
}

/// A text in at most `room` characters, the last of them an ellipsis where something was cut.
pub(super) fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// Breaks an escaped text into lines of at most `width` columns.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}
