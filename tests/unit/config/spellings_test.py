"""Familiar spellings, where each came from, and what happens when two of them disagree."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from runnel.config.definition import ConfigError
from runnel.config.registry import BROKER
from runnel.config.settings import load
from runnel.config.spellings import ADDRESS, ADVERTISED, FAMILIAR, HOST, PORT, VARIABLES


def given(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Mapping[str, str]:
    return load(flags or {}, environ or {}, file)[0].given


@pytest.mark.parametrize(
    ("spelling", "text", "name", "expected"),
    [
        ("broker_id", "5", "broker.id", "5"),
        ("node_id", "5", "node.id", "5"),
        ("replication_factor", "2", "default.replication.factor", "2"),
        ("min_insync_replicas", "2", "min.insync.replicas", "2"),
        ("log_retention_hours", "3", "log.retention.hours", "3"),
        ("default_partitions", "4", "num.partitions", "4"),
        ("retention_ms", "6", "log.retention.ms", "6"),
        ("retention-seconds", "6", "log.retention.ms", "6000"),
        ("retention_seconds", "-1", "log.retention.ms", "-1"),
        ("max_message_size", "7", "message.max.bytes", "7"),
        ("max_connections", "8", "max.connections", "8"),
        ("request_timeout_ms", "9", "runnel.frame.timeout.ms", "9"),
        ("durability", "os", "runnel.durability", "os"),
        ("log_level", "WARN", "runnel.log.level", "warning"),
        ("server.host", "h", "listeners", "PLAINTEXT://h:9092"),
        ("server.port", "1", "listeners", "PLAINTEXT://127.0.0.1:1"),
        ("server.address", "[::1]:5", "listeners", "PLAINTEXT://[::1]:5"),
        ("server.max_connections", "8", "max.connections", "8"),
        ("broker.id", "3", "broker.id", "3"),
        ("broker.default_partitions", "3", "num.partitions", "3"),
        ("log.retention_hours", "3", "log.retention.hours", "3"),
        ("log.segment_bytes", "2000000", "log.segment.bytes", "2000000"),
        ("storage.type", "in_memory", "runnel.storage", "memory"),
        ("storage.data_dir", "d", "log.dirs", "d"),
        ("storage.retention_bytes", "5", "log.retention.bytes", "5"),
        ("network.request_timeout_ms", "5", "runnel.frame.timeout.ms", "5"),
        ("network.socket.request.max.bytes", "5", "socket.request.max.bytes", "5"),
        ("logging.level", "debug", "runnel.log.level", "debug"),
        ("logging.file", "f", "runnel.log.file", "f"),
    ],
)
def test_a_familiar_spelling_sets_what_it_means(
    tmp_path: Path, spelling: str, text: str, name: str, expected: str
) -> None:
    """In every kind of file, nested where it has a section, and as a flag."""
    section, dot, inner = spelling.rpartition(".")
    assert given({spelling: text}) == {name: expected}
    nested = f"{section}:\n  {inner}: '{text}'\n" if dot else f"{spelling}: '{text}'\n"
    for suffix, content in (
        ("yaml", nested),
        ("properties", f"{spelling}={text}\n"),
        ("json", f'{{"{spelling}": "{text}"}}'),
    ):
        file = tmp_path / f"broker.{suffix}"
        file.write_text(content)
        assert given(file=file) == {name: expected}, suffix


def test_every_spelling_means_a_setting_that_there_is() -> None:
    for meant in (*FAMILIAR.values(), *VARIABLES.values()):
        assert meant.name in BROKER or meant.name in (HOST, PORT, ADDRESS, ADVERTISED)


def test_variables_of_containers() -> None:
    environ = {"NODE_ID": "4", "HOST": "0.0.0.0", "KAFKA_PORT": "7", "DATA_DIR": "d"}
    settings, warnings = load({}, {**environ, "AUTO_CREATE_TOPICS": "false"}, None)
    assert str(settings.listeners[0]) == "PLAINTEXT://0.0.0.0:7"
    assert (settings.node_id, settings.log_dirs) == (4, ("d",))
    assert not settings.auto_create_topics_enable
    assert "variable HOST is used, it sets the host to listen on" in warnings
    assert len(warnings) == 5, "who did not mean them can see that they count"


def test_ours_win_over_plain_variables_and_flags_over_both() -> None:
    environ = {"HOST": "laptop", "RUNNEL_HOST": "::1", "KAFKA_PORT": "7", "RUNNEL_PORT": "8"}
    assert given({}, environ) == {"listeners": "PLAINTEXT://[::1]:8"}
    assert given({"--port": "9"}, environ) == {"listeners": "PLAINTEXT://[::1]:9"}
    listeners = "PLAINTEXT://x:1"
    assert given({"listeners": listeners}, environ) == {"listeners": listeners}


def test_a_later_source_wins_under_whatever_name(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("log.retention.ms: 1\nbroker_id: 1\nlog.dir: a\nlisteners: PLAINTEXT://a:1\n")
    flags = {"log.retention.hours": "2", "node.id": "2", "log.dirs": "b", "--port": "5"}
    settings = load(flags, {}, file)[0]
    assert settings.log.retention_ms == 7_200_000
    assert (settings.node_id, settings.log_dirs) == (2, ("b",))
    assert str(settings.listeners[0]) == "PLAINTEXT://127.0.0.1:5"


def test_two_spellings_that_disagree_are_both_named(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("num.partitions: 1\n\ndefault_partitions: 2\n")
    with pytest.raises(ConfigError) as raised:
        load({}, {}, file)
    assert str(raised.value) == (
        f"num.partitions ({file}, line 1) and default_partitions ({file}, line 3) both set"
        " num.partitions, to '1' and '2'; remove one of them"
    )
    file.write_text("num.partitions: 2\n\ndefault_partitions: 2\n")
    assert given(file=file) == {"num.partitions": "2"}


@pytest.mark.parametrize(
    ("flags", "environ", "named"),
    [
        ({"--address": "a:1", "--port": "2"}, {}, ["--address", "--port", "'1' and '2'"]),
        ({"--port": "2", "listeners": "PLAINTEXT://:1"}, {}, ["--port", "--set listeners"]),
        ({"--retention-seconds": "1", "log.retention.ms": "5"}, {}, ["--retention-seconds"]),
        ({}, {"RUNNEL_DURABILITY": "os", "RUNNEL_RUNNEL_DURABILITY": "ack"}, ["'os' and 'ack'"]),
        ({"ssl.key.password": "s3cret", "ssl_key_password": "hunter2"}, {}, ["ssl.key.password"]),
    ],
)
def test_contradictions(
    flags: Mapping[str, str], environ: Mapping[str, str], named: list[str]
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(flags, environ, None)
    for word in [*named, "remove one of them"]:
        assert word in str(raised.value)
    assert "s3cret" not in str(raised.value) and "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("a.yaml", "log:\n  dir: x\n  retenton_ms: 5\n", "a.yaml, line 3"),
        ("a.properties", "# c\nlog.dir=a\\\n  b\nlog.retenton_ms=5\n", "a.properties, line 4"),
        ("a.json", '{"log": {"dir": "x",\n "retenton_ms": 5}}', "a.json, line 2"),
    ],
)
def test_an_unknown_name_is_told_with_its_line(
    tmp_path: Path, name: str, text: str, where: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=f"{where}; did you mean log.retention.ms") as raised:
        load({}, {}, tmp_path / name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        ({"--host": "a", "--port": "x"}, {}, "'x' is not a port"),
        ({"--address": "localhost"}, {}, "flag --address: 'localhost' is not an address"),
        ({"--retention-seconds": "1h"}, {}, "flag --retention-seconds: '1h' is not a number"),
        ({"default_partitons": "1"}, {}, "in --set.*did you mean default_partitions"),
        ({}, {"RUNNEL_DURABILTY": "os"}, "'RUNNEL_DURABILTY' in .*did you mean runnel.durability"),
        ({"storage.type": "tape"}, {}, "runnel.storage"),
    ],
)
def test_a_mistake_is_named_as_it_was_written(
    flags: Mapping[str, str], environ: Mapping[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(flags, environ, None)


def test_a_yaml_bomb_and_its_secrets(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    levels = [
        f"a{n}: &a{n} {{{', '.join(f'x{i}: *a{n - 1}' for i in range(9))}}}" for n in range(1, 9)
    ]
    file.write_text("\n".join(["a0: &a0 {x: 1}", *levels]))
    with pytest.raises(ConfigError, match="more than 10000 values"):
        load({}, {}, file)
    file.write_text("ssl.key.password: s3cret: [")
    with pytest.raises(ConfigError, match=r"is not YAML: .*line 1") as raised:
        load({}, {}, file)
    assert "s3cret" not in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("host", "listeners", "told"),
    [
        ("broker.example", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://broker.example:9092"),
        ("broker.example:29092", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://broker.example:29092"),
        ("2001:db8::7", "PLAINTEXT://[::]:9092", "PLAINTEXT://[2001:db8::7]:9092"),
        ("[2001:db8::7]:1", "PLAINTEXT://[::]:9092", "PLAINTEXT://[2001:db8::7]:1"),
        ("broker.example", "PLAINTEXT://0.0.0.0:0", "PLAINTEXT://broker.example:0"),
    ],
)
def test_the_host_that_clients_are_told(host: str, listeners: str, told: str) -> None:
    for spelling in ("--advertised-host", "advertised_host"):
        found, _ = load({spelling: host, "listeners": listeners}, {}, None)
        assert [str(each) for each in found.advertised_listeners] == [told]
    found, _ = load({}, {"RUNNEL_ADVERTISED_HOST": host, "RUNNEL_LISTENERS": listeners}, None)
    assert [str(each) for each in found.advertised_listeners] == [told]


def test_the_host_that_clients_are_told_must_be_plain() -> None:
    several = "A://:1,B://:2"
    protocols = "A:PLAINTEXT,B:PLAINTEXT"
    with pytest.raises(ConfigError, match=r"name the address of each in advertised\.listeners"):
        load(
            {
                "--advertised-host": "x",
                "listeners": several,
                "listener.security.protocol.map": protocols,
            },
            {},
            None,
        )
    with pytest.raises(ConfigError, match="both say what clients are told"):
        load({"--advertised-host": "x", "advertised.listeners": "PLAINTEXT://y:1"}, {}, None)
    later, _ = load(
        {"--advertised-host": "x"}, {"RUNNEL_ADVERTISED_LISTENERS": "PLAINTEXT://y:1"}, None
    )
    assert str(later.advertised_listeners[0]) == "PLAINTEXT://x:9092", "a flag wins"
