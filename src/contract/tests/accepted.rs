//! The file of reviewed exceptions.

use super::*;

const FILE: &str = "\
version: 1
accepted:
  - row: capacity_change
    reason: the new tokenizer costs it
    expires: 2026-12-31
    at_most: 8%
    baseline: 0123ABC
    by: ada
  - { row: contract_change, reason: a slower tier, expires: 2027-01-31 }
";

fn accepted(text: &str) -> Vec<AcceptedLoss> {
    match parse_acceptances(text) {
        Ok(losses) => losses,
        Err(faults) => panic!("{}", render_faults(&faults, "a.yaml", text)),
    }
}

fn told_of(text: &str) -> Vec<String> {
    let faults = parse_acceptances(text).expect_err("faults");
    let rendered = render_faults(&faults, "a.yaml", text);
    rendered.lines().filter_map(|line| line.strip_prefix("a.yaml:")).map(str::to_owned).collect()
}

#[test]
fn exceptions_are_read() {
    let losses = accepted(FILE);
    assert_eq!(
        losses,
        [
            AcceptedLoss {
                row: "capacity_change".to_owned(),
                reason: "the new tokenizer costs it".to_owned(),
                expires: jiff::civil::date(2026, 12, 31),
                at_most: Share::from_ppm(80_000),
                baseline: Some("0123abc".to_owned()),
                by: Some("ada".to_owned()),
            },
            AcceptedLoss {
                row: "contract_change".to_owned(),
                reason: "a slower tier".to_owned(),
                expires: jiff::civil::date(2027, 1, 31),
                at_most: None,
                baseline: None,
                by: None,
            },
        ]
    );
    assert_eq!(accepted("{\"version\": 1, \"accepted\": []}"), []);
}

#[test]
fn every_mistake_is_told_with_its_place() {
    for (from, to, expected) in [
        ("by: ada", "bye: ada", "8:5: /accepted/0/bye: unknown key `bye`; did you mean `by`?"),
        (
            "capacity_change",
            "Capacity",
            "3:10: /accepted/0/row: `Capacity` is not a row's name; write it as the report shows it, as in `capacity_change`",
        ),
        (
            "row: contract_change",
            "row: completeness",
            "9:12: /accepted/1/row: `completeness` is no change since a baseline, and nothing else can be accepted; name a row such as `capacity_change`, or have the contract changed",
        ),
        (
            "the new tokenizer costs it",
            "\" \"",
            "4:13: /accepted/0/reason: the text is blank; write what a reader of the report must know",
        ),
        (
            "the new tokenizer costs it",
            "Bearer hunter2",
            "4:13: /accepted/0/reason: looks like a secret, and every report shows it; remove it",
        ),
        (
            "2026-12-31",
            "2026-02-30",
            "5:14: /accepted/0/expires: `2026-02-30` is no day of the calendar; write one, as in `2026-12-31`",
        ),
        (
            "2026-12-31",
            "31.12.2026",
            "5:14: /accepted/0/expires: `31.12.2026` is not a day; write year, month and day, as in `2026-12-31`",
        ),
        (
            "    at_most: 8%\n",
            "",
            "3:5: /accepted/0: the largest loss of `capacity_change` is missing; write it, as in `at_most: 8%`",
        ),
        (
            "8%",
            "8",
            "6:14: /accepted/0/at_most: `8` is not a share; write a number from 0 to 100 and `%`, as in `99.9%`; did you mean `8%`?",
        ),
        ("8%", "95%", "6:14: /accepted/0/at_most: 95% cannot be accepted; write 0.1% to 90%"),
        ("8%", "0.05%", "6:14: /accepted/0/at_most: 0.05% cannot be accepted; write 0.1% to 90%"),
        (
            "0123ABC",
            "main",
            "7:15: /accepted/0/baseline: `main` is not a commit; write at least 7 of its hexadecimal digits, in quotes",
        ),
        (
            "0123ABC",
            "1234567",
            "7:15: /accepted/0/baseline: `1234567` is not a commit; write at least 7 of its hexadecimal digits, in quotes",
        ),
        (
            "reason: a slower tier",
            "at_most: 3%, reason: fault",
            "9:38: /accepted/1/at_most: `contract_change` has no largest loss; remove the key",
        ),
        ("version: 1", "version: 2", "1:10: /version: `2` is not read by this build; write 1"),
        ("version: 1\n", "", "1:1: the key `version` is missing (the version of the format: 1)"),
        (
            "row: contract_change, ",
            "row: capacity_change, at_most: 3%, baseline: 0123abc, ",
            "9:5: /accepted/1: the same row is accepted twice against the same baseline; keep one entry",
        ),
    ] {
        let told = told_of(&changed(FILE, from, to));
        assert_eq!(told, [expected], "`{from}` became `{to}`");
    }
    let secret = changed(FILE, "the new tokenizer costs it", "Bearer hunter2");
    let faults = parse_acceptances(&secret).expect_err("faults");
    assert!(!render_faults(&faults, "a.yaml", &secret).contains("hunter2"));
    assert_eq!(told_of(""), ["1:1: the file is empty; write `version: 1` and `accepted: []`"]);
    assert_eq!(told_of("[]"), ["1:1: expected a mapping of keys to values, found a list"]);
}

#[test]
fn the_committed_schema_of_exceptions_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/accepted.schema.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let generated = serde_json::to_string_pretty(&accepted_schema()).expect("JSON") + "\n";
    assert!(committed == generated, "write the output of `goodput schema accepted` to schemas/accepted.schema.json");
    assert!(jsonschema::draft202012::meta::is_valid(&accepted_schema()));
}

proptest::proptest! {
    /// Whatever somebody's editor did to the file: no panic, and every place lies in the text.
    #[test]
    fn damaged_files_are_refused_with_a_place(at in 0..FILE.len(), cut in 0..9usize, put in "[\\PC\n\t:{}\\[\\]&*!|>'\"%@`#-]{0,6}") {
        let end = (at + cut).min(FILE.len());
        let text = format!("{}{put}{}", &FILE[..at], &FILE[end..]);
        for fault in parse_acceptances(&text).err().unwrap_or_default() {
            let line = text.lines().nth(fault.line - 1).unwrap_or_default();
            proptest::prop_assert!(fault.line <= text.lines().count().max(1), "{fault:?}\n{text}");
            proptest::prop_assert!(fault.column <= line.chars().count() + 1, "{fault:?}\n{text}");
        }
    }

    /// No text at all makes it panic.
    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        let _ = parse_acceptances(&text);
    }
}
