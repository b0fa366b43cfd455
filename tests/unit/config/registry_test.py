"""The registry agrees with Kafka's tables, and says something about every name."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from runnel.config import kafka_names
from runnel.config.definition import ConfigError, Definition
from runnel.config.registry import BROKER, GROUP, TOPIC
from runnel.config.support import (
    AWAITED,
    DEFAULTS,
    DYNAMIC_ONLY_NAMES,
    HONOURED_BROKER_NAMES,
    LOG_FIELDS,
    REFUSED_NAMES,
    SYNONYMS,
)
from runnel.config.topic import LogConfig
from tools.declare_configs import DYNAMIC, TABLE, declare


def test_the_declarations_are_what_the_script_writes() -> None:
    assert kafka_names.__file__ is not None
    assert Path(kafka_names.__file__).read_text() == declare()


def test_every_name_of_kafka_is_there() -> None:
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    names = [row.split("|")[1].strip() for row in rows]
    names = [name for name in names if name != "name"]
    assert len(names) == 390
    every: list[Definition] = [*BROKER.values(), *TOPIC.values(), *GROUP.values()]
    kafkas = [d.name for d in every if not d.name.startswith("runnel.")]
    assert sorted(kafkas) == sorted(names + [d.name for d in DYNAMIC_ONLY_NAMES])


def test_what_may_change_while_running_is_what_kafka_says() -> None:
    lines = [line[2:] for line in DYNAMIC.read_text().splitlines() if line.startswith("- ")]
    modes = dict(line.split(": ") for line in lines)
    assert len(modes) == 102
    for definition in BROKER.values():
        if not definition.name.startswith("runnel."):
            assert definition.update == modes.get(definition.name, "read-only"), definition.name
    fixed = [d.name for d in (*TOPIC.values(), *GROUP.values()) if not d.is_dynamic]
    assert fixed == ["runnel.storage"]


def test_every_default_is_a_legal_value() -> None:
    for definition in (*BROKER.values(), *TOPIC.values(), *GROUP.values()):
        if definition.not_empty and not definition.default:
            continue  # Kafka's own defaults break its own bound here; unset is allowed
        definition.parse_default()


def test_the_lists_of_names_hold_no_name_that_is_none() -> None:
    assert set(DEFAULTS) | HONOURED_BROKER_NAMES <= set(BROKER)
    assert set(BROKER) | set(TOPIC) >= REFUSED_NAMES
    assert set(SYNONYMS) | set(LOG_FIELDS) | set(AWAITED) <= set(TOPIC)
    assert not set(LOG_FIELDS) & set(AWAITED)
    assert {broker for pairs in SYNONYMS.values() for broker, _ in pairs} <= set(BROKER)


def test_the_fields_of_a_log_config_are_kafkas_with_kafkas_defaults() -> None:
    config = LogConfig()
    named = set(LOG_FIELDS.values()) | {"producer_id_expiration_ms"}
    assert {field.name for field in fields(LogConfig)} == named
    for name, field in LOG_FIELDS.items():
        value, expected = getattr(config, field), TOPIC[name].parse_default()
        assert value == (frozenset(expected) if isinstance(expected, tuple) else expected), name


def test_a_topics_default_is_its_brokers_default() -> None:
    for name, pairs in SYNONYMS.items():
        broker, factor = next((b, f) for b, f in pairs if BROKER[b].default is not None)
        value, expected = BROKER[broker].parse_default(), TOPIC[name].parse_default()
        if factor != 1:
            assert isinstance(value, int)
            value *= factor
        assert value == expected, name


def test_loading_the_package_brings_in_nothing_heavy() -> None:
    """A broker starts in a fraction of a second; each of these would cost a tenth of that."""
    code = "import sys, runnel.config.settings; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "runnel.config.settings" in loaded
    assert not loaded & {"yaml", "difflib", "asyncio", "logging", "sqlite3", "runnel.cluster"}


def test_a_reset_by_duration_is_a_duration_of_javas() -> None:
    definition = GROUP["share.auto.offset.reset"]
    for right in (
        "latest",
        "earliest",
        "by_duration:P1D",
        "by_duration:PT1H30.5S",
        "by_duration:pt1m",
    ):
        definition.parse(right)
    for wrong in (
        "",
        "none",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1M",
        "by_duration:PT-1S",
        "by_duration:1D",
        "Latest",
    ):
        with pytest.raises(ConfigError, match="by_duration"):
            definition.parse(wrong)
