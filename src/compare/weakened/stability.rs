//! Counters and health checks.

use super::Found;
use crate::contract::{Contract, Source, StabilityProbe};

pub(super) fn stability(base: &Contract, head: &Contract, found: &mut Found) {
    for row in &base.stability {
        let name = &row.name;
        let Some((index, other)) = head.stability.iter().enumerate().find(|(_, other)| other.name == *name) else {
            found.tell("/stability", format!("{name} is missing"));
            continue;
        };
        // A row that comes by itself is written nowhere.
        let at = if other.automatic { "/stability".to_owned() } else { format!("/stability/{index}") };
        if let (
            StabilityProbe::Counter { max_increase: base_most, .. },
            StabilityProbe::Counter { max_increase: head_most, .. },
        ) = (&row.probe, &other.probe)
        {
            let pointer = format!("{at}/max_increase");
            found.higher(&pointer, &format!("max_increase of {name}"), *base_most, *head_most, super::plain);
        }
        // Rows that come by themselves follow the endpoint, as to another port.
        let are_automatic = row.automatic && other.automatic;
        if !are_automatic && !is_asked_alike(base, &row.probe, head, &other.probe) {
            found.tell(at, format!("{name} is asked in another way"));
        }
    }
}

/// Whether two rows ask the same; how much may be, and how long it may take, aside.
fn is_asked_alike(base: &Contract, row: &StabilityProbe, head: &Contract, other: &StabilityProbe) -> bool {
    use StabilityProbe::{Counter, ExitCode, LastCode, Unchanged};
    match (row, other) {
        (Counter { probe: one, across: one_across, .. }, Counter { probe: two, across: two_across, .. }) => {
            one_across == two_across && is_same(base, &one.source, head, &two.source)
        }
        (LastCode { probe: one }, LastCode { probe: two }) | (Unchanged { probe: one }, Unchanged { probe: two }) => {
            is_same(base, &one.source, head, &two.source)
        }
        (ExitCode { command: one, .. }, ExitCode { command: two, .. }) => one == two,
        _ => false,
    }
}

/// Whether two sources ask the same. A page of the endpoint's own moves with the endpoint.
pub(super) fn is_same(base: &Contract, one: &Source, head: &Contract, two: &Source) -> bool {
    let (Some(one_page), Some(two_page)) = (one.page(), two.page()) else { return one == two };
    let is_own = |contract: &Contract, page: &crate::contract::MetricsPage| {
        let (endpoint, page) = (&contract.endpoint.url, &page.url);
        (endpoint.host(), endpoint.port_or_known_default()) == (page.host(), page.port_or_known_default())
    };
    if !is_own(base, one_page) || !is_own(head, two_page) {
        return one == two;
    }
    let (mut one, mut two) = (one.clone(), two.clone());
    for source in [&mut one, &mut two] {
        if let Some(page) = source.page_mut() {
            let place = page.url[url::Position::BeforePath..].to_owned();
            page.url = head.endpoint.url.join(&place).unwrap_or_else(|_| page.url.clone());
        }
    }
    one == two
}
