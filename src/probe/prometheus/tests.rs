//! What the scanner makes of pages, in pieces of any size.

use proptest::collection::{btree_map, vec};
use proptest::prelude::{any, proptest};

use super::exposition::{Labels, identity, parse};
use super::page::Scan;
use crate::contract::{MetricsPage, PrometheusSource};
use crate::probe::Answer;

/// A question for a metric of some names, with labels.
fn source(metrics: &[&str], labels: &[(&str, &str)]) -> PrometheusSource {
    let url = "http://127.0.0.1:9/metrics".parse().expect("a URL");
    PrometheusSource {
        page: MetricsPage { url, headers: Vec::new(), ca_file: None },
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        labels: labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect(),
    }
}

/// What a page answers to one question, which may not depend on how it was cut into pieces.
fn ask(page: &[u8], openmetrics: bool, metric: &str, labels: &[(&str, &str)]) -> Answer {
    let sources = [source(&[metric], labels)];
    let in_pieces_of = |size: usize| {
        let mut scan = Scan::new(&sources, openmetrics);
        page.chunks(size).try_for_each(|piece| scan.push(piece))?;
        scan.finish()?.pop().expect("one question, one answer")
    };
    let answer = in_pieces_of(page.len().max(1));
    for size in [1, 2, 7] {
        // A value that is not a number is not equal to itself.
        assert_eq!(format!("{:?}", in_pieces_of(size)), format!("{answer:?}"), "in pieces of {size}");
    }
    answer
}

/// The series as `of since value`, or the failure.
fn told(answer: Answer) -> String {
    match answer {
        Ok(series) => {
            let one = |series: crate::record::Series| match series.since {
                Some(since) => format!("{} [{since}] {}", series.of, series.value),
                None => format!("{} {}", series.of, series.value),
            };
            series.into_iter().map(one).collect::<Vec<_>>().join("; ")
        }
        Err(failure) => failure,
    }
}

#[track_caller]
fn check(page: &str, metric: &str, labels: &[(&str, &str)], expected: &str) {
    assert_eq!(told(ask(page.as_bytes(), false, metric, labels)), expected, "{metric} in {page}");
}

#[test]
fn forms_of_the_text_format_that_its_description_shows() {
    // From the description of the format, "Text format example".
    let page = concat!(
        "# HELP http_requests_total The total number of HTTP requests.\n",
        "# TYPE http_requests_total counter\n",
        "http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n",
        "http_requests_total{method=\"post\",code=\"400\"}    3 1395066363000\n",
        "\n",
        "# Escaping in label values:\n",
        "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",error=\"Cannot find file:\\n\\\"FILE.TXT\\\"\"} 1.458255915e9\n",
        "\n",
        "# Minimalistic line:\n",
        "metric_without_timestamp_and_labels 12.47\n",
        "\n",
        "# A weird metric from before the epoch:\n",
        "something_weird{problem=\"division by zero\"} +Inf -3982045\n",
    );
    check(page, "metric_without_timestamp_and_labels", &[], "metric_without_timestamp_and_labels 12.47");
    check(page, "http_requests_total", &[("code", "400")], "http_requests_total{method=\"post\"} 3");
    check(page, "http_requests_total", &[("code", "400"), ("method", "post")], "http_requests_total 3");
    check(
        page,
        "http_requests_total",
        &[],
        "http_requests_total{code=\"200\",method=\"post\"} 1027; http_requests_total{code=\"400\",method=\"post\"} 3",
    );
    check(page, "something_weird", &[], "something_weird{problem=\"division by zero\"} inf");
    let error = [("error", "Cannot find file:\n\"FILE.TXT\"")];
    check(
        page,
        "msdos_file_access_time_seconds",
        &error,
        "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\"} 1458255915",
    );
    check(
        page,
        "http_requests",
        &[("code", "500")],
        "holds `http_requests_total`, but no series `http_requests_total{code=\"500\"}`; look at `labels`",
    );
}

#[test]
fn lines_are_read_leniently_and_names_may_be_quoted() {
    for (line, expected) in [
        ("x 1e3", "x 1000"),
        ("x 1.5E-1\r", "x 0.15"),
        (" x\t{ a = \"b\" , }\t 2 ", "x{a=\"b\"} 2"),
        ("x{} 3", "x 3"),
        ("x{a=\"}\"}4", "x{a=\"}\"} 4"),
        ("x{a=\"# {\"} 5 1700000000.5 # {trace_id=\"x # y\"} 0.67 1e9", "x{a=\"# {\"} 5"),
        ("x{a=\"\\q\"} 6", "x{a=\"\\\\q\"} 6"),
        ("{\"x\"} 7", "x 7"),
        ("{\"x\",\"näme\"=\"wört\",b=\"c\"} 8", "x{b=\"c\",\"näme\"=\"wört\"} 8"),
        ("{b=\"c\",\"x\"} 9", "x{b=\"c\"} 9"),
        ("x NaN", "x NaN"),
        ("x -Inf", "x -inf"),
        ("x 9007199254740992", "x 9007199254740992"),
    ] {
        check(&format!("# TYPE x untyped\n{line}\nother_thing 1\n"), "x", &[], expected);
    }
    check("{\"my.metric\",a=\"b\"} 1\n", "my.metric", &[], "{\"my.metric\",a=\"b\"} 1");
}

#[test]
fn a_wanted_line_that_cannot_be_read_is_named_and_others_do_not_matter() {
    for (line, expected) in [
        ("x 0x1F", "gives `x` in line 2, which has the value `0x1F`, which is no number"),
        ("x 1_000", "gives `x` in line 2, which has the value `1_000`, which is no number"),
        ("x 1,5", "gives `x` in line 2, which has the value `1,5`, which is no number"),
        ("x{a=\"b\"}", "gives `x` in line 2, which has no value"),
        ("x 1 2 3", "gives `x` in line 2, which has `1 2 3` where one number and perhaps a time were expected"),
        ("x 1 then", "gives `x` in line 2, which has `1 then` where one number and perhaps a time were expected"),
        (
            "x 9007199254740994",
            "gives `x` in line 2 as 9.007199254740994e15, which is too large to be compared exactly (limit 2^53)",
        ),
        ("x{a=\"b} 1", "gives `x` in a form that cannot be read: line 2 has quotes that do not end: `x{a=\"b} 1`"),
        (
            "x{a=b} 1",
            "gives `x` in a form that cannot be read: line 2 has a label whose value is not in quotes: `x{a=b} 1`",
        ),
        ("x{a} 1", "gives `x` in a form that cannot be read: line 2 has a label without a value: `x{a} 1`"),
        (
            "x{a=\"1\",a=\"1\"} 1",
            "gives `x` in a form that cannot be read: line 2 has a label twice: `x{a=\"1\",a=\"1\"} 1`",
        ),
    ] {
        check(&format!("fine 1\n{line}\n"), "x", &[], expected);
        check(&format!("fine 1\n{line}\n"), "fine", &[], "fine 1");
    }
    let page = b"fine 1\nx{a=\"\xff\"} 2\n\xfe\xff\n";
    assert_eq!(told(ask(page, false, "fine", &[])), "fine 1");
    let failure = told(ask(page, false, "x", &[]));
    assert_eq!(failure, "gives `x` in a form that cannot be read: line 2 is not UTF-8: `x{a=\"\u{fffd}\"} 2`");
    // A value that is none does not matter where its labels are others.
    check("x{a=\"1\"} one\nx{a=\"2\"} 2\n", "x", &[("a", "2")], "x 2");
}

#[test]
fn a_series_that_is_there_twice_has_no_one_value() {
    let twice = "holds `x{a=\"1\",b=\"2\"}` twice, in lines 1 and 3, so that it has no one value";
    check("x{a=\"1\",b=\"2\"} 1\ny 1\nx{b=\"2\",a=\"1\"} 1\n", "x", &[], twice);
    check("x{a=\"1\",b=\"2\"} 1\ny 1\nx{b=\"2\",a=\"1\"} 1\n", "y", &[], "y 1");
}

#[test]
fn counters_are_found_with_and_without_their_suffix_and_exact_names_first() {
    check("x_total 1\n", "x", &[], "x_total 1");
    check("x_total 1\n", "x_total", &[], "x_total 1");
    check("x_total 1\nx 2\n", "x", &[], "x 2");
    let sources = [source(&["new_name", "old_name"], &[])];
    for (page, expected) in [
        ("old_name 1\n", "old_name 1"),
        ("old_name 1\nnew_name 2\n", "new_name 2"),
        ("new_name_total 3\n", "new_name_total 3"),
    ] {
        let mut scan = Scan::new(&sources, false);
        scan.push(page.as_bytes()).expect("a page");
        assert_eq!(told(scan.finish().expect("a page").remove(0)), expected);
    }
}

#[test]
fn a_metric_that_is_not_there_is_named_with_the_nearest() {
    check(
        "vllm:cpu_cache_usage_perc 0\nvllm:kv_cache_usage_perc 0\npython_info 1\n",
        "vllm:gpu_cache_usage_perc",
        &[],
        "holds no metric `vllm:gpu_cache_usage_perc`; the nearest there are `vllm:cpu_cache_usage_perc`, `vllm:kv_cache_usage_perc`",
    );
    check("y 1\n", "requests", &[], "holds no metric `requests`, and none of a similar name");
    check("# TYPE x_total counter\ny 1\n", "x_total", &[], "declares `x_total` and holds no series of it yet");
}

#[test]
fn since_when_a_series_counts_is_said_by_itself_or_by_its_process() {
    // 1700000000 s after 1970 is 2023-11-14T22:13:20Z; another tool says so: `date -ud @1700000000`.
    let own =
        "x_total{a=\"1\"} 5\nx_created{a=\"1\"} 1.7e+09\nx_total{a=\"2\"} 6\nprocess_start_time_seconds 1700000001.5\n";
    check(own, "x", &[], "x_total{a=\"1\"} [2023-11-14T22:13:20Z] 5; x_total{a=\"2\"} [2023-11-14T22:13:21.5Z] 6");
    // A page of several processes: the one that the series belongs to.
    let several = concat!(
        "process_start_time_seconds{job=\"a\"} 1700000000\n",
        "process_start_time_seconds{job=\"b\"} 1700000001\n",
        "x{job=\"a\",z=\"1\"} 1\nx{job=\"b\"} 2\nx{job=\"c\"} 3\n",
    );
    check(
        several,
        "x",
        &[],
        "x{job=\"a\",z=\"1\"} [2023-11-14T22:13:20Z] 1; x{job=\"b\"} [2023-11-14T22:13:21Z] 2; x{job=\"c\"} 3",
    );
    check("x 1\nprocess_start_time_seconds NaN\n", "x", &[], "x 1");
    check("x 1\nprocess_start_time_seconds 1e300\n", "x", &[], &format!("x [1{}] 1", "0".repeat(300)));
}

#[test]
fn a_page_that_was_cut_short_counts_for_nothing() {
    let whole = "# TYPE x counter\nx_total 12.0 # {a=\"b\"} 1.0\n# EOF\n";
    assert_eq!(told(ask(whole.as_bytes(), true, "x", &[])), "x_total 12");
    assert_eq!(told(ask(whole.trim_end().as_bytes(), true, "x", &[])), "x_total 12");
    for end in 1..whole.len() - 1 {
        let failure = ask(&whole.as_bytes()[..end], true, "x", &[]).expect_err("it ends too early");
        assert!(failure.contains("cut short") || failure.contains("no page of metrics"), "{end}: {failure}");
    }
    check("x 12\ny 3", "x", &[], "ends in the middle of line 2, so that it was cut short");
    check("x 12", "x", &[], "is no page of metrics, it is `x 12`; look at the path of its URL");
    check("", "x", &[], "holds no metric at all");
    check("# HELP x y\n", "x", &[], "holds no metric at all");
}

#[test]
fn what_is_no_page_of_metrics_is_shown() {
    for (page, begins) in [
        ("<!doctype html>\n<html>\n", "<!doctype html>"),
        ("{\"error\": \"not found\"}\n", "{\"error\": \"not found\"}"),
        ("[1, 2]\n", "[1, 2]"),
        ("Not Found\n", "Not Found"),
        ("\u{1}\u{2}\u{1b}[31m\n", "\\u{1}\\u{2}\\u{1b}[31m"),
    ] {
        check(page, "x", &[], &format!("is no page of metrics, it begins `{begins}`; look at the path of its URL"));
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let many = |count: usize| (0..count).map(|index| format!("x{{a=\"{index}\"}} 1\n")).collect::<String>();
    let sources = [source(&["x"], &[])];
    let read = |page: &str| {
        let mut scan = Scan::new(&sources, false);
        scan.push(page.as_bytes()).expect("a page");
        scan.finish().expect("a page").remove(0)
    };
    assert_eq!(read(&many(1_000)).expect("as many as may be").len(), 1_000);
    let failure = read(&many(1_001)).expect_err("one more");
    assert_eq!(failure, "holds more than 1000 series of `x`; narrow them by `labels`");

    let mut scan = Scan::new(&sources, false);
    let piece = [b'x'; 1 << 16];
    let failure = (0..1_000).find_map(|_| scan.push(&piece).err()).expect("an endless line ends");
    assert_eq!(failure, "has a line 1 longer than 1 MiB; is it a page of metrics?");

    // Two long label sets that differ only at their ends stay two.
    let long = "v".repeat(5_000);
    let both = read(&format!("x{{a=\"{long}1\"}} 1\nx{{a=\"{long}2\"}} 2\n")).expect("two series");
    assert!(both.iter().all(|series| series.of.chars().count() < 320), "{both:?}");
    assert_ne!(both[0].of, both[1].of);
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_an_end(
        lines in vec((any::<bool>(), vec(any::<u8>(), 0..30)), 0..8), openmetrics in any::<bool>(),
    ) {
        let line = |(wanted, bytes): (bool, Vec<u8>)| [if wanted { b"x".as_slice() } else { b"" }, &bytes, b"\n"].concat();
        drop(ask(&lines.into_iter().flat_map(line).collect::<Vec<u8>>(), openmetrics, "x", &[]));
    }

    #[test]
    fn an_identity_is_read_back_as_the_series_that_it_is_of(
        name in "[ -~]{1,20}|[a-z:_]{1,9}", labels in btree_map("[^\r]{1,6}", "[^\r]{0,12}", 0..4),
    ) {
        let labels: Labels = labels;
        let sample = parse(&format!("{} 1", identity(&name, &labels, &Labels::new()))).expect("its own form");
        proptest::prop_assert_eq!((sample.name, sample.labels, sample.value), (name, labels, Ok(1.0)));
    }
}
