"""Goal: deploy/Dockerfile keeps its promises: not root, probed without curl, rightly told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runnel.cli.health import VARIABLE
from runnel.config.settings import Settings, load
from tests.deploy.dockerfile import Stage, read

ROOT = Path(__file__).resolve().parents[2]
STAGES = read(ROOT / "deploy/Dockerfile")
FINAL = STAGES[-1]


def environment() -> dict[str, str]:
    return {name: value for each in FINAL.all("ENV") for name, value in each.pairs.items()}


def settings() -> Settings:
    found, warnings = load({}, environment(), None)
    assert not warnings, warnings
    return found


def test_the_last_stage_has_no_compiler_and_no_root() -> None:
    build, final = STAGES
    assert "slim" in final.image and "slim" not in build.image
    user, _, group = final.last("USER").text.partition(":")
    assert int(user) > 0 and int(group) > 0, "a number, or Kubernetes cannot tell"
    for each in STAGES:
        tag = each.image.partition(":")[2]
        assert tag and tag != "latest", each.image


def test_everything_is_in_exec_form_so_that_signals_arrive() -> None:
    for name in ("ENTRYPOINT", "CMD"):
        assert FINAL.last(name).text.startswith("["), name
    check = FINAL.last("HEALTHCHECK")
    assert check.text.startswith('CMD ["runnel", "health"') and {"interval", "timeout"} <= set(
        check.options
    )
    assert FINAL.last("STOPSIGNAL").text == "SIGTERM"
    assert not [each for stage in STAGES for each in stage.all("RUN") if "curl" in each.text]


def test_the_settings_are_ones_that_the_broker_knows() -> None:
    found = settings()
    assert [str(each) for each in found.listeners] == [
        "EXTERNAL://0.0.0.0:9092",
        "INTERNAL://0.0.0.0:19092",
    ]
    outside, inside = found.advertised_listeners
    assert str(outside) == "EXTERNAL://localhost:9092"
    assert (inside.host, inside.port) == ("", 19092), "empty: the container's own name"
    assert (found.own_log.format, found.own_log.stream) == ("json", "stdout")
    assert found.log_dirs == (FINAL.last("VOLUME").text,)
    exposed = FINAL.last("EXPOSE").words
    assert found.http is not None and found.http.host == "0.0.0.0"
    ports = [each.port for each in found.listeners] + [found.http.port]
    assert set(map(str, ports)) == set(exposed)
    assert environment()[VARIABLE] == "localhost:9092"


def copied() -> Iterator[str]:
    for each in (each for stage in STAGES for each in stage.all("COPY") if not each.options):
        yield from each.words[:-1]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in lines if line.startswith("!")}
    assert lines[1] == "*", "everything is left out that is not named"
    assert set(copied()) == let_in
    for name in copied():
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("stage", STAGES)
def test_no_layer_keeps_what_it_downloaded(stage: Stage) -> None:
    for each in stage.all("RUN"):
        for command in each.text.split("&&"):
            if "pip install" in command or "pip wheel" in command:
                assert "--no-cache-dir" in command and "constraint" in command.lower(), command
