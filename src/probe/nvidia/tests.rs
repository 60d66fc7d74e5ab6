use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

const FIRST: &str = "GPU-886520a3-f4c4-4d1c-b5cc-655ca8b02758";
const SECOND: &str = "GPU-7bdeeff7-f7c6-e13c-f368-227523e670a7";

/// A stand-in for `nvidia-smi`: a script that sees the question as `$1` and writes down all of them.
struct StandIn(TempDir);

impl StandIn {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("nvidia-smi");
        fs::write(&path, format!("#!/bin/sh\necho \"$*\" >> asked\n{script}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script that runs");
        Self(folder)
    }

    /// Prints rows, whatever is asked.
    fn printing(rows: &[String]) -> Self {
        Self::new(&format!("cat <<'END'\n{}\nEND", rows.join("\n")))
    }

    fn cards(&self, gpus: &[&str]) -> Cards {
        let source = NvidiaSource {
            field: NvidiaField::Power,
            gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
            command: vec!["./nvidia-smi".to_owned()],
        };
        Cards::new(&source, &Context { folder: self.0.path().to_owned(), endpoint: None, port: 8000 })
    }

    async fn ask(&self, field: NvidiaField, gpus: &[&str]) -> Answer {
        let mut answers = self.cards(gpus).ask(&BTreeSet::from([field])).await?;
        answers.remove(&field).expect("an answer")
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.0.path().join("asked")).expect("a question")
    }
}

fn card(index: u32, uuid: &str, cells: &str) -> String {
    format!("{index}, {uuid}, {cells}")
}

fn series(index: u32, uuid: &str, value: f64) -> Series {
    Series { of: format!("GPU {index}"), since: Some(uuid.to_owned()), value }
}

#[tokio::test]
async fn every_field_is_asked_by_its_documented_name_and_told_in_its_unit() {
    for (field, names, cells, expected) in [
        (NvidiaField::EccUncorrected, "ecc.errors.uncorrected.volatile.total", "2", 2.0),
        (NvidiaField::EccCorrected, "ecc.errors.corrected.volatile.total", "17", 17.0),
        (NvidiaField::RetiredPages, "retired_pages.single_bit_ecc.count,retired_pages.double_bit.count", "3, 1", 4.0),
        (
            NvidiaField::Throttled,
            "clocks_event_reasons.hw_slowdown,clocks_event_reasons.hw_thermal_slowdown,clocks_event_reasons.sw_thermal_slowdown",
            "Not Active, Not Active, Active",
            1.0,
        ),
        (NvidiaField::Utilization, "utilization.gpu", "87", 0.87),
        // A MiB is 1,048,576 bytes.
        (NvidiaField::MemoryUsed, "memory.used", "71034", 74_484_547_584.0),
        (NvidiaField::Power, "power.draw", "326.51", 326.51),
        (NvidiaField::Temperature, "temperature.gpu", "61", 61.0),
    ] {
        let stand_in = StandIn::printing(&[card(0, FIRST, cells)]);
        assert_eq!(stand_in.ask(field, &[]).await, Ok(vec![series(0, FIRST, expected)]), "{field:?}");
        assert_eq!(stand_in.asked(), format!("--query-gpu=index,uuid,{names} --format=csv,noheader,nounits\n"));
    }
}

#[tokio::test]
async fn gpus_are_told_apart_and_chosen_by_index_or_uuid() {
    let stand_in = StandIn::printing(&[card(0, FIRST, "61"), card(1, SECOND, "64"), card(10, "GPU-c", "70")]);
    let temperature = async |gpus: &[&str]| stand_in.ask(NvidiaField::Temperature, gpus).await;
    assert_eq!(
        temperature(&[]).await,
        Ok(vec![series(0, FIRST, 61.0), series(1, SECOND, 64.0), series(10, "GPU-c", 70.0)])
    );
    assert_eq!(temperature(&["1"]).await, Ok(vec![series(1, SECOND, 64.0)]));
    assert_eq!(temperature(&[SECOND, "0"]).await, Ok(vec![series(0, FIRST, 61.0), series(1, SECOND, 64.0)]));
    let failure = temperature(&["0", "7"]).await.expect_err("no such GPU");
    assert!(failure.starts_with("there is no GPU `7`; `./nvidia-smi` lists `0 is GPU-886520a3"), "{failure}");
    // A card that is split is one row all the same; a part of it is no GPU here.
    assert!(
        temperature(&["MIG-e25d94fa"])
            .await
            .is_err_and(|failure| failure.starts_with("there is no GPU `MIG-e25d94fa`"))
    );
}

#[tokio::test]
async fn what_a_gpu_does_not_tell_is_no_zero() {
    for cell in [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "ERR!",
        "[Unknown Error]",
        "[GPU is lost]",
        "[Insufficient Permissions]",
        "",
        "nan",
        "inf",
        "1e999",
    ] {
        let stand_in = StandIn::printing(&[card(0, FIRST, "0"), card(1, SECOND, cell)]);
        let failure = stand_in.ask(NvidiaField::EccUncorrected, &[]).await.expect_err(cell);
        let expected =
            format!("GPU 1 gives `{cell}` for `ecc.errors.uncorrected.volatile.total`; is ECC there, and on?");
        assert_eq!(failure, expected);
        // Who does not ask that card is not concerned.
        assert_eq!(stand_in.ask(NvidiaField::EccUncorrected, &["0"]).await, Ok(vec![series(0, FIRST, 0.0)]));
    }
    // A card that is split by MIG tells no utilization.
    let split = StandIn::printing(&[card(0, FIRST, "[N/A]")]);
    assert!(
        split
            .ask(NvidiaField::Utilization, &[])
            .await
            .is_err_and(|failure| failure.ends_with("split by MIG tells none"))
    );
    for (cells, expected) in [
        ("Not Active, Not Active, Not Active", Ok(0.0)),
        ("[N/A], Active, Not Active", Ok(1.0)),
        (
            "Not Active, [N/A], Not Active",
            Err("GPU 0 gives `[N/A]` for `clocks_event_reasons.hw_thermal_slowdown`".to_owned()),
        ),
    ] {
        let stand_in = StandIn::printing(&[card(0, FIRST, cells)]);
        let expected = expected.map(|value| vec![series(0, FIRST, value)]);
        assert_eq!(stand_in.ask(NvidiaField::Throttled, &[]).await, expected);
    }
}

#[tokio::test]
async fn an_older_driver_is_asked_by_its_own_names() {
    let stand_in = StandIn::new(&format!(
        "case $1 in *clocks_event_reasons*) echo 'Field \"clocks_event_reasons.hw_slowdown\" is not a valid field to query.'; echo; exit 2;; \
         esac\necho '{}'",
        card(0, FIRST, "Not Active, Not Active, Not Active")
    ));
    let mut cards = stand_in.cards(&[]);
    let fields = BTreeSet::from([NvidiaField::Throttled]);
    for _ in 0..2 {
        let answers = cards.ask(&fields).await.expect("an answer");
        assert_eq!(answers[&NvidiaField::Throttled], Ok(vec![series(0, FIRST, 0.0)]));
    }
    // It is tried once.
    assert_eq!(stand_in.asked().matches("clocks_event_reasons.hw_slowdown").count(), 1);
}

#[tokio::test]
async fn one_question_answers_several_fields_and_one_that_is_refused_spoils_no_other() {
    let all = StandIn::printing(&[card(0, FIRST, "3, 87, 326.5"), card(1, SECOND, "[N/A], 0, 70")]);
    let fields = BTreeSet::from([NvidiaField::Power, NvidiaField::EccCorrected, NvidiaField::Utilization]);
    let answers = all.cards(&[]).ask(&fields).await.expect("answers");
    assert_eq!(all.asked().lines().count(), 1);
    assert_eq!(answers[&NvidiaField::Power], Ok(vec![series(0, FIRST, 326.5), series(1, SECOND, 70.0)]));
    assert_eq!(answers[&NvidiaField::Utilization], Ok(vec![series(0, FIRST, 0.87), series(1, SECOND, 0.0)]));
    assert!(
        answers[&NvidiaField::EccCorrected].as_ref().is_err_and(|failure| failure.starts_with("GPU 1 gives `[N/A]`"))
    );

    let refusing = StandIn::new(&format!(
        "case $1 in *power.draw*) echo 'Field \"power.draw\" is not a valid field to query.' >&2; exit 2;; esac\necho '{}'",
        card(0, FIRST, "61")
    ));
    let fields = BTreeSet::from([NvidiaField::Power, NvidiaField::Temperature]);
    let answers = refusing.cards(&[]).ask(&fields).await.expect("answers");
    assert_eq!(answers[&NvidiaField::Temperature], Ok(vec![series(0, FIRST, 61.0)]));
    let failure = Err("`./nvidia-smi` does not know `power.draw`; a newer driver may".to_owned());
    assert_eq!(answers[&NvidiaField::Power], failure);
}

#[tokio::test]
async fn a_program_that_does_not_answer_says_what_it_said() {
    let driver = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA \
                  driver is installed and running.";
    for (script, expected) in [
        (
            format!("echo \"{driver}\"; echo; exit 9"),
            format!("`./nvidia-smi` exited with code 9; it printed `{driver}`"),
        ),
        (
            "echo No devices were found; exit 6".to_owned(),
            "`./nvidia-smi` exited with code 6; it printed `No devices were found`".to_owned(),
        ),
        ("true".to_owned(), "`./nvidia-smi` lists no GPU".to_owned()),
        (
            "echo 'No devices were found'".to_owned(),
            "`./nvidia-smi` printed `No devices were found` where 3 values of a GPU were expected".to_owned(),
        ),
        (
            format!("echo '0, {FIRST}'"),
            format!("`./nvidia-smi` printed `0, {FIRST}` where 3 values of a GPU were expected"),
        ),
        (format!("echo '0, {FIRST}, 1'; echo '0, {SECOND}, 1'"), "`./nvidia-smi` lists GPU `0` twice".to_owned()),
        (
            "head -c 10000000 /dev/zero | tr '\\0' 1".to_owned(),
            "`./nvidia-smi` printed more than 65536 bytes".to_owned(),
        ),
        (
            "echo 'Field \"uuid\" is not a valid field to query.'; exit 2".to_owned(),
            "`./nvidia-smi` does not know `uuid`".to_owned(),
        ),
    ] {
        assert_eq!(StandIn::new(&script).ask(NvidiaField::Temperature, &[]).await, Err(expected), "{script}");
    }
    let stand_in = StandIn::new("");
    let mut none = stand_in.cards(&[]);
    none.command = vec!["no-such-nvidia-smi".to_owned()];
    let failure = none.ask(&BTreeSet::from([NvidiaField::Power])).await.expect_err("no program");
    assert!(failure.ends_with("install it, or put its folder on PATH"), "{failure}");
}
