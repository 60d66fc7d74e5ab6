//! How often the gate itself would be wrong, for a terminal (`goodput baseline calibrate`).

use super::figures::{UNMEASURED, check_name};
use super::layout::{Column, Page, lay_out};
use crate::record::{Calibration, CalibrationRow};
use crate::units::Share;

/// Renders a calibration for a terminal of `width` columns.
pub fn calibration(found: &Calibration, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let looks: Vec<String> = found.looks.iter().map(u32::to_string).collect();
    page.heading("The endpoint against itself");
    page.paragraph(&format!("With a margin of {} and looks at {} pairs of trials.", found.margin, looks.join(", ")));
    page.blank();
    let column = |value: &dyn Fn(&CalibrationRow) -> Option<String>| -> Vec<String> {
        found.rows.iter().map(|row| value(row).unwrap_or_else(|| UNMEASURED.to_owned())).collect()
    };
    let lines = lay_out(
        vec![
            Column::words("change of", column(&|row| Some(check_name(&row.metric)))),
            Column::words("at", column(&|row| row.load.map(|load| load.to_string()))),
            Column::numbers("pairs", column(&|row| Some(row.pairs.to_string()))),
            Column::numbers(
                "spread",
                column(&|row| row.deviation.map(|deviation| format!("{:.2}%", 100.0 * deviation))),
            ),
            Column::numbers("false red", column(&|row| row.false_red.map(rounded))),
            Column::numbers("undecided", column(&|row| row.undecided.map(rounded))),
            Column::numbers("smallest drop", column(&|row| row.smallest_drop.map(rounded))),
        ],
        page.width(),
    );
    page.table_header(&lines);
    for (line, row) in lines.rows.iter().zip(&found.rows) {
        page.table_row(line, None);
        page.remark_if(row.note.as_ref(), 2);
    }
    page.remark(
        "false red: equal endpoints that would FAIL; smallest drop: found in four of five comparisons, always beyond the margin",
        0,
    );
    page.finish()
}

/// A share of which no more is known than a tenth of a per cent.
fn rounded(share: Share) -> String {
    format!("{:.1}%", 100.0 * share.fraction())
}
