//! Why something was not measured.

use super::Reason;
use crate::record::{EndpointKind, Readiness, RunResult, Stop};

/// Why something was not measured, for a row's reason and note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absence {
    /// The reason code.
    pub(super) reason: Reason,
    /// What was seen.
    pub(super) note: String,
}

/// What kept the run from measuring everything; `None` when it ran to its end.
pub(super) fn absence(result: &RunResult) -> Option<Absence> {
    let because = |reason, note: String| Some(Absence { reason, note });
    let endpoint = &result.endpoint;
    if let Readiness::NotReady { detail } | Readiness::Unreachable { detail } = &endpoint.ready {
        let reason = match endpoint.kind {
            EndpointKind::External => Reason::EndpointDown,
            EndpointKind::Launched | EndpointKind::Simulated => Reason::EndpointNotReady,
        };
        return because(reason, detail.clone());
    }
    match (&result.stopped, &endpoint.exited) {
        (Some(Stop::Signal { number }), _) => because(Reason::Cancelled, format!("stopped by signal {number}")),
        (Some(Stop::EndpointDown { detail }), _) => because(Reason::EndpointDown, detail.clone()),
        (Some(Stop::Storage { detail }), _) => {
            because(Reason::Internal, format!("results could not be written: {detail}"))
        }
        (None, Some(how)) => because(Reason::EndpointDown, format!("the endpoint exited: {how}")),
        (None, None) => None,
    }
}
