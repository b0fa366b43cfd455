"""What Runnel writes or accepts, Kafka's Java must read, and as the same records.

Run as `python -m tests.compat.records.records_suite`; needs Maven and Java 17. Sound batches of
every codec and level go through RecordOracle.java, and so do thousands of damaged ones: if
`validate` accepts a batch, a Java consumer must get the records that `decode` gives. That Runnel
refuses some batches which Kafka reads is no fault; they are counted.
"""

import base64
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runnel.errors import RunnelError
from runnel.native import records
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode
from runnel.wire.batch import HEADER_SIZE, BatchHeader
from tests.support.kafka_tools import class_path

ORACLE = Path(__file__).parents[1] / "java-records"
LEVELS: dict[Compression, list[int | None]] = {
    Compression.NONE: [None],
    Compression.GZIP: [None, -1, 1, 9],
    Compression.SNAPPY: [None],
    Compression.LZ4: [None, 1, 9, 12, 17],
    Compression.ZSTD: [None, -5, 1, 3, 22],
}
DAMAGED = 6000
TIMEOUT_S = 300.0
NO_LIMIT = 1 << 30


def read_by_java(batches: Iterable[bytes]) -> list[dict[str, Any]]:
    command = ["java", "-Xmx512m", "-cp", class_path(ORACLE / "pom.xml")]
    lines = "".join(base64.b64encode(batch).decode() + "\n" for batch in batches)
    done = subprocess.run(
        [*command, str(ORACLE / "RecordOracle.java"), "read"],
        input=lines,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_by_runnel(batch: bytes) -> list[dict[str, Any]] | None:
    """In the oracle's words, or None for a batch that a client could not produce."""
    try:
        records.validate(batch, require_keys=False)
        found = records.decode(batch, max_records=NO_LIMIT, max_bytes=NO_LIMIT, control=True)
    except RunnelError:
        return None
    return [_in_json(record) for record in found.rows()]


def _in_json(record: Record) -> dict[str, Any]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else base64.b64encode(value).decode()

    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[key, text(value)] for key, value in record.headers],
    }


def made_up(chance: random.Random, count: int) -> list[Record]:
    def some(size: int) -> bytes | None:
        return chance.choice([None, b"", chance.randbytes(size), b"text " * (size // 5)])

    return [
        Record(
            some(20),
            some(300),
            chance.choice([-1, 0, 1_700_000_000_000 + chance.randint(-5000, 5000)]),
            [(f"h\u00e9-{index}", some(9)) for index in range(chance.choice([0, 0, 1, 3]))],
        )
        for _ in range(count)
    ]


def sound(chance: random.Random) -> list[bytes]:
    out = []
    for codec, levels in LEVELS.items():
        for level in levels:
            for count in (1, 7, 2000):
                made = made_up(chance, count)
                # Java refuses to read a base timestamp below -1, and has no use for it.
                made[0] = made[0]._replace(timestamp=1_700_000_000_000)
                out.append(bytes(encode(made, codec=codec, level=level, base_offset=count)))
    return out


def damaged(chance: random.Random) -> list[bytes]:
    out = []
    codecs = list(Compression)
    for index in range(DAMAGED):
        # Half of them uncompressed, where damage reaches the records themselves.
        codec = codecs[index % 5] if index % 2 else Compression.NONE
        batch = encode(made_up(chance, chance.randint(1, 3)), codec=codec)
        header, payload = BatchHeader.read(batch), batch[HEADER_SIZE:]
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(len(payload) + 1)
            new = bytes([chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])])
            payload[at : at + chance.choice([0, 1, 1, 1, 1])] = chance.choice([new, new, new, b""])
        out.append(bytes(header.write(payload)))
    return out


def main() -> int:
    chance = random.Random(4)
    counts: Counter[str] = Counter()
    faults = []
    groups = {"sound": sound(chance), "damaged": damaged(chance)}
    for name, batches in groups.items():
        for batch, java in zip(batches, read_by_java(batches), strict=True):
            ours = read_by_runnel(batch)
            theirs = None if "error" in java else [r for b in java["batches"] for r in b["records"]]
            if ours is None and name == "damaged":
                counts[f"{name}, refused by {'both' if theirs is None else 'Runnel alone'}"] += 1
            elif ours is not None and ours == theirs:
                counts[f"{name}, read alike"] += 1
            else:
                faults.append((name, base64.b64encode(batch).decode(), java.get("error")))
    for what, count in sorted(counts.items()):
        print(f"{count}\t{what}")
    for fault in faults[:5]:
        print("fail", *fault, sep="\t")
    print(f"{len(faults)}\tfaults")
    return 1 if faults or not counts["damaged, read alike"] else 0


if __name__ == "__main__":
    sys.exit(main())
