//! Annotations, which the runner shows at the contract's lines and on the run's page.

use std::io::Write;

use super::Subject;
use super::command::annotate;
use crate::report::{self, Annotation, Level};

/// The most annotations of a result. GitHub shows ten of one level for a step; one is left for what could not be published.
const MOST: usize = 9;

/// Prints the annotations; says how many.
pub(super) fn annotations(subject: &Subject<'_>, commands: &mut dyn Write) -> Result<String, String> {
    let (file, annotations) = match subject {
        Subject::Run { result, contract, .. } => {
            (contract.map(|(path, _)| path), report::annotations(result, contract.map(|(_, text)| text)))
        }
        Subject::Failure { contract, message, faults: (file, faults) } => {
            let title = format!("goodput: no verdict on {contract}");
            let at = |line: Option<u32>, message: &str| Annotation {
                level: Level::Error,
                line,
                title: title.clone(),
                message: message.to_owned(),
            };
            match faults {
                [] => (None, vec![at(None, message)]),
                faults => (Some(*file), faults.iter().map(|(line, fault)| at(Some(*line), fault)).collect()),
            }
        }
    };
    let shown = annotations.len().min(MOST);
    print(&annotations[..shown], file, commands)?;
    Ok(format!("{shown} printed"))
}

/// Prints what could not be published as one warning.
pub(super) fn problems(problems: &[String], commands: &mut dyn Write) -> Result<(), String> {
    if problems.is_empty() {
        return Ok(());
    }
    let title = "goodput: not everything was published".to_owned();
    let annotation = Annotation { level: Level::Warning, line: None, title, message: problems.join("\n") };
    print(&[annotation], None, commands)
}

fn print(annotations: &[Annotation], file: Option<&str>, commands: &mut dyn Write) -> Result<(), String> {
    let printed = annotations.iter().try_for_each(|annotation| annotate(commands, file, annotation));
    printed.and_then(|()| commands.flush()).map_err(|error| format!("they cannot be printed: {error}"))
}
