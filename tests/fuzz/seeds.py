#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets into tests/fuzz/corpus: the wire cases, and the contracts and cases of the repository.

A seed of `reply` is eight bytes of choices and the body; fuzz_targets/reply.rs reads the same order. Seeds are made, not
committed, so that they are always those of the corpus.
"""

import base64
import json
import pathlib
import re
import struct

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONTENT_TYPES = [
    None,
    "text/event-stream",
    "application/json",
    "application/x-ndjson",
    "text/html",
    "audio/wav",
    "audio/pcm",
    "text/plain",
]
STATUSES = [200, 101, 400, 503]
COMPLETE, BROKEN, TIMED_OUT, CLOSED = 0, 1, 2, 4


def adapters():
    """The wire names of the protocols, in the order of `Protocol::ALL`."""
    source = (ROOT / "src/observe/protocol.rs").read_text(encoding="utf-8")
    order = re.findall(r"Self::(\w+)", re.search(r"const ALL.*?\];", source, re.S)[0])
    names = dict(re.findall(r'Self::(\w+) => "(\w+)"', re.search(r"fn adapter.*?\n    }", source, re.S)[0]))
    return [names[variant] for variant in order]


def reply(case, protocols):
    """The seed of one wire case."""
    kind = {key.lower(): value for key, value in case.get("headers", {}).items()}.get("content-type")
    kind = kind and kind.split(";")[0].strip()
    ends = {"hang": TIMED_OUT, "reset": BROKEN, "truncated": BROKEN, "clean": COMPLETE}
    status = case["status"] if case["status"] == 101 else 503 if (case["status"] or 200) >= 400 else 200
    frames = [write for write in case["chunks"] if write.get("op", "text") in ("text", "binary", "cont")]
    bodies = [base64.b64decode(write.get("b64", "")) for write in frames]
    choices = [
        protocols.index(case["adapter"]),
        CONTENT_TYPES.index(kind) if kind in CONTENT_TYPES else 0,
        STATUSES.index(status),
        CLOSED if any(write.get("op") == "close" for write in case["chunks"]) else ends[case["ends"]],
        0,
        6,
        40,
        2,
    ]
    # A message of a WebSocket is a line.
    return bytes(choices) + (b"\n" if status == 101 else b"").join(bodies)


def wav(size, before=b""):
    """The seed of a WAV file whose data chunk says to be of this size, with other chunks before it."""
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 24_000, 48_000, 2, 16)
    file = b"WAVE" + before + form + b"data" + struct.pack("<I", size) + bytes(range(100)) * 2
    return bytes([5, 1, 40, 2]) + b"RIFF" + struct.pack("<I", len(file)) + file


def main():
    protocols = adapters()
    seeds = {"reply": {}, "wav": {}, "contract": {}, "cases": {}}
    seeds["wav"] = {
        "plain": wav(200),
        "streamed": wav(0xFFFFFFFF),
        "cut": wav(1000),
        "tagged": wav(200, b"LIST" + struct.pack("<I", 5) + b"INFO!\0"),
    }
    for path in sorted((ROOT / "tests/fixtures/wire").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        seeds["reply"][path.stem] = reply(case, protocols)
    for path in [*ROOT.glob("examples/**/*.*"), *ROOT.glob("tests/real/*.*")]:
        if path.suffix in (".yaml", ".json"):
            target = "cases" if "cases" in path.stem else "contract"
            seeds[target]["-".join(path.relative_to(ROOT).parts)] = path.read_bytes()
    for target, entries in seeds.items():
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in entries.items():
            (folder / name).write_bytes(content)
        print(f"{target}: {len(entries)} seeds in {folder}")


if __name__ == "__main__":
    main()
