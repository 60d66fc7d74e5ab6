//! Any text as a file of cases: understood, or refused with at least one fault; what is understood can be told apart.
#![no_main]

use std::collections::BTreeSet;

use goodput::workload::parse_cases;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match parse_cases(text) {
    Ok(cases) => {
        assert!(!cases.is_empty(), "a workload has something to send");
        let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids.len(), cases.len(), "no two cases share a name");
    }
    Err(faults) => assert!(!faults.is_empty(), "a refusal says why"),
});
