//! Asking for token counts, and doing without where the server refuses to be asked.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::exit::Failure;
use crate::drive::{Exchange, Lane, Order, exchange};
use crate::observe::{Protocol, RequestTrace};
use crate::units::Digest;
use crate::workload::Workload;

/// What is sent: token counts are asked for where the dialect can.
#[derive(Debug)]
pub(super) struct Payloads {
    /// Every case, filled in.
    pub(super) workload: Workload,
    /// What stands in for it; `None` where nothing was added to the payload.
    pub(super) plain: Option<Plain>,
    /// SHA-256 over seed, cases and payloads with another name in place of the model's, which a change may change, and without the
    /// wish.
    pub(super) comparable: Digest,
}

/// The payloads without the wish for token counts that the contract does not hold.
#[derive(Debug)]
pub(super) struct Plain {
    /// The key that is missing in them.
    pub(super) wish: &'static str,
    /// Every case, filled in.
    pub(super) workload: Workload,
}

/// Asks with the first case, and learns whether the server refuses the wish.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    lane: &'a Lane,
    plain: Option<&'a Plain>,
    notice: Option<String>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(lane: &'a Lane, plain: Option<&'a Plain>) -> Self {
        Self { lane, plain, notice: None }
    }

    /// What is to be told once the server has refused the wish and nothing else: from then on it is not asked for.
    pub(super) fn into_notice(self) -> Option<String> {
        self.notice
    }

    /// Sends one request, and two more where the first may have failed for the wish alone: one without, one with it again. A refusal that both share is
    /// the first one's.
    pub(super) async fn ask(&mut self, attempt: u32, cancel: &CancellationToken) -> RequestTrace {
        let name = format!("ready-{attempt}");
        let Some(plain) = self.plain else { return send(self.lane, &self.lane.workload, &name, cancel).await };
        if self.notice.is_some() {
            return send(self.lane, &plain.workload, &name, cancel).await;
        }
        let asked = send(self.lane, &self.lane.workload, &name, cancel).await;
        if !is_refusal(asked.status) {
            return asked;
        }
        let without = send(self.lane, &plain.workload, &format!("{name}-plain"), cancel).await;
        if without.status.is_some_and(|status| (200..300).contains(&status)) {
            // A server that was not ready when it was asked may have refused something else.
            let again = send(self.lane, &self.lane.workload, &format!("{name}-again"), cancel).await;
            if !is_refusal(again.status) {
                return again;
            }
            self.notice = Some(notice(plain.wish, self.lane.target.protocol(), &again));
        }
        if is_refusal(without.status) { asked } else { without }
    }
}

/// Whether a status says that there is a fault in the request itself.
pub(super) fn is_refusal(status: Option<u16>) -> bool {
    matches!(status, Some(400 | 422))
}

/// Sends the plain payloads from here on.
pub(super) fn leave_out(lane: &mut Arc<Lane>, plain: Option<Plain>) -> Result<(), Failure> {
    match (Arc::get_mut(lane), plain) {
        (Some(lane), Some(plain)) => {
            lane.workload = plain.workload;
            Ok(())
        }
        _ => Err(Failure::internal("the payload cannot be changed any more".to_owned())),
    }
}

fn notice(wish: &str, protocol: Protocol, refusal: &RequestTrace) -> String {
    let status = refusal.status.unwrap_or_default();
    let error = refusal.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!(
        "the server refuses `{wish}`, by which `{}` asks for token counts ({status}{error}); it is left out, and without \
         counts in the replies every limit on tokens is UNKNOWN",
        protocol.name()
    )
}

async fn send(lane: &Lane, workload: &Workload, name: &str, cancel: &CancellationToken) -> RequestTrace {
    // Texts are kept so that a reply in another dialect is recognised.
    let order = Order::of(&workload.cases()[0], format!("{}-{name}", lane.run_id), lane.clock.now_ns(), true);
    let Exchange { trace, .. } = exchange(&lane.pool, &lane.target, lane.clock, order, cancel).await;
    trace
}
