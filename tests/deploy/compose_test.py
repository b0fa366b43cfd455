"""Goal: the compose files are valid, and a broker takes every setting that they give it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from runnel.config.settings import Settings, load
from tests.deploy.image_test import ROOT, environment

FILES = [ROOT / "deploy/compose.yaml", ROOT / "deploy/compose.cluster.yaml"]
DEFAULTED = re.compile(r"\$\{\w+:-([^}]*)\}")


def compose(path: Path) -> dict[str, Any]:
    """As compose reads it on a machine where nothing is set."""
    tree: dict[str, Any] = yaml.safe_load(DEFAULTED.sub(r"\1", path.read_text()))
    return tree


def brokers(path: Path) -> dict[str, dict[str, Any]]:
    services = compose(path)["services"]
    return {name: each for name, each in services.items() if each.get("image") == "runnel"}


def settings_of(service: dict[str, Any]) -> Settings:
    given = {name: str(value) for name, value in service["environment"].items()}
    found, warnings = load({}, environment() | given, None)
    assert not warnings, warnings
    return found


def test_they_follow_the_specification() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
        + [str(path) for path in FILES],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_door_tells_an_address_that_leads_back_to_it(path: Path) -> None:
    """Outside: a published port of this very container. Inside: its name in the network."""
    found = brokers(path)
    assert found
    outside: set[str] = set()
    for name, service in found.items():
        settings = settings_of(service)
        told = {each.name: each for each in settings.advertised_listeners}
        bound = {each.name: each.port for each in settings.listeners}
        published = dict(port.rsplit(":", 2)[1:] for port in service["ports"])
        assert service["hostname"] == name
        assert (told["INTERNAL"].host, told["INTERNAL"].port) == (name, bound["INTERNAL"])
        assert told["EXTERNAL"].host == "localhost"
        assert published[str(told["EXTERNAL"].port)] == str(bound["EXTERNAL"])
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), "no door to all"
        outside.add(str(told["EXTERNAL"]))
    assert len(outside) == len(found)
    assert len({settings_of(each).node_id for each in found.values()}) == len(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_mounted_is_there(path: Path) -> None:
    tree = compose(path)
    for service in tree["services"].values():
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            if source.startswith("."):
                assert (path.parent / source).exists(), mount
            else:
                assert source in tree["volumes"], mount
        image = service.get("image", "runnel")
        assert image == "runnel" or re.search(r":v?\d+\.\d+", image), f"{image} is not pinned"


def test_a_broker_has_time_to_stop_in_order() -> None:
    for path in FILES:
        for service in brokers(path).values():
            patience_ms = int(service["stop_grace_period"].removesuffix("s")) * 1000
            assert patience_ms > settings_of(service).shutdown_timeout_ms + 5000


def test_the_file_for_three_brokers_does_not_pretend() -> None:
    assert FILES[1].read_text().startswith("# NOT A CLUSTER YET.")


def test_prometheus_asks_every_broker() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/containers.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["job_name"] == "runnel" and job["dns_sd_configs"][0]["names"] == ["runnel"]
    assert config["rule_files"] == ["alerts.yml"]
    for path in FILES:
        for name, service in brokers(path).items():
            aliases = service.get("networks", {}).get("default", {}).get("aliases", [])
            assert "runnel" in (name, *aliases)
            http = settings_of(service).http
            assert http is not None and http.host == "0.0.0.0"
            assert http.port == job["dns_sd_configs"][0]["port"]
    dashboard = next((ROOT / "deploy/grafana/dashboards").glob("*.json"))
    assert json.loads(dashboard.read_text())["title"]
