"""What Kafka 4.3.1 said to a series of questions and changes about settings, said again by ours."""

import json
from pathlib import Path
from typing import Any

from runnel.config.registry import BROKER
from runnel.config.support import DEFAULTS
from tests.support.asking import create
from tests.support.desk import Desk, at_desk
from tests.support.record_configs import STEPS

ANSWERS = Path(__file__).parent / "recorded/configs.jsonl"

# Where ours say the same in other words, or more.
OTHER_WORDS = {
    "This server does not host this topic-partition.": "",
    "log.retention.ms must be unlimited (-1) or, greater than or equal to 1": (
        "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    ),
    "Dynamic thread count update validation failed for num.io.threads=17, value should not be "
    "greater than double the current value 8": (
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update "
        "validation failed for num.io.threads=17, value should not be greater than double the "
        "current value 8 for configuration Invalid dynamic configuration"
    ),
}
# Kafka's controller sets it for all brokers when a cluster is made (KIP-966).
SET_BY_KAFKA = "min.insync.replicas"
OURS = {"node.id", "broker.id", "log.dirs", "listeners", SET_BY_KAFKA, *DEFAULTS}


def comparable(configs: dict[str, Any]) -> dict[str, Any]:
    return {n: c for n, c in configs.items() if n not in OURS and not n.startswith("runnel.")}


def test_settings_are_described_and_altered_as_by_kafka() -> None:
    recorded = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    assert len(recorded) == len(STEPS)
    compared = 0

    async def test(desk: Desk) -> None:
        nonlocal compared
        await create(desk)
        for step, (code, message, configs) in zip(STEPS, recorded, strict=True):
            found = step.answer(await desk.ask(step.request()))
            ours = json.loads(json.dumps(found))
            assert ours[0] == code, (step, ours[1])
            words = OTHER_WORDS.get(ours[1], ours[1])
            assert (words or "") == (message or ""), step
            expected = comparable(configs)
            mine = comparable(ours[2])
            given = {n for n in mine.keys() - expected.keys() if n in BROKER}
            assert {n: c for n, c in mine.items() if n not in given} == expected, step
            assert len(given) < 15, "only what Kafka's broker was started with"
            compared += len(expected)

    at_desk(test)
    assert compared > 400
