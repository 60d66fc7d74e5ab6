//! The row about the endpoint itself: present only when something is wrong with it.

use super::absence::{Absence, absence};
use super::{Check, Reason, Status, plain_check};
use crate::record::{EndpointKind, Readiness, RunResult, Stop};

/// A launched endpoint that never becomes ready, or exits before we stop it, is FAIL: this change cannot serve (design,
/// section 6). One that somebody else runs, or that is alive and does not answer, is UNKNOWN.
///
/// A process that ended in a run that a signal stopped is not held against the change: the signal may have reached it too.
pub(super) fn check(result: &RunResult) -> Option<Check> {
    let endpoint = &result.endpoint;
    let launched = endpoint.kind != EndpointKind::External;
    let signalled = matches!(result.stopped, Some(Stop::Signal { .. }));
    let never_ready = matches!(endpoint.ready, Readiness::NotReady { .. } | Readiness::Unreachable { .. });
    let exited = endpoint.exited.as_ref().filter(|_| launched);
    let went_away = matches!(result.stopped, Some(Stop::EndpointDown { .. }));

    let seen = absence(result).map(|Absence { note, .. }| note);
    let (status, reason, note) = match exited {
        _ if never_ready && launched => (Status::Fail, Reason::EndpointNotReady, seen),
        _ if never_ready => (Status::Unknown, Reason::EndpointDown, seen),
        Some(how) if signalled => {
            (Status::Unknown, Reason::EndpointDown, Some(format!("exited in a stopped run: {how}")))
        }
        Some(how) => (Status::Fail, Reason::EndpointNotReady, Some(format!("exited during the run: {how}"))),
        None if went_away => (Status::Unknown, Reason::EndpointDown, seen),
        None => return None,
    };
    Some(Check { note, ..plain_check("endpoint", status, reason) })
}
