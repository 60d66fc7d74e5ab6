//! Whole outputs of every renderer. They were read and judged by eye; a change here is a change of what people see.

use super::samples::{self, MS};
use super::{Frame, Limit, PlanReport, ProbeAnswer, SmokeReport, SmokeRequest, SmokeSent};
use super::{comment, markdown, plan, smoke, terminal};
use crate::contract::Plan;
use crate::observe::{Outcome, OutputKind, Warning};
use crate::units::Digest;

/// Compares line by line, so that a difference shows its place.
fn assert_text(found: &str, expected: &str) {
    let expected = expected.strip_prefix('\n').unwrap_or(expected);
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "number of lines in\n{found}");
}

#[test]
fn a_pass_in_a_terminal() {
    assert_text(
        &terminal(&samples::pass(), 100, false),
        r#"
PASS  quickstart
Every limit holds at 20/s, the load that must hold, and up to 30/s, the highest load measured
(goodput 29.8/s); TTFT P95 comes closest to breaking: 255 ms, limit 500ms (2 of 300 requests missed
it).
simulated endpoint: these figures are those of a simulation

check          limit     observed    interval           n  status  reason
─────────────────────────────────────────────────────────────────────────
TTFT P95       ≤ 500ms   204 ms      196 ms … 231 ms  300  PASS    held
E2E P95        ≤ 5s      1.06 s      1.03 s … 1.12 s  300  PASS    held
success rate   ≥ 100%    300 of 300  —                300  PASS    held
  at most 1% at 95%
attainment     ≥ 95%     99.66%      98.42% … 99.98%  300  PASS    held
restart_count  rise ≤ 0  0 → 0       —                  —  PASS    held
this_run (on this schedule), exact binomial at 95%: TTFT P95, E2E P95, success rate, attainment

          TTFT                     TPOT     E2E  completed  output  goodput  attainment  success
load       p50     p95     p99      p99     p99      req/s   tok/s    req/s
────────────────────────────────────────────────────────────────────────────────────────────────
  10/s  118 ms  140 ms  162 ms  19.0 ms  1.04 s       10.0     640     10.0        100%     100%
▸ 20/s  121 ms  204 ms  262 ms  19.0 ms  1.19 s       20.0   1,280     19.9      99.66%     100%
  30/s  133 ms  255 ms  330 ms  19.0 ms  1.41 s       30.0   1,920     29.8      99.33%     100%
▸ the load that must hold

measured 4 of 4 cells
load generator kept its plan: send lag p99 390 µs at worst, at 30/s
seed 42, plan 64879f7d6b96, workload 7f6c7360bf24, contract cc8321d6375c
goodput 0.1.0, 2026-11-29T10:00:00Z to 2026-11-29T10:01:34Z
"#,
    );
}

#[test]
fn a_fail_in_a_narrow_terminal() {
    assert_text(
        &terminal(&samples::fail(), 80, false),
        r#"
FAIL  gamma-26b-chat
Failed: at 20/s TTFT P95 (812 ms, not ≤ 500ms), attainment (86.33%, not ≥ 95%),
restart_count (counter_rose).
Not decided: success rate (interval_straddles_limit), oom_count (probe_failed).
Every limit holds at 10/s (goodput 10.0/s); at 20/s, the load that must hold,
TTFT P95 breaks first: 812 ms, limit 500ms (41 of 300 requests missed it).

check          limit     observed    n  status   reason
─────────────────────────────────────────────────────────────────────────
TTFT P95       ≤ 500ms   812 ms    300  FAIL     broken
  interval 774 ms … 845 ms
  41 of 300 requests are above the limit; 8 or fewer would pass, 22 or more fail
E2E P95        ≤ 5s      2.90 s    300  PASS     held
  interval 2.71 s … 3.20 s
success rate   ≥ 99%     99%       300  UNKNOWN  interval_straddles_limit
  interval 97.44% … 99.72%
  2,995 requests without a failure would decide it
attainment     ≥ 95%     86.33%    300  FAIL     broken
  interval 82.63% … 89.48%
restart_count  rise ≤ 0  0 → 1       —  FAIL     counter_rose
oom_count      rise ≤ 0  —           —  UNKNOWN  probe_failed
  after the load: exit status 2
this_run (on this schedule), exact binomial at 95%: TTFT P95, E2E P95, success
rate, attainment

         TTFT           TPOT    E2E completed output goodput attainment success
load      p50    p95     p99    p99     req/s  tok/s   req/s
───────────────────────────────────────────────────────────────────────────────
  10/s 118 ms 140 ms 19.0 ms 1.04 s      10.0    640    10.0       100%    100%
▸ 20/s 310 ms 812 ms 19.0 ms      ∞      19.8  1,280    17.3     86.33%  99.00%
    3 of 300 requests did not end ok: http_error 1, timeout 2
    12 of 300 replies cut by a limit or filter (truncated)
    requests pile up: +1.31 in flight per second
  30/s      —      —       —      —         —      —       —          —       —
    not measured: a lower load already broke
▸ the load that must hold

measured 3 of 5 cells
load generator kept its plan: send lag p99 350 µs at worst, at 20/s
warnings in replies: no_done 4
seed 42, plan 64879f7d6b96, workload 7f6c7360bf24, contract cc8321d6375c
goodput 0.1.0, 2026-11-29T10:00:00Z to 2026-11-29T10:01:34Z
"#,
    );
}

#[test]
fn a_fail_in_markdown() {
    assert_text(
        &markdown(&samples::fail()),
        r#"
## ❌ FAIL: gamma-26b-chat

**Failed: at 20/s TTFT P95 (812 ms, not ≤ 500ms), attainment (86.33%, not ≥ 95%), restart_count (counter_rose).**

Not decided: success rate (interval_straddles_limit), oom_count (probe_failed).

Every limit holds at 10/s (goodput 10.0/s); at 20/s, the load that must hold, TTFT P95 breaks first: 812 ms, limit 500ms (41 of 300 requests missed it).

| check | limit | observed | n | status | reason |
|:--|--:|--:|--:|:--|:--|
| ❌&nbsp;TTFT&nbsp;P95 | ≤&nbsp;500ms | 812&nbsp;ms<br><sub>774&nbsp;ms&nbsp;…&nbsp;845&nbsp;ms</sub> | 300 | FAIL | `broken`<br><sub>41 of 300 requests are above the limit; 8 or fewer would pass, 22 or more fail</sub> |
| ❌&nbsp;attainment | ≥&nbsp;95% | 86.33%<br><sub>82.63%&nbsp;…&nbsp;89.48%</sub> | 300 | FAIL | `broken` |
| ❌&nbsp;restart_count | rise&nbsp;≤&nbsp;0 | 0&nbsp;→&nbsp;1 |  | FAIL | `counter_rose` |
| ⚠️&nbsp;success&nbsp;rate | ≥&nbsp;99% | 99%<br><sub>97.44%&nbsp;…&nbsp;99.72%</sub> | 300 | UNKNOWN | `interval_straddles_limit`<br><sub>2,995 requests without a failure would decide it</sub> |
| ⚠️&nbsp;oom_count | rise&nbsp;≤&nbsp;0 | — |  | UNKNOWN | `probe_failed`<br><sub>after the load: exit status 2</sub> |
| ✅&nbsp;E2E&nbsp;P95 | ≤&nbsp;5s | 2.90&nbsp;s<br><sub>2.71&nbsp;s&nbsp;…&nbsp;3.20&nbsp;s</sub> | 300 | PASS | `held` |

| load | TTFT<br>p50 | TTFT<br>p95 | TPOT<br>p99 | E2E<br>p99 | completed<br>req/s | output<br>tok/s | goodput<br>req/s | attainment | success |
|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| 10/s | 118&nbsp;ms | 140&nbsp;ms | 19.0&nbsp;ms | 1.04&nbsp;s | 10.0 | 640 | 10.0 | 100% | 100% |
| **▸&nbsp;20/s** | **310&nbsp;ms** | **812&nbsp;ms** | **19.0&nbsp;ms** | **∞** | **19.8** | **1,280** | **17.3** | **86.33%** | **99.00%** |
| 30/s | — | — | — | — | — | — | — | — | — |

- **20/s**: 3 of 300 requests did not end ok: http_error 1, timeout 2; 12 of 300 replies cut by a limit or filter (truncated); requests pile up: +1.31 in flight per second
- **30/s**: not measured: a lower load already broke

<sub>▸ the load that must hold</sub><br>
<sub>measured 3 of 5 cells · load generator kept its plan: send lag p99 350 µs at worst, at 20/s · warnings in replies: no_done 4</sub>

<details>
<summary>About this run</summary>

- seed 42, plan `64879f7d6b96`, workload `7f6c7360bf24`, contract `cc8321d6375c`
- goodput 0.1.0, 2026-11-29T10&#58;&#8203;00&#58;&#8203;00Z to 2026-11-29T10&#58;&#8203;01&#58;&#8203;34Z
- endpoint http&#58;&#8203;//127.0.0.1&#58;&#8203;8000/v1/chat/completions, openai-chat
- first output 2.30 s after launch
- this_run (on this schedule), exact binomial at 95%: TTFT P95, E2E P95, success rate, attainment

| probe | before | after | change | may rise by |
|:--|--:|--:|--:|--:|
| restart_count | 0 | 0 | 0 | 0 |

</details>

<details>
<summary>Quantiles of every metric</summary>

| load | metric | n | p50 | p90 | p95 | p99 | max |
|:--|:--|--:|--:|--:|--:|--:|--:|
| 10/s | e2e | 300 | 890&nbsp;ms | 960&nbsp;ms | 988&nbsp;ms | 1.04&nbsp;s | 1.10&nbsp;s |
| 10/s | tpot | 300 | 12.0&nbsp;ms | 13.0&nbsp;ms | 14.0&nbsp;ms | 19.0&nbsp;ms | 25.0&nbsp;ms |
| 10/s | ttft | 300 | 118&nbsp;ms | 131&nbsp;ms | 140&nbsp;ms | 162&nbsp;ms | 171&nbsp;ms |
| 20/s | e2e | 300 | 1.40&nbsp;s | 2.20&nbsp;s | 2.90&nbsp;s | ∞ | 4.10&nbsp;s |
| 20/s | tpot | 300 | 12.0&nbsp;ms | 13.0&nbsp;ms | 14.0&nbsp;ms | 19.0&nbsp;ms | 25.0&nbsp;ms |
| 20/s | ttft | 300 | 310&nbsp;ms | 690&nbsp;ms | 812&nbsp;ms | ∞ | 1.90&nbsp;s |

</details>

<details>
<summary>Evidence</summary>

| load | objective | violations | undecided | unmeasured | requests | quantile | bounds at 95% |
|:--|:--|--:|--:|--:|--:|--:|:--|
| 10/s | TTFT&nbsp;P95 | 0 | 0 | 0 | 300 | 140&nbsp;ms | 134&nbsp;ms&nbsp;…&nbsp;146&nbsp;ms |
| 20/s | TTFT&nbsp;P95 | 41 | 0 | 0 | 300 | 812&nbsp;ms | 780&nbsp;ms&nbsp;…&nbsp;846&nbsp;ms |

</details>
"#,
    );
}

#[test]
fn a_loss_in_a_comment() {
    let frame = Frame {
        marker: Some("<!-- goodput comment -->"),
        remarks: &["Stale: the pull request has moved on.".to_owned()],
        run_url: Some("https://github.example/o/r/actions/runs/7"),
        limit: Limit::Characters(65_536),
    };
    let page = comment(&samples::loss(), &frame);
    let shown = page.split("<details>").next().unwrap_or_default();
    assert_text(
        shown,
        r#"
<!-- goodput comment -->

## ❌ FAIL: gamma-26b-chat

> ⚠️ Stale: the pull request has moved on.

**Failed: capacity change (-12.3%, and at most 5% may be lost).**

Every limit holds at 20/s, the load that must hold, and up to 30/s, the highest load measured (goodput 29.8/s); TTFT P95 comes closest to breaking: 255 ms, limit 500ms (2 of 300 requests missed it).

Compared with the baseline at <code>0123456789ab</code> (where the change left the base branch, 2 hours old, store branch): capacity -12.3% (-14.9% … -9.6%, margin 5%).

Under test: server_version from 0.11.0 to 0.11.1.

| check | limit | observed | baseline | change | status | reason |
|:--|--:|--:|--:|--:|:--|:--|
| ❌&nbsp;capacity&nbsp;change | loss&nbsp;≤&nbsp;5% | ≈&nbsp;26.3/s | 30.0/s | &#45;12.3%<br><sub>&#45;14.9%&nbsp;…&nbsp;-9.6%</sub> | FAIL | `broken` |
| ✅&nbsp;TTFT&nbsp;P95 | ≤&nbsp;500ms | 204&nbsp;ms<br><sub>196&nbsp;ms&nbsp;…&nbsp;231&nbsp;ms</sub> | 181&nbsp;ms | 11.3%&nbsp;slower<br><sub>7.0%&nbsp;…&nbsp;16.0%</sub> | PASS | `held` |
| ✅&nbsp;E2E&nbsp;P95 | ≤&nbsp;5s | 1.06&nbsp;s<br><sub>1.03&nbsp;s&nbsp;…&nbsp;1.12&nbsp;s</sub> | 1.09&nbsp;s | 3.0%&nbsp;faster<br><sub>&#43;1.0%&nbsp;…&nbsp;+5.0%</sub> | PASS | `held` |
| ✅&nbsp;success&nbsp;rate | ≥&nbsp;100% | 300&nbsp;of&nbsp;300 |  |  | PASS | `held`<br><sub>at&nbsp;most&nbsp;1%&nbsp;at&nbsp;95%</sub> |
| ✅&nbsp;attainment | ≥&nbsp;95% | 99.66%<br><sub>98.42%&nbsp;…&nbsp;99.98%</sub> |  |  | PASS | `held` |
| ✅&nbsp;goodput&nbsp;change<br><sub>at&nbsp;20/s</sub> | loss&nbsp;≤&nbsp;5% | 19.8/s | 19.9/s | &#45;0.6%<br><sub>&#45;1.5%&nbsp;…&nbsp;+0.3%</sub> | PASS | `held` |
| ✅&nbsp;restart_count | rise&nbsp;≤&nbsp;0 | 0&nbsp;→&nbsp;0 |  |  | PASS | `held` |

<sub>slower and faster: the change of speed, one over the time</sub>

| load | TTFT<br>p50 | TTFT<br>p95 | TPOT<br>p99 | E2E<br>p99 | completed<br>req/s | output<br>tok/s | goodput<br>req/s | attainment | success |
|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| 10/s | 118&nbsp;ms | 140&nbsp;ms | 19.0&nbsp;ms | 1.04&nbsp;s | 10.0 | 640 | 10.0 | 100% | 100% |
| **▸&nbsp;20/s** | **121&nbsp;ms** | **204&nbsp;ms** | **19.0&nbsp;ms** | **1.19&nbsp;s** | **20.0** | **1,280** | **19.9** | **99.66%** | **100%** |
| 30/s | 133&nbsp;ms | 255&nbsp;ms | 19.0&nbsp;ms | 1.41&nbsp;s | 30.0 | 1,920 | 29.8 | 99.33% | 100% |

<sub>▸ the load that must hold</sub><br>
<sub>measured 4 of 4 cells · load generator kept its plan: send lag p99 390 µs at worst, at 30/s</sub><br>
<sub>commit 89abcdef0123 · [whole report and artifacts](https://github.example/o/r/actions/runs/7)</sub>

"#,
    );
}

#[test]
fn an_endpoint_that_never_became_ready() {
    assert_text(
        &terminal(&samples::not_ready(), 80, false),
        r#"
FAIL  crash
The endpoint did not become ready: the process ended with exit status: 1 after
2.3s.
Failed: endpoint (endpoint_not_ready).
Not decided: TTFT P95 (not_measured).

check     limit    observed  interval  n  status   reason
─────────────────────────────────────────────────────────────────────
endpoint  —        —         —         —  FAIL     endpoint_not_ready
TTFT P95  ≤ 500ms  —         —         —  UNKNOWN  not_measured
this_run (on this schedule), exact binomial at 95%: TTFT P95

measured 0 of 2 cells
load generator: nothing was sent
plan 64879f7d6b96, workload 7f6c7360bf24, contract cc8321d6375c
goodput 0.1.0, 2026-11-29T10:00:00Z to 2026-11-29T10:01:34Z
the endpoint's process ended before it was stopped: exit status: 1

last lines of the endpoint's log
  INFO loading ./model
  ␛[31mERROR␛[0m CUDA out of memory <GPU 0> @ops | see #12
"#,
    );
}

#[test]
fn a_closed_loop_in_a_narrow_terminal() {
    assert_text(
        &terminal(&samples::closed_loop(), 80, false),
        r#"
PASS  throughput
8 clients complete 118 requests/s with 7,552 output tokens/s.
closed loop: maximum throughput; not an offered load

check     limit    observed  interval    n  status  reason
──────────────────────────────────────────────────────────
TTFT P95  ≤ 500ms  91.0 ms   —         300  PASS    held
this_run (on this schedule), exact binomial at 95%: TTFT P95

               TTFT            TPOT    E2E completed output goodput success
load            p50     p95     p99    p99     req/s  tok/s   req/s
───────────────────────────────────────────────────────────────────────────
  1 client  20.0 ms 22.0 ms 19.0 ms 300 ms      31.0  1,984    31.0    100%
▸ 8 clients 60.0 ms 91.0 ms 19.0 ms 880 ms       118  7,552     118    100%
▸ the load that must hold

measured 4 of 4 cells
load generator kept its plan: send lag p99 350 µs at worst, at 8 clients
seed 42, plan 64879f7d6b96, workload 7f6c7360bf24, contract cc8321d6375c
goodput 0.1.0, 2026-11-29T10:00:00Z to 2026-11-29T10:01:34Z
"#,
    );
}

#[test]
fn a_plan_in_a_terminal() {
    assert_text(
        &plan(&a_plan(Plan::Check), 80, false),
        r#"
quickstart
Plan check: 2 steps, 4 – 9 trials, 2,016 – 4,536 requests of 12 cases, 10 min 30
s – 21 min 00 s under load. A PASS speaks of a typical run of this length
(`typical_run`).

load   warm-up  window  drain  trials                under load
───────────────────────────────────────────────────────────────
  2/s      144     240    120       1                4 min 12 s
▸ 4/s      144     240    120   3 – 8  6 min 18 s – 16 min 48 s
▸ the load that must hold
warm-up, window and drain are the requests of one trial, as many at every load

Budget of the plan check: 30 min 00 s; all of it fits.

objective     limit    requests  needed  may miss  can pass
───────────────────────────────────────────────────────────
TTFT P95      ≤ 3s          240      20        12  yes
success rate  ≥ 99.9%     1,920   4,093         —  no
  UNKNOWN whatever is measured: 1920 requests of 8 trials are too few, 4093
  without violation can PASS it; write `requests: 512` (or `window: 128s`) and
  `budget: { check: 33m }`, or `repeats: [3, 5, 18]` and `budget: { check: 42m
  }`
capacity      ≥ 5/s           —       —         —  —
  not a row of the plan `check`; write `at_load: 5/s`, or use `--plan baseline`,
  which searches
requests are those of one trial; a success rate counts those of all trials
together

--plan baseline: 13 – 35 trials, 19 min 48 s – 3 h 32 min under load; it fits
into its budget if few trials are enough
--plan release: 12 – 34 trials, 15 min 36 s – 3 h 27 min under load; it fits
into its budget if few trials are enough

plan 64879f7d6b96, workload 7f6c7360bf24
"#,
    );
    assert_text(
        &plan(&a_plan(Plan::Baseline), 80, false),
        r#"
quickstart
Plan baseline: 2 steps and a search, 13 – 35 trials, 6,552 – 17,640 requests of
12 cases, 19 min 48 s – 3 h 32 min under load. A PASS speaks of a typical run of
this length (`typical_run`).

load   warm-up  window  drain  trials                under load
───────────────────────────────────────────────────────────────
  2/s      144     240    120       1                4 min 12 s
▸ 4/s      144     240    120   3 – 8  6 min 18 s – 16 min 48 s
▸ the load that must hold
warm-up, window and drain are the requests of one trial, as many at every load

Search from 1/s to 16/s, to 5%, on 5 schedules: about 9 – 26 trials, 9 min 18 s
– 3 h 11 min under load.
  about 20 trials in 41 min 43 s if the capacity is 4/s, the load that must hold

Budget of the plan baseline: 3 h 00 min; it fits if few trials are enough; for
all of it, 3 h 32 min, write `budget: { baseline: 213m }`.

objective     limit    requests  needed  may miss  can pass
───────────────────────────────────────────────────────────
TTFT P95      ≤ 3s          240      20        12  yes
success rate  ≥ 99.9%     1,920   4,093         —  no
  UNKNOWN whatever is measured: 1920 requests of 8 trials are too few, 4093
  without violation can PASS it; write `requests: 512` (or `window: 128s`), or
  `repeats: [3, 5, 18]`
capacity      ≥ 5/s           —       —         —  —
  by the search, if the budget suffices
requests are those of one trial; a success rate counts those of all trials
together

--plan check: 4 – 9 trials, 10 min 30 s – 21 min 00 s under load; all of it fits
into its budget
--plan release: 12 – 34 trials, 15 min 36 s – 3 h 27 min under load; it fits
into its budget if few trials are enough

plan 64879f7d6b96, workload 7f6c7360bf24
"#,
    );
}

#[test]
fn a_dry_run_in_a_terminal() {
    assert_text(
        &smoke(&a_smoke(), 80, false),
        r#"
POST http://127.0.0.1:8000/v1/chat/completions  (openai-chat)
  authorization: Bearer ***
  {"model":"gamma-26b","stream":true}

case               outcome    status first output       E2E tokens       finish
───────────────────────────────────────────────────────────────────────────────
hello              ok            200 content 41.0 ms 312 ms 9 in, 64 out stop
  “Hello!␊I am”
  warnings: no_done
a case with a nam… http_error    404 —                    — no usage     —
  model `gamma` does not exist

probe          answer
─────────────────────────────────────
restart_count  0
oom_count      failed: exit status: 2

FAIL  something does not work
  · the request for `a case` ended in http_error; check `endpoint.model`
  · probe `oom_count` gave no number; run its command by hand
"#,
    );
}

/// A pull request and a night of a contract that asks for more than they can decide.
fn a_plan(plan: Plan) -> PlanReport {
    const CONTRACT: &str = "
version: 1
name: quickstart
endpoint: { url: 'http://127.0.0.1:1/v1', protocol: openai-chat, model: m }
workload: { cases: c.json }
traffic:
  model: poisson
  loads: [2/s, 4/s]
  search: { from: 1/s, to: 16/s }
  trial: { window: 60s, warm_up: 36s, drain: 30s }
slo:
  objectives:
    - { metric: ttft, percentile: 95, at_most: 3s }
    - { metric: success_rate, at_least: 99.9% }
  at_load: 4/s
  capacity: { at_least: 5/s }
";
    let contract = crate::contract::parse(CONTRACT, std::path::Path::new("/repo")).expect("a contract").contract;
    PlanReport {
        name: contract.name.clone(),
        cases: 12,
        forecast: crate::judge::planning::forecast(&contract, plan),
        plan_digest: Digest::of(b"plan"),
        workload_digest: Digest::of(b"workload"),
    }
}

fn a_smoke() -> SmokeReport {
    let good = SmokeRequest {
        case: "hello".to_owned(),
        outcome: Outcome::Ok,
        status: Some(200),
        error: None,
        first_output_kind: Some(OutputKind::Content),
        first_output_ns: Some(41 * MS),
        first_answer_ns: Some(41 * MS),
        first_audio_ns: None,
        e2e_ns: Some(312 * MS),
        audio_ns: None,
        rtf_ppm: None,
        underrun_ns: None,
        input_tokens: Some(9),
        output_tokens: Some(64),
        output_chunks: Some(64),
        finish_reason: Some("stop".to_owned()),
        text: Some("Hello!\nI am".to_owned()),
        warnings: vec![Warning::NoDone],
        looks_like: None,
    };
    let bad = SmokeRequest {
        case: "a case with a name that is far too long".to_owned(),
        outcome: Outcome::HttpError,
        status: Some(404),
        error: Some("model `gamma` does not exist".to_owned()),
        first_output_kind: None,
        first_output_ns: None,
        first_answer_ns: None,
        first_audio_ns: None,
        e2e_ns: None,
        audio_ns: None,
        rtf_ppm: None,
        underrun_ns: None,
        input_tokens: None,
        output_tokens: None,
        output_chunks: None,
        finish_reason: None,
        text: None,
        warnings: Vec::new(),
        looks_like: None,
    };
    SmokeReport {
        notices: Vec::new(),
        sent: SmokeSent {
            line: "POST http://127.0.0.1:8000/v1/chat/completions".to_owned(),
            protocol: "openai-chat".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer ***".to_owned())],
            body: "{\"model\":\"gamma-26b\",\"stream\":true}".to_owned(),
        },
        requests: vec![good, bad],
        probes: vec![
            ProbeAnswer {
                name: "restart_count".to_owned(),
                value: Some(0.0),
                unit: None,
                of: Vec::new(),
                failure: None,
                needed: true,
                is_exit_code: false,
            },
            ProbeAnswer {
                name: "oom_count".to_owned(),
                value: None,
                unit: None,
                of: Vec::new(),
                failure: Some("exit status: 2".to_owned()),
                needed: true,
                is_exit_code: false,
            },
        ],
        problems: vec!["the request for `a case` ended in http_error; check `endpoint.model`".to_owned()],
        unproven: vec!["probe `oom_count` gave no number; run its command by hand".to_owned()],
    }
}
