//! Any text as a contract: understood, or refused with at least one fault whose place is in the text.
#![no_main]

use std::path::Path;

use goodput::contract::{from_value, parse, render_faults};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse(text, Path::new("folder")) {
        Ok(loaded) => {
            // What a result keeps of it is read again, when the result is judged, as the same contract.
            let again = from_value(&loaded.value, Path::new("folder"));
            assert_eq!(again.map(|contract| format!("{contract:?}")), Ok(format!("{:?}", loaded.contract)));
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "a refusal says why");
            let lines = 1 + text.chars().filter(|c| matches!(c, '\n' | '\r')).count();
            assert!(faults.iter().all(|fault| fault.line <= lines), "{faults:?}");
            assert!(!render_faults(&faults, "contract.yaml", text).contains('\u{1b}'), "a terminal acts on nothing");
        }
    }
});
