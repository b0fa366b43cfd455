"""Records in and out of text: what is printed can be read again, and bad input names its line."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.cli.output import CommandError
from runnel.cli.record_input import (
    RECORD_BYTES_MAX,
    Template,
    entry_of_json,
    entry_of_line,
    lines_of,
)
from runnel.cli.record_text import json_line, shower, time_text
from runnel.native.columns import Record

DATA = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
RECORDS = st.builds(
    Record,
    key=DATA,
    value=DATA,
    timestamp=st.integers(-1, (1 << 63) - 1),
    headers=st.lists(st.tuples(st.text(max_size=5), DATA), max_size=3),
    offset=st.just(-1),
)


@given(RECORDS, st.integers(0, 9))
def test_json_is_read_as_it_was_printed(record: Record, partition: int) -> None:
    line = json_line("topic", partition, record)
    assert line.count(b"\n") == 1
    entry = entry_of_json(line, 1, Template())
    assert entry.partition == partition
    assert entry.record == record._replace(headers=list(record.headers))


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ("value", b"a\xff\nb\n"),
        ("%k|%v|%s", b"NULL|a\xff\nb|a\xff\nb"),
        ("%t-%p@%o %T%%\\t%K,%S\\n", b"topic-3@7 1000%\t-1,4\n"),
        ("%h", b"h=1,h=NULL"),
    ],
)
def test_formats(how: str, shown: bytes) -> None:
    record = Record(None, b"a\xff\nb", 1000, [("h", b"1"), ("h", None)], offset=7)
    assert shower(how, "topic", "NULL", on_terminal=False)(3, record) == shown


def test_a_terminal_is_told_of_control_characters_and_does_not_get_them() -> None:
    show = shower("value", "topic", "NULL", on_terminal=True)
    assert show(0, Record(None, b"\x1b[2J\r\ta\n")) == b"\\x1b[2J\\r\ta\n\n"


def test_times() -> None:
    assert time_text(-1) == ""
    assert time_text(1_767_225_600_001) == "2026-01-01T00:00:00.001Z"
    assert time_text((1 << 63) - 1) == f"@{(1 << 63) - 1}"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ([], "it is no object"),
        ({"valeu": "v"}, "there is no field 'valeu'"),
        ({"key": {"base64": "?"}}, "line 3 is no record"),
        ({"headers": "h"}, "headers are"),
        ({"headers": [["h"]]}, "headers are"),
        ({"timestamp": "now"}, "timestamp is 'now'"),
        ({"timestamp": 1 << 63}, "timestamp is"),
        ({"partition": -1}, "partition is -1"),
        ({"partition": True}, "partition is True"),
    ],
)
def test_json_that_is_no_record(fields: object, why: str) -> None:
    with pytest.raises(CommandError, match=r"line 3 is no record") as raised:
        entry_of_json(json.dumps(fields).encode(), 3, Template())
    assert why in str(raised.value)


def test_what_the_template_gives() -> None:
    template = Template(key=b"k", headers=[("h", b"1")], timestamp_ms=5, partition=2, null=b"-")
    entry = entry_of_line(b"v", 1, template)
    assert entry.record == Record(b"k", b"v", 5, [("h", b"1")]) and entry.partition == 2
    assert entry_of_line(b"-", 1, template).record.value is None
    assert entry_of_json(b'{"value": "v", "key": null}', 1, template).record.key is None
    assert entry_of_json(b'{"value": "v"}', 1, template).record == entry.record


def test_lines_across_chunks_and_one_without_an_end() -> None:
    reading, writing = os.pipe()
    lines = lines_of(reading)
    os.write(writing, b"a\nb")
    assert next(lines) == [b"a"]
    assert next(lines) == []  # nothing more is there just now
    os.write(writing, b"c\r\n\nd")
    assert next(lines) == [b"bc", b""]
    os.close(writing)
    assert next(lines) == [b"d"]
    assert next(lines, None) is None
    os.close(reading)


def test_a_line_without_end_has_a_limit() -> None:
    fd = os.open("/dev/zero", os.O_RDONLY)
    with pytest.raises(CommandError, match=f"longer than {RECORD_BYTES_MAX >> 20} MiB"):
        for _ in lines_of(fd):
            pass
    os.close(fd)
