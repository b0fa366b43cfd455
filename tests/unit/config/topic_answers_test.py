"""What Kafka's own code said to 1,800 topic configurations and names, said again by ours."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runnel.cluster.topic_names import ensure_legal, ensure_no_collision
from runnel.config.overrides import validate_topic_configs
from runnel.errors import ErrorCode, RunnelError

ANSWERS = Path(__file__).parent / "oracle/topic_answers.jsonl"

# Java prints a double, and a list that held a value twice, in its own way.
OTHER_WORDING = ("min.cleanable.dirty.ratio", "throttled.replicas")


def answers(kind: str) -> list[tuple[str, str, str | None]]:
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    return [(name, value, error) for row_kind, name, value, error in rows if row_kind == kind]


def refusal(code: ErrorCode, check: Callable[[], None]) -> str | None:
    try:
        check()
    except RunnelError as error:
        assert error.code is code
        return str(error)
    return None


def test_topic_configs_are_judged_as_by_kafka() -> None:
    rows = answers("config")
    assert len(rows) > 1500 and len({name for name, _, _ in rows}) == 33
    refused = 0
    for name, value, expected in rows:
        check = partial(validate_topic_configs, {name: value})
        found = refusal(ErrorCode.INVALID_CONFIG, check)
        if name == "remote.storage.enable" and value.lower() == "true":
            assert found == "remote.storage.enable is not supported"  # a broker of ours has none
            continue
        assert (found is None) == (expected is None), (name, value)
        assert found == expected or name.endswith(OTHER_WORDING)
        refused += found is not None
    assert refused > 1000


def test_topic_names_are_judged_as_by_kafka() -> None:
    for name, _, expected in answers("topic"):
        found = refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, partial(ensure_legal, name))
        assert (found is None) == (expected is None), name
        assert found == expected or len(name) > 249  # of a name too long we show the beginning


def test_names_collide_as_in_kafka() -> None:
    for name, other, expected in answers("collision"):
        check = partial(ensure_no_collision, name, [other])
        found = refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, check)
        assert (found is None) == (expected is None), (name, other)
