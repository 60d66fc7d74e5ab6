//! A page of Markdown in parts, and which of them stay where there is no room for all.
//!
//! Only whole rows and whole sections are left out, the least telling first, and the page says which: a table that was cut in a
//! row, or an open `details`, would spoil everything after it.

use super::escape;

/// How long a page may be, and in what that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Unicode scalar values: 65,536 in a comment or a check run.
    Characters(usize),
    /// Bytes: 1,048,576 in a job summary.
    Bytes(usize),
}

impl Limit {
    fn room(self) -> usize {
        match self {
            Self::Characters(room) | Self::Bytes(room) => room,
        }
    }

    fn size(self, text: &str) -> usize {
        match self {
            Self::Characters(_) => text.chars().count(),
            Self::Bytes(_) => text.len(),
        }
    }

    /// As much of a text as there is room for.
    fn cut(self, text: &str) -> String {
        match self {
            Self::Characters(room) => text.chars().take(room).collect(),
            Self::Bytes(room) => {
                let fits = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
                text[..fits.unwrap_or(0)].to_owned()
            }
        }
    }
}

/// What a row tells, dearest first: where there is no room for a row, there is none for a less dear one either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// The answer in sentences.
    Answer,
    /// What failed.
    Failed,
    /// What was not decided.
    Undecided,
    /// A loss that was accepted by review.
    Accepted,
    /// The load that must hold.
    MainLoad,
    /// Another load.
    Load,
    /// What passed.
    Passed,
    /// What a reader needs to trust the figures.
    Remark,
    /// What is folded away; a section for which there is no room makes room for the next.
    Folded,
}

/// One part of a page: a paragraph, a table, a section that is folded away.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// What its rows are called where they were left out: `checks`.
    name: &'static str,
    /// What stands above its rows.
    head: String,
    /// The rows with what they are worth.
    rows: Vec<(Worth, String)>,
    /// What stands below its rows.
    foot: String,
}

impl Part {
    /// A part whose rows stay or go one by one.
    pub(super) fn of_rows(name: &'static str, head: String, rows: Vec<(Worth, String)>, foot: String) -> Self {
        Self { name, head, rows, foot }
    }

    /// A part that stays or goes as a whole.
    pub(super) fn whole(name: &'static str, worth: Worth, text: String) -> Self {
        let rows = if text.is_empty() { Vec::new() } else { vec![(worth, text)] };
        Self { name, rows, ..Self::default() }
    }

    /// Its text with the first rows alone, so many of them as `kept` says of each.
    fn text(&self, kept: &[bool]) -> String {
        let rows = self.rows.iter().zip(kept).filter(|(_, kept)| **kept).map(|((_, text), _)| text.as_str());
        let rows: Vec<&str> = rows.collect();
        if rows.is_empty() {
            return String::new();
        }
        let lines = [self.head.as_str()].into_iter().filter(|head| !head.is_empty()).chain(rows);
        lines.collect::<Vec<_>>().join("\n") + &self.foot
    }
}

/// Lays a page out: `head` in any case, then the parts in their order, as far as there is room. What was left out is told between
/// the sentences of the answer and the rest, with `whole`, where all of it is.
pub(super) fn lay_out(head: &[String], parts: &[Part], limit: Limit, whole: &str) -> String {
    let all: Vec<Vec<bool>> = parts.iter().map(|part| vec![true; part.rows.len()]).collect();
    let page = assemble(head, parts, &all, None);
    if limit.size(&page) <= limit.room() {
        return page;
    }
    let none: Vec<Vec<bool>> = parts.iter().map(|part| vec![false; part.rows.len()]).collect();
    // No sentence about what was left out is longer than that about everything.
    let longest = left_out(parts, &none, whole);
    let fixed = assemble(head, parts, &none, Some(&longest));
    let room = limit.room().saturating_sub(limit.size(&fixed));
    let kept = choose(parts, limit, room);
    let page = assemble(head, parts, &kept, Some(&left_out(parts, &kept, whole)));
    limit.cut(&page)
}

/// The rows that there is room for, dearest first.
fn choose(parts: &[Part], limit: Limit, room: usize) -> Vec<Vec<bool>> {
    /// The line breaks around a part.
    const BETWEEN: usize = 4;
    let mut kept: Vec<Vec<bool>> = parts.iter().map(|part| vec![false; part.rows.len()]).collect();
    let mut order: Vec<(Worth, usize, usize)> = Vec::new();
    for (part, found) in parts.iter().enumerate() {
        order.extend(found.rows.iter().enumerate().map(|(row, (worth, _))| (*worth, part, row)));
    }
    order.sort_unstable();
    let mut left = room;
    for (worth, part, row) in order {
        let (found, kept) = (&parts[part], &mut kept[part]);
        let around = if kept.contains(&true) { 0 } else { limit.size(&found.head) + limit.size(&found.foot) + BETWEEN };
        let needed = limit.size(&found.rows[row].1) + 1 + around;
        if needed <= left {
            left -= needed;
            kept[row] = true;
        } else if worth < Worth::Folded {
            break;
        }
    }
    kept
}

/// The page with the rows that were kept. The sentence about the others follows the answer.
fn assemble(head: &[String], parts: &[Part], kept: &[Vec<bool>], left_out: Option<&str>) -> String {
    let answers = parts.iter().take_while(|part| part.rows.iter().all(|(worth, _)| *worth == Worth::Answer)).count();
    let texts: Vec<String> = parts.iter().zip(kept).map(|(part, kept)| part.text(kept)).collect();
    let (answer, rest) = texts.split_at(answers.min(texts.len()));
    let all = head.iter().map(String::as_str).chain(answer.iter().map(String::as_str));
    let all = all.chain(left_out).chain(rest.iter().map(String::as_str));
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// What was left out, in one sentence.
fn left_out(parts: &[Part], kept: &[Vec<bool>], whole: &str) -> String {
    let mut told = Vec::new();
    for (part, kept) in parts.iter().zip(kept) {
        let gone = kept.iter().filter(|kept| !**kept).count();
        match (gone, kept.len()) {
            (0, _) => {}
            (_, 1) => told.push(part.name.to_owned()),
            (gone, all) => told.push(format!("{gone} of {all} {}", part.name)),
        }
    }
    format!("> ✂️ Too long for this place, so left out: {}. {whole}", told.join(", "))
}

/// A section that is folded away, or unfolded where it is what a reader looks for.
pub(super) fn folded(summary: &str, body: &str, open: bool) -> String {
    let open = if open { " open" } else { "" };
    format!("<details{open}>\n<summary>{summary}</summary>\n\n{body}\n\n</details>")
}

/// Where all of a report is: a page, or a file.
pub(super) fn whereabouts(run_url: Option<&str>) -> String {
    match run_url.and_then(|url| escape::link("the run", url)) {
        Some(link) => format!("The whole report is with {link}."),
        None => "The whole report is `summary.md` in the run's folder.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Part {
        let rows = [Worth::Failed, Worth::Undecided, Worth::Passed].map(|worth| (worth, format!("| {worth:?} |")));
        Part::of_rows("checks", "| check |\n|:--|".to_owned(), rows.to_vec(), String::new())
    }

    fn page(room: usize) -> String {
        let answer = Part::whole("answer", Worth::Answer, "An answer.".to_owned());
        let section = |text: &str| Part::whole("details", Worth::Folded, folded("More", text, false));
        let parts = [answer, table(), section(&"wide ".repeat(40)), section("short")];
        lay_out(&["<!-- m -->\n## FAIL".to_owned()], &parts, Limit::Characters(room), "There.")
    }

    #[test]
    fn what_fits_is_whole() {
        let whole = page(10_000);
        assert!(!whole.contains("left out") && whole.matches("</details>").count() == 2, "{whole}");
        assert_eq!(page(whole.chars().count()), whole);
    }

    #[test]
    fn the_least_telling_goes_first_and_is_told() {
        let whole = page(10_000).chars().count();
        let without_wide = page(whole - 1);
        assert!(without_wide.contains("short") && !without_wide.contains("wide "), "{without_wide}");
        let told = "## FAIL\n\nAn answer.\n\n> ✂️ Too long for this place, so left out: details. There.\n\n| check |";
        assert!(without_wide.contains(told), "{without_wide}");
        // The least room at which something is there.
        let least = |text: &str| (0..=whole).find(|room| page(*room).contains(text)).expect(text);
        let order = ["## FAIL", "An answer.", "| Failed |", "| Undecided |", "| Passed |", "short", "wide "].map(least);
        assert!(order.is_sorted(), "{order:?}");
        let failed = page(least("| Failed |"));
        assert!(failed.contains("left out: 2 of 3 checks, details, details. There."), "{failed}");
    }

    #[test]
    fn nothing_is_ever_longer_than_its_limit() {
        for room in 0..600 {
            let found = page(room);
            assert!(found.chars().count() <= room, "{room}");
            assert_eq!(found.matches("<details").count(), found.matches("</details>").count(), "{found}");
        }
        assert_eq!(Limit::Bytes(4).cut("ééé"), "éé");
        assert_eq!(Limit::Bytes(3).cut("ééé"), "é");
    }
}
