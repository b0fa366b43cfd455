"""Where values come from, which one wins, and what a mistake is told."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from runnel.config.definition import ConfigError
from runnel.config.files import parse_properties
from runnel.config.listeners import HttpListener, Listener
from runnel.config.overrides import topic_config, validate_topic_configs
from runnel.config.settings import Settings, load
from runnel.errors import ErrorCode, RunnelError


def settings(**flags: str) -> Settings:
    return load({name.replace("_", "."): text for name, text in flags.items()}, {}, None)[0]


def test_nothing_given_is_the_defaults() -> None:
    found, warnings = load({}, {"PATH": "x"}, None)
    assert warnings == []
    assert found.listeners == (Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)
    assert (found.node_id, found.num_partitions, found.max_connections) == (0, 1, 10_000)
    assert found.socket_request_max_bytes == 104_857_600
    assert found.log.retention_ms == 7 * 24 * 3_600_000


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "runnel.yaml"
    file.write_text("num: {partitions: 2}\nfetch.max.bytes: 2000\nmessage.max.bytes: 2\n")
    environ = {"RUNNEL_FETCH_MAX_BYTES": "3000", "RUNNEL_MESSAGE_MAX_BYTES": "3"}
    found, _ = load({"message.max.bytes": "4"}, environ, file)
    assert found.num_partitions == 2
    assert found.fetch_max_bytes == 3000
    assert found.log.max_message_bytes == 4
    assert found.given["message.max.bytes"] == "4"


def test_the_environment_knows_both_spellings_and_kubernetes() -> None:
    environ = {
        "RUNNEL_RUNNEL_DURABILITY": "ack",
        "RUNNEL_VALIDATION": "records",
        "RUNNEL_SERVICE_HOST": "10.0.0.1",
        "RUNNEL_SERVICE_PORT_KAFKA": "9092",
        "RUNNEL_PORT": "tcp://10.0.0.1:9092",
        "RUNNEL_PORT_9092_TCP_ADDR": "10.0.0.1",
        "RUNNEL_GATEWAY_SERVICE_PORT": "80",
    }
    found, warnings = load({}, environ, None)
    assert (found.log.durability, found.log.validation, warnings) == ("ack", "records", [])
    with pytest.raises(
        ConfigError, match=r"RUNNEL_LOG_RETENTON_MS.*did you mean log\.retention\.ms"
    ):
        load({}, {"RUNNEL_LOG_RETENTON_MS": "1"}, None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.yaml",
            "log:\n  retention:\n    ms: 5\n  preallocate: true\n  cleanup.policy: [compact]",
        ),
        (
            "a.yml",
            "log.retention.ms: 5\nlog.preallocate: yes\nlog.cleanup.policy: compact\nlog.dir:",
        ),
        (
            "a.json",
            '{"log": {"retention.ms": 5, "preallocate": true, "cleanup.policy": "compact"}}',
        ),
        (
            "a.properties",
            "# c\nlog.retention.ms = 5\nlog.preallocate:true\nlog.cleanup.policy  compact",
        ),
    ],
)
def test_every_kind_of_file_gives_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    log = load({}, {}, tmp_path / name)[0].log
    assert (log.retention_ms, log.preallocate) == (5, True)
    assert log.cleanup_policy == {"compact"}


def test_yaml_reads_numbers_and_switches_and_leaves_names_alone(tmp_path: Path) -> None:
    """`off`, `no` and 010 are what YAML 1.1 takes for something else."""
    file = tmp_path / "a.yaml"
    file.write_text(
        "http: off\nbroker.rack: no\nauto.create.topics.enable: off\nnum.partitions: 0x10\n"
        "log.retention.bytes: 1_000\nport: 9_093\nretention_seconds: 1_0\n"
    )
    settings = load({}, {}, file)[0]
    assert (settings.http, settings.rack) == (None, "no")
    assert not settings.auto_create_topics_enable
    assert (settings.num_partitions, settings.log.retention_bytes) == (16, 1000)
    assert (settings.listeners[0].port, settings.log.retention_ms) == (9093, 10_000)
    for rack in ("2026-02-30", "2026-02-03", "010", "1.50", "12:30:45"):
        file.write_text(f"runnel.http.listener: OFF\nbroker.rack: {rack}\n")
        assert load({}, {}, file)[0].rack == rack
    file.write_text("log.dirs: [on, 010]\nbroker.rack: ~")
    settings = load({}, {}, file)[0]
    assert (settings.log_dirs, settings.rack) == (("on", "010"), None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.properties", "num.partitions=3\n"),
        ("a.yaml", "num.partitions: 3\n"),
        ("a.json", '{"num.partitions": 3}'),
    ],
)
def test_a_mark_before_the_text_is_no_part_of_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert load({}, {}, tmp_path / name)[0].num_partitions == 3


def test_java_properties() -> None:
    text = "a = 1\n! no\n  b:2\nc\\:d 3\ne=x\\\n   y\nf=\\u00e4\\t\\\\\ng\nh==\n\ni = p=q \n"
    found = {given.spelling: given.text for given in parse_properties(text, "f")}
    expected = {
        "a": "1",
        "b": "2",
        "c:d": "3",
        "e": "xy",
        "f": "ä\t\\",
        "g": "",
        "h": "=",
        "i": "p=q ",
    }
    assert found == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"log.retenton.ms": "1"}, "log.retenton.ms.*did you mean log.retention.ms"),
        ({"retention.ms": "1"}, "it is a topic's name, the broker's is log.retention.ms"),
        ({"num.partitions": "0"}, "num.partitions: Value must be at least 1"),
        ({"num.partitions": "many"}, "num.partitions: Not a number of type INT"),
        ({"num.partitions": "1" * 10_000}, "num.partitions: Not a number"),
        ({"runnel.durability": "always"}, "must be one of: interval, ack, os"),
        ({"authorizer.class.name": "org.example.A"}, "authorizer.class.name is not supported"),
        ({"ssl.engine.factory.class": "X"}, "ssl.engine.factory.class is not supported"),
        ({"listeners": "SSL://:9093"}, "needs SSL, which is not supported"),
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9093"}, "a different name"),
        ({"listeners": "OTHER://:9092"}, "no security protocol for listener OTHER"),
        ({"listeners": "PLAINTEXT://:99999"}, "no port"),
        ({"listeners": "localhost:9092"}, "is not NAME://host:port"),
        ({"listeners": ""}, "no address"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "no client can reach"),
        ({"node.id": "1", "broker.id": "2"}, "must be the same"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        ({"log.dirs": "a,,b"}, "names no folder"),
        ({"process.roles": "controller"}, "of a controller alone"),
        ({"max.connections.per.ip.overrides": "host"}, "is not host:count"),
    ],
)
def test_a_mistake_is_named(flags: Mapping[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(flags, {}, None)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "", "none of .yaml"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.yaml", "- a", "does not hold names and values"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", '{"log": {"dir": "x"}, "log.dir": "y"}', "sets log.dir twice"),
        ("a.properties", "x" * (1 << 21), "larger than"),
        ("a.yaml", "num.partitons: 1", "did you mean num.partitions"),
        ("a.yaml", "num.partitions: 0x_", "num.partitions: Not a number"),
        ("a.yaml", "num.partitions: 2026-02-30", "num.partitions: Not a number"),
        ("a.yaml", "num.partitions: !!bool many", "num.partitions: Not a number"),
        ("a.yaml", f"num.partitions: {'9' * 5000}", "num.partitions: Not a number"),
        ("a.json", f'{{"num.partitions": {"9" * 5000}}}', "num.partitions: Not a number"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        load({}, {}, tmp_path / name)
    with pytest.raises(ConfigError, match="Cannot read"):
        load({}, {}, tmp_path / "none.yaml")


def test_a_secret_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        load({"sasl.jaas.config": "s3cret" * 10_000}, {}, None)
    assert "s3cret" not in str(raised.value)


def test_a_kraft_file_of_kafka_loads_with_warnings(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ninter.broker.listener.name=PLAINTEXT\n"
        "advertised.listeners=PLAINTEXT://localhost:9092\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        "num.network.threads=3\nlog.dirs=data\nlog.retention.hours=168\n"
    )
    found, warnings = load({}, {}, file)
    assert [str(listener) for listener in found.listeners] == ["PLAINTEXT://:9092"]
    assert [str(listener) for listener in found.advertised_listeners] == [
        "PLAINTEXT://localhost:9092"
    ]
    assert "num.network.threads has no effect in this version" in warnings
    assert not any("log.retention" in warning for warning in warnings)


def test_the_finest_unit_of_retention_wins() -> None:
    assert settings(log_retention_hours="2").log.retention_ms == 7_200_000
    both = settings(log_retention_hours="2", log_retention_minutes="3")
    assert both.log.retention_ms == 180_000
    assert settings(log_retention_minutes="3", log_retention_ms="4").log.retention_ms == 4
    assert settings(log_retention_hours="-5").log.retention_ms == -1
    assert settings(log_roll_hours="1").log.segment_ms == 3_600_000
    assert settings(log_flush_scheduler_interval_ms="7").log.flush_ms == 7


def test_a_topic_overrides_its_broker() -> None:
    broker = settings(log_retention_ms="9", runnel_durability="os")
    assert topic_config(broker, {}) is broker.log
    config = topic_config(broker, {"retention.ms": "5", "cleanup.policy": "compact,delete"})
    assert (config.retention_ms, config.durability) == (5, "os")
    assert config.cleanup_policy == {"compact", "delete"}
    assert topic_config(broker, {"flush.messages": "1"}).durability == "ack"
    assert topic_config(broker, {"runnel.storage": "memory"}).storage == "memory"
    assert topic_config(broker, {"of.a.newer.version": "x"}) == broker.log
    assert settings(log_flush_interval_messages="1").log.durability == "ack"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"retention.mz": "1"},
            "Unknown topic config name: retention.mz; did you mean retention.ms",
        ),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"log.retention.ms": "1"}, "Unknown topic config name"),
        ({"max.compaction.lag.ms": "1", "min.compaction.lag.ms": "2"}, "conflict topic config"),
        ({f"x{n}": "" for n in range(200)}, "more than 100"),
    ],
)
def test_a_wrong_override_is_named(overrides: Mapping[str, str | None], message: str) -> None:
    with pytest.raises(RunnelError, match=message) as raised:
        validate_topic_configs(overrides)
    assert raised.value.code is ErrorCode.INVALID_CONFIG


def test_metrics_are_told_where_the_operator_says_or_nearby() -> None:
    assert settings().http == HttpListener("127.0.0.1", 9644, is_given=False)
    any_port = settings(listeners="PLAINTEXT://127.0.0.1:0").http
    assert any_port == HttpListener("127.0.0.1", 0, is_given=False)
    given = settings(listeners="PLAINTEXT://:0", runnel_http_listener="[::1]:7000").http
    assert given == HttpListener("::1", 7000, is_given=True)
    for nowhere in ("off", "OFF", ""):
        assert settings(runnel_http_listener=nowhere).http is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9644", "'9644' is neither host:port nor off"),
        (":9644", "is neither host:port nor off"),
        ("localhost:http", "is neither host:port nor off"),
        ("localhost:65536", "has no port between 0 and 65535"),
        ("localhost:9092", "port 9092 is one of listeners; choose another"),
    ],
)
def test_an_address_for_metrics_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(runnel_http_listener=text)
