"""Goal: flags, environment and file come together in the promised order, and mistakes are named."""

from pathlib import Path

import pytest

from runnel.cli.serve import arguments, settings_from
from runnel.config.definition import ConfigError
from runnel.config.settings import Settings


def settings(*argv: str, environ: dict[str, str] | None = None) -> Settings:
    return settings_from(arguments().parse_args(argv), environ or {})[0]


def test_the_defaults_suit_a_first_start() -> None:
    found = settings()
    assert [str(each) for each in found.listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    assert found.log_dirs == ("runnel-data",)
    assert found.node_id == 0


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.properties"
    file.write_text("num.partitions=2\nlog.retention.hours=1\nnode.id=7\n")
    environ = {"RUNNEL_NUM_PARTITIONS": "3", "RUNNEL_LOG_RETENTION_HOURS": "2"}
    found = settings("--config", str(file), "--set", "num.partitions=4", environ=environ)
    assert found.num_partitions == 4
    assert found.log.retention_ms == 2 * 3_600_000
    assert found.node_id == 7


def test_the_short_flags_and_the_familiar_ones(tmp_path: Path) -> None:
    file = tmp_path / "broker.json"
    file.write_text('{"num.partitions": 3}')
    found = settings(
        *("-p", "7", "-l", "WARN", "-b", "5", "-c", str(file), "--retention-seconds", "60"),
        *("--log-format", "json", "--log-file", "x.log"),
    )
    assert (found.listeners[0].port, found.node_id, found.num_partitions) == (7, 5, 3)
    assert found.log.retention_ms == 60_000
    own = found.own_log
    assert (own.level, own.format, own.file) == ("warning", "json", "x.log")
    assert str(settings("--address", "[::1]:8").listeners[0]) == "PLAINTEXT://[::1]:8"


def test_a_wrong_flag_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--prot", "5"], ["--port"], ["extra"]):
        with pytest.raises(SystemExit) as raised:
            arguments().parse_args(wrong)
        assert raised.value.code == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and "runnel serve --help" in told


def test_host_port_folder_and_id_have_flags_of_their_own() -> None:
    found = settings("--host", "::1", "--port", "0", "--data-dir", "d", "--broker-id", "5")
    assert (found.listeners[0].host, found.listeners[0].port) == ("::1", 0)
    assert (found.log_dirs, found.node_id) == (("d",), 5)


@pytest.mark.parametrize(
    ("argument", "named"),
    [("no.such=1", "no.such"), ("num.partitions=x", "num.partitions"), ("nonsense", "nonsense")],
)
def test_a_mistake_is_named(argument: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        settings("--set", argument)


def test_an_empty_flag_is_a_mistake() -> None:
    """Of a script whose variable is not set: the data would go elsewhere than it is looked for."""
    with pytest.raises(ConfigError, match="--data-dir is empty"):
        settings("--data-dir", "")
