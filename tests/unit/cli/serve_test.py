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
