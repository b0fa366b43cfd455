"""`runnel storage` as a person or a program calls it, on folders that Kafka 4.3 wrote."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runnel.cli.app import main
from tests.support import kafka_folders
from tests.support.process import environment


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kafka_folders.unpack(tmp_path_factory.mktemp("kafka-folder"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> "Run":
    return Run(capsys)


class Run:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: object, status: int = 0) -> str:
        assert main(["storage", *map(str, arguments)]) == status
        said = self._capsys.readouterr()
        self.err = said.err
        return said.out

    def json(self, *arguments: object, status: int = 0) -> Any:  # noqa: ANN401  # as json.loads
        return json.loads(self(*arguments, "--json", status=status))


def test_describe(run: Run, unpacked: Path) -> None:
    said = run("describe", unpacked / "clean")
    assert "cluster id  4L6g3nShT-eMCtK--X86sw" in said
    assert "stopped     cleanly" in said
    row = next(line for line in said.splitlines() if line.startswith("front-deleted-0 "))
    assert row.split()[:6] == ["front-deleted-0", "3", "4.1", "KiB", "23", "40"]
    assert "not cleanly" in run("describe", unpacked / "killed")


def test_describe_segments(run: Run, unpacked: Path) -> None:
    lines = run("describe", unpacked / "killed", "codec-none-0", "--segments").splitlines()
    rows = [line.split() for line in lines if line.startswith("codec-none-0 ")]
    assert [row[1:3] for row in rows] == [["0", "15"], ["15", "30"], ["30", "40"]]
    assert "torn" in lines[-1]


def test_describe_as_json(run: Run, unpacked: Path) -> None:
    document = run.json("describe", unpacked / "clean", "two-partitions")
    assert document["broker_id"] == 1 and document["clean_shutdown"] is True
    assert document["in_use_by"] is None
    assert [p["partition"] for p in document["partitions"]] == [0, 1]
    assert document["partitions"][0]["segments"][0]["base_offset"] == 0


def test_the_folder_of_one_partition_will_do(run: Run, unpacked: Path) -> None:
    said = run("describe", unpacked / "clean" / "codec-none-0")
    assert "codec-none-0" in said and "cluster id" not in said


def test_dump(run: Run, unpacked: Path) -> None:
    log = unpacked / "clean" / "codec-none-0" / "00000000000000000015.log"
    lines = run("dump", log).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("@0 offsets 15-19  5 records  486 bytes  none  create 2023-")
    assert lines[0].endswith("epoch 0  producer 0:0  sequence 15-19  crc ok")
    deep = run("dump", unpacked / "clean", "codec-none-0", "--deep", "--offsets", "16:18")
    records = [line.split()[0] for line in deep.splitlines() if line.startswith("  ")]
    assert records == ["16", "17"]


def test_dump_as_json(run: Run, unpacked: Path) -> None:
    folder = unpacked / "clean"
    said = run("dump", folder, "transactions", "--deep", "--json")
    rows = [json.loads(line) for line in said.splitlines()]
    records = [row for row in rows if row["kind"] == "record"]
    assert [record["offset"] for record in records] == list(range(24))
    assert {record.get("control_type") for record in records} == {None, "abort", "commit"}
    index = run("dump", folder / "codec-none-0" / "00000000000000000015.index", "--json")
    assert [json.loads(line) for line in index.splitlines()] == [
        {"kind": "index", "offset": 24, "position": 486},
        {"kind": "index", "offset": 29, "position": 972},
    ]


@pytest.mark.parametrize("kind", ["clean", "killed"])
def test_every_file_can_be_dumped(run: Run, unpacked: Path, kind: str) -> None:
    unknown = {".kafka_cleanshutdown", ".lock", "quorum-state"}
    for path in (unpacked / kind).rglob("*"):
        if path.is_file():
            status = 1 if path.name in unknown or ".tmp" in path.name else 0
            run("dump", path, status=status)


def test_verify(run: Run, unpacked: Path) -> None:
    said = run("verify", unpacked / "clean", "--deep")
    assert said.startswith("no findings: 15 partitions, 32 segments, 177 batches, 599 records")
    torn = unpacked / "killed" / "codec-none-0" / "00000000000000000030.log"
    lines = run("verify", unpacked / "killed", status=1).splitlines()
    assert lines[0] == f"{torn} at 972: torn: 40 bytes, less than the header of a batch"
    assert lines[1].startswith("1 finding: ")
    document = run.json("verify", unpacked / "killed", status=1)
    assert document["checked"]["findings"] == 1
    assert document["findings"][0]["path"] == str(torn)


def test_analyze(run: Run, unpacked: Path, tmp_path: Path) -> None:
    picture = tmp_path / "sizes.svg"
    said = run(
        "analyze", unpacked / "clean", "codec-zstd", "--by", "header:number", "--top", 3,
        "--retention-ms", 1000, "--plot", picture,
    )  # fmt: skip
    assert "messages         40" in said
    assert "zstd" in said and "HEADER:NUMBER" in said and "SEGMENTS FREED" in said
    kind = next(line for line in said.splitlines() if line.startswith("\\xff "))
    assert kind.split()[1:3] == ["40", "100.0"], "the last header of a name counts, as in Kafka"
    drawn = picture.read_text()
    assert drawn.startswith("<svg ") and "codec-zstd" in drawn and "messages by size" in drawn
    document = run.json("analyze", unpacked / "clean", "codec-zstd", "--retention-bytes", "0")
    assert document["messages"] == 40 and document["freed"]["segments"] == 3
    assert document["codecs"]["zstd"]["ratio"] > 1.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe", "{}/none"], "There is no folder {}/none"),
        (["describe", "{}"], "no data folder"),
        (["describe", "{}/clean", "nobody"], "has no topic or partition nobody; it has:"),
        (["dump", "{}/none"], "neither a folder nor a file"),
        (["dump", "{}/clean"], "Name the topic to dump"),
        (["dump", "{}/clean", "empty", "--offsets", "x"], "--offsets takes FROM:TO"),
        (["analyze", "{}/clean", "--by", "x"], "neither header:NAME nor json:FIELD"),
        (["analyze", "{}/clean", "--plot", "x.png"], "x.svg"),
        (["analyze", "{}/clean", "--retention-ms", "-2"], "--retention-ms"),
    ],
)
def test_misuse_is_one_line(run: Run, unpacked: Path, arguments: list[str], said: str) -> None:
    given = [argument.format(unpacked) for argument in arguments]
    assert run(*given, status=2) == ""
    assert said.format(unpacked) in run.err
    assert run.err.startswith("runnel: ") and run.err.count("\n") == 1


def test_a_reader_that_leaves_is_no_damage_of_the_file(unpacked: Path) -> None:
    """As `head` does; every command that prints line by line meets it."""
    dump = [sys.executable, "-m", "runnel", "storage", "dump", str(unpacked / "clean")]
    done = subprocess.run(
        ["bash", "-c", '"$@" codec-none --deep --json | head -c 1', "bash", *dump],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("{", "")
