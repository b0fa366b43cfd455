"""`runnel produce` and `runnel consume` as a user pipes them; librdkafka as the other side."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.command import Runnel, command
from tests.support.process import BrokerProcess

FOLLOW_TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def runnel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runnel]:
    folder: Path = tmp_path_factory.mktemp("cli")
    with BrokerProcess(folder / "data", settings={"num.partitions": "3"}) as broker:
        yield Runnel(broker.bootstrap, cwd=folder)


def test_lines_in_lines_out(runnel: Runnel) -> None:
    done = runnel.process("produce", "lines", "--partition", "1", stdin="one\ntwo\r\n\nlast")
    assert (
        done.status == 0 and done.out == "" and done.err.startswith("sent 4 records, 10 bytes in ")
    )
    assert runnel.process("consume", "lines").out == "one\ntwo\n\nlast\n"
    assert runnel("consume", "lines", "--partition", "0").out == ""


def test_keys_headers_nulls_and_time_reach_librdkafka(runnel: Runnel) -> None:
    runnel(
        *("produce", "rich", "--key-separator", ":", "--null", "-", "--header", "h=1"),
        *("--header", "h=2", "--timestamp", "@1234567890123", "--partition", "2"),
        *("--compression", "zstd"),
        stdin="k:v:w\nk:-\n",
    )
    settings = {"bootstrap.servers": runnel.bootstrap, "group.id": "unused"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition("rich", 2, 0)])
    messages = consumer.consume(2, timeout=20)
    consumer.close()
    assert [(m.key(), m.value()) for m in messages] == [(b"k", b"v:w"), (b"k", None)]
    assert [m.timestamp()[1] for m in messages] == [1234567890123] * 2
    assert messages[0].headers() == [("h", b"1"), ("h", b"2")]


def test_a_key_goes_where_the_java_client_puts_it(runnel: Runnel) -> None:
    """librdkafka has that partitioner too, under the name murmur2."""
    keys = [f"key-{number}" * (number % 4 + 1) for number in range(40)] + ["ä", "", "ab", "abc"]
    producer = Producer({"bootstrap.servers": runnel.bootstrap, "partitioner": "murmur2"})
    runnel("topic", "create", "theirs", "--partitions", "7")
    runnel("topic", "create", "ours", "--partitions", "7")
    for key in keys:
        producer.produce("theirs", key=key, value=b"v")
    assert producer.flush(20) == 0
    runnel("produce", "ours", "-K", "|", stdin="".join(f"{key}|v\n" for key in keys))
    placed = [
        sorted(runnel("consume", topic, "--format", "%p %k\\n").out.splitlines())
        for topic in ("theirs", "ours")
    ]
    assert placed[0] == placed[1] and len(placed[0]) == len(keys)


def test_json_comes_back_as_it_went(runnel: Runnel) -> None:
    records = [
        {"key": "k", "value": "v", "partition": 0, "timestamp": 1000, "headers": {"a": "b"}},
        {"key": None, "value": {"nested": [1, None]}, "partition": 1, "timestamp": 2000},
        {"key": {"base64": "//79"}, "value": None, "partition": 2, "timestamp": 3000},
    ]
    lines = "\n".join(json.dumps(record) for record in records)
    sent = runnel("produce", "asJson", "--format", "json", "--json", stdin=lines).json
    assert (sent["records"], sent["next_offsets"]) == (3, {"0": 1, "1": 1, "2": 1})
    first = runnel("consume", "asJson", "--json")
    by_partition = {row["partition"]: row for row in first.json_lines}
    assert by_partition[0]["headers"] == [["a", "b"]]
    assert by_partition[1]["value"] == '{"nested":[1,null]}'
    assert by_partition[2]["key"] == {"base64": "//79"} and by_partition[2]["value"] is None
    runnel("produce", "again", "--format", "json", stdin=first.out)
    again = {row["partition"]: row for row in runnel("consume", "again", "--json").json_lines}
    assert again == {at: {**row, "topic": "again"} for at, row in by_partition.items()}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_raw_bytes_in_every_compression(runnel: Runnel, tmp_path: Path, codec: str) -> None:
    picture = tmp_path / "picture"
    picture.write_bytes(os.urandom(3000) + b"\n" * 3000)
    topic = f"raw-{codec}"
    runnel("produce", topic, "--file", str(picture), "--format", "raw", "--compression", codec)
    out = subprocess.run(
        command("consume", topic, "--format", "%v"),
        env=runnel.environment(),
        capture_output=True,
        check=True,
    ).stdout
    assert out == picture.read_bytes()


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_many_records_in_order(runnel: Runnel, acks: str) -> None:
    """More than one batch, one request; with every kind of acknowledgement."""
    lines = "".join(f"{number} {'x' * 100}\n" for number in range(20_000))
    sent = runnel("produce", f"many{acks}", "-p", "0", "--acks", acks, "--json", stdin=lines).json
    assert sent["records"] == 20_000
    deadline = time.monotonic() + 20  # nobody has promised anything for acks 0
    while (read := runnel("consume", f"many{acks}").out) != lines:
        assert acks == "0" and time.monotonic() < deadline, len(read)


def test_batches_larger_than_the_topic_takes_are_parted(runnel: Runnel) -> None:
    runnel("topic", "create", "small", "--config", "max.message.bytes=2000")
    lines = "".join(f"{number:0100d}\n" for number in range(200))
    runnel("produce", "small", stdin=lines)
    assert runnel("consume", "small").out == lines
    done = runnel.inside("produce", "small", stdin="x" * 3000)
    assert done.status == 2 and "max.message.bytes" in done.err


def test_places(runnel: Runnel) -> None:
    """By offset, from the end, by time; ends; counts."""
    lines = "".join(
        json.dumps({"value": str(number), "timestamp": 1000 * number}) + "\n"
        for number in range(10)
    )
    runnel("topic", "create", "places", "--partitions", "1")
    runnel("produce", "places", "--format", "json", stdin=lines)

    def read(*arguments: str) -> str:
        return runnel("consume", "places", *arguments).out.replace("\n", "")

    assert read() == "0123456789"
    assert read("--from", "7") == "789"
    assert read("--from", "-2") == "89"
    assert read("--from", "latest") == ""
    assert read("--from", "@3000", "--until", "@5001") == "345"
    assert read("--from", "1970-01-01T00:00:08Z") == "89"
    assert read("--from", "beginning", "--until", "2") == "01"
    assert read("--from", "8", "--until", "99") == "89"  # to the end, not until more comes
    assert read("--from", "98", "--until", "99") == ""
    assert read("--from", "8", "--until", "99", "--committed") == "89"
    assert read("--from", "1960-01-01", "--until", "2") == "01"
    assert read("--from", "-1h") == ""
    assert read("--count", "3") == "012"
    assert read("--from", "4", "--format", "%o=%v@%T ", "-n", "2") == "4=4@4000 5=5@5000 "
    table = runnel("consume", "places", "--format", "table", "-n", "1").out.splitlines()
    assert table[0].split() == ["PARTITION", "OFFSET", "TIME", "KEY", "VALUE"]
    assert table[1].split() == ["0", "0", "1970-01-01T00:00:00.000Z", "NULL", "0"]


def test_follow_shows_what_comes_and_ends_quietly(runnel: Runnel) -> None:
    runnel("topic", "create", "live", "--partitions", "1")
    following = subprocess.Popen(
        command("consume", "live", "--follow"),
        env=runnel.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    typing = subprocess.Popen(
        command("produce", "live"),
        env=runnel.environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None and typing.stdin is not None
    for word in ("first", "second"):  # each is sent before the next is typed
        typing.stdin.write(word + "\n")
        typing.stdin.flush()
        assert following.stdout.readline() == word + "\n"
    typing.communicate(timeout=FOLLOW_TIMEOUT_S)
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=FOLLOW_TIMEOUT_S)
    assert (following.returncode, out, err) == (130, "", "")
    assert typing.returncode == 0


def test_a_broker_that_comes_back_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Killed while one command sends and another follows: both find it again."""
    with BrokerProcess(tmp_path / "data", settings={"runnel.durability": "ack"}) as broker:
        runnel = Runnel(broker.bootstrap)
        runnel("topic", "create", "back", "--partitions", "1")
        options = {"env": runnel.environment(), "stderr": subprocess.PIPE, "text": True}
        sending = subprocess.Popen(command("produce", "back"), stdin=subprocess.PIPE, **options)  # type: ignore[call-overload]  # passed on
        following = subprocess.Popen(
            command("consume", "back", "-f", "--count", "400"), stdout=subprocess.PIPE, **options
        )  # type: ignore[call-overload]  # passed on
        for number in range(400):
            sending.stdin.write(f"{number}\n")
            sending.stdin.flush()
            if number in (100, 250):
                assert following.stdout.readline()  # both are at work
                broker.kill()
                broker.start()
        _, err = sending.communicate(timeout=FOLLOW_TIMEOUT_S)
        assert sending.returncode == 0, err
        out = following.stdout.read()
        assert following.wait(FOLLOW_TIMEOUT_S) == 0, following.stderr.read()
        following.stdout.close()
        following.stderr.close()
        assert out.split() == [str(number) for number in range(2, 400)]


def test_a_reader_that_leaves_is_no_error_to_tell(runnel: Runnel) -> None:
    runnel("produce", "long", stdin="line\n" * 200_000)
    leaving = subprocess.Popen(
        command("consume", "long"),
        env=runnel.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert leaving.stdout is not None and leaving.stderr is not None
    assert leaving.stdout.readline() == b"line\n"
    leaving.stdout.close()
    assert leaving.stderr.read() == b""
    leaving.stderr.close()
    assert leaving.wait(FOLLOW_TIMEOUT_S) == 1


@pytest.mark.parametrize(
    ("arguments", "said", "advice"),
    [
        (["produce", "t", "--key", "a", "--key-separator", ":"], "contradict", "leave one out"),
        (["produce", "t", "--file", "/no/such"], "No such file", "Name a file"),
        (["produce", "t", "--file", "/"], "Is a directory", "Name a file"),
        (["produce", "\udcff"], "not UTF-8", "names have to be"),
        (["produce", "t", "--header", "h"], "--header wants NAME=VALUE", "not 'h'"),
        (["produce", "t", "--timestamp", "soon"], "'soon' is no time", "write 2026"),
        (["produce", "t", "--compression", "rar"], "rar", "--help"),
        (["consume", "absent"], "there is no topic absent", "'runnel topic list'"),
        (["consume", "t", "--from", "noon"], "'noon' is no place", "write 'beginning'"),
        (["consume", "t", "--format", "xml"], "'xml' is none", "write value, json, table"),
        (["consume", "t", "--format", "%x"], "there is no %x", "%k"),
        (["consume", "t", "--follow", "--until", "5"], "contradict", "leave one out"),
        (["consume", "t", "--partition", "9"], "topic t has no partition 9; it has 3", "topic"),
    ],
)
def test_refusals(runnel: Runnel, arguments: list[str], said: str, advice: str) -> None:
    runnel.inside("topic", "create", "t", "--if-not-exists")
    done = runnel.inside(*arguments)
    assert done.status == 2, done
    assert done.out == "" and done.err.count("\n") == 1
    assert said in done.err and advice in done.err


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["--format", "json"], '{"value": "sent"}\n{oops', "line 2 is no record"),
        (["--format", "json"], '{"value": "sent"}\n{"valu": 1}', "there is no field 'valu'"),
        (["--key-separator", ":"], "k:sent\nno key", "line 2 has no ':'"),
        (["--format", "json"], '{"value": "sent"}\n{"partition": 99}', "has no partition 99"),
    ],
)
def test_a_bad_line_is_named_and_those_before_it_are_sent(
    runnel: Runnel, arguments: list[str], stdin: str, said: str
) -> None:
    topic = f"bad-{abs(hash(stdin))}"
    done = runnel.inside("produce", topic, *arguments, stdin=stdin)
    assert done.status == 1 and said in done.err and done.err.count("\n") == 1
    assert done.err.endswith(" Sent before it: 1 record.\n")
    assert runnel("consume", topic).out == "sent\n"


def test_a_refusal_before_which_nothing_was_sent_has_changed_nothing(runnel: Runnel) -> None:
    runnel("topic", "create", "unchanged", "--partitions", "3")
    for line in ("{oops", '{"partition": 3}'):
        done = runnel.inside("produce", "unchanged", "--format", "json", stdin=line)
        assert done.status == 2 and "ent before" not in done.err
    assert runnel("consume", "unchanged").out == ""


def test_what_was_written_beside_a_refusal_counts(runnel: Runnel) -> None:
    runnel("topic", "create", "beside", "-p", "2", "--config", "max.message.bytes=2000")
    lines = [{"value": "x" * 3000, "partition": 0}, {"value": "small", "partition": 1}]
    stdin = "\n".join(map(json.dumps, lines))
    done = runnel.inside("produce", "beside", "--format", "json", stdin=stdin)
    assert done.status == 1 and done.err.endswith(" Sent before it: 1 record.\n"), done
    assert runnel("consume", "beside").out == "small\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["consume", "full"], ["topic", "list"]])
def test_an_output_that_takes_no_more_is_one_line(
    runnel: Runnel, arguments: list[str], unbuffered: str
) -> None:
    runnel("produce", "full", stdin="line\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*arguments),
            env=runnel.environment({"PYTHONUNBUFFERED": unbuffered}),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    said = "runnel: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_an_input_that_cannot_be_read_is_one_line(runnel: Runnel) -> None:
    runnel("topic", "create", "unread")
    for how in ("lines", "raw"):
        done = runnel.inside("produce", "unread", "--file", "/proc/self/mem", "--format", how)
        assert (done.status, done.err) == (
            1,
            "runnel: The input cannot be read: Input/output error.\n",
        )


def test_a_separator_may_be_any_bytes(runnel: Runnel) -> None:
    done = runnel.inside("produce", "bytes", "-K", "\udcff", stdin="abc\n")
    assert done.status == 2 and done.err == (
        "runnel: line 1 has no '\\udcff' between key and value.\n"
    )


def test_an_offset_beyond_the_end_is_told_with_those_there_are(runnel: Runnel) -> None:
    runnel("topic", "create", "beyond", "--partitions", "1")
    runnel("produce", "beyond", stdin="a\nb\n")
    done = runnel.inside("consume", "beyond", "-p", "0", "--from", "99", "--follow")
    assert done.status == 2
    assert "partition 0 of beyond has no offset 99; it has 0 to 2." in done.err
