//! The one file of an artifact that is read.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use crate::baseline::LARGEST_RECORD;

/// The file with the record.
const FILE: &str = "baseline.json";

/// The most files that an archive may list; each costs memory.
const MOST_FILES: usize = 10_000;

/// The content of the archive's `baseline.json`, in whatever folder it lies. Nothing else is unpacked, and no more of it than a
/// record may have, so that an archive which unpacks to gigabytes costs nothing.
///
/// # Errors
/// What is wrong with the archive, completing "the baseline …".
pub(super) fn record_of(archive: &[u8]) -> Result<Vec<u8>, String> {
    let broken = |error: zip::result::ZipError| format!("lies in an archive that cannot be read: {error}");
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(broken)?;
    if archive.len() > MOST_FILES {
        return Err(format!("lies in an archive of more than {MOST_FILES} files"));
    }
    let names: Vec<String> =
        archive.file_names().map(|name| name.map(Into::into)).collect::<Result<_, _>>().map_err(broken)?;
    let is_record = |name: &&String| name.rsplit(['/', '\\']).next() == Some(FILE);
    let names: Vec<&String> = names.iter().filter(is_record).collect();
    let name = match names.as_slice() {
        [name] => name,
        [] => return Err(format!("is missing: the artifact has no `{FILE}`")),
        more => return Err(format!("is ambiguous: the artifact has {} files of the name `{FILE}`", more.len())),
    };
    let file = archive.by_name(name).map_err(broken)?;
    let mut text = Vec::new();
    file.take(LARGEST_RECORD + 1)
        .read_to_end(&mut text)
        .map_err(|error| format!("cannot be unpacked from its archive: {error}"))?;
    if text.len() as u64 > LARGEST_RECORD {
        return Err(format!("unpacks to more than {} MiB: it is no baseline record", LARGEST_RECORD >> 20));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn the_file_is_found_in_whatever_folder() {
        assert_eq!(record_of(&archive(&[("baseline.json", b"{}")])), Ok(b"{}".to_vec()));
        assert_eq!(record_of(&archive(&[("a.json", b"x"), ("runs/1/baseline.json", b"{}")])), Ok(b"{}".to_vec()));
    }

    /// Made by Info-ZIP's `zip -X - baseline.json | cat`: as upload-artifact writes them, with the sizes behind the content.
    #[test]
    fn an_archive_of_another_program_is_read() {
        let bytes = [
            0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x08, 0x00, 0x08, 0x00, 0x00, 0x00, 0x7e, 0x5d, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x0d, 0x00, 0x00, 0x00, 0x62, 0x61, 0x73, 0x65, 0x6c, 0x69,
            0x6e, 0x65, 0x2e, 0x6a, 0x73, 0x6f, 0x6e, 0xab, 0xae, 0xe5, 0x02, 0x00, 0x50, 0x4b, 0x07, 0x08, 0x06, 0xb0,
            0xa1, 0xdd, 0x05, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x50, 0x4b, 0x01, 0x02, 0x1e, 0x03, 0x14, 0x00,
            0x08, 0x00, 0x08, 0x00, 0x00, 0x00, 0x7e, 0x5d, 0x06, 0xb0, 0xa1, 0xdd, 0x05, 0x00, 0x00, 0x00, 0x03, 0x00,
            0x00, 0x00, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xa4, 0x81, 0x00, 0x00,
            0x00, 0x00, 0x62, 0x61, 0x73, 0x65, 0x6c, 0x69, 0x6e, 0x65, 0x2e, 0x6a, 0x73, 0x6f, 0x6e, 0x50, 0x4b, 0x05,
            0x06, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x3b, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00,
            0x00,
        ];
        assert_eq!(record_of(&bytes), Ok(b"{}\n".to_vec()));
    }

    #[test]
    fn none_or_two_are_a_fault() {
        let missing = Err("is missing: the artifact has no `baseline.json`".to_owned());
        assert_eq!(record_of(&archive(&[])), missing);
        assert_eq!(record_of(&archive(&[("notbaseline.json", b"{}")])), missing);
        let two = Err("is ambiguous: the artifact has 2 files of the name `baseline.json`".to_owned());
        assert_eq!(record_of(&archive(&[("baseline.json", b"{}"), ("b/baseline.json", b"{}")])), two);
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bomb = archive(&[("baseline.json", &vec![0; 64 << 20])]);
        assert!(bomb.len() < 1 << 20, "{}", bomb.len());
        assert_eq!(record_of(&bomb), Err("unpacks to more than 16 MiB: it is no baseline record".to_owned()));
    }

    #[test]
    fn a_broken_archive_is_a_fault_wherever_it_is_broken() {
        let whole =
            archive(&[("baseline.json", br#"{"schema": "goodput-baseline/1", "name": "a name that is long enough"}"#)]);
        for end in 0..whole.len() {
            assert!(record_of(&whole[..end]).is_err(), "cut at {end}");
        }
        // The content's first bytes: what is unpacked no longer has the check sum that the archive says.
        let mut changed = whole;
        changed[30 + "baseline.json".len() + 4] ^= 0xff;
        assert!(record_of(&changed).unwrap_err().starts_with("cannot be unpacked from its archive: "));
    }
}
