"""What Kafka answers to a series of DescribeConfigs and IncrementalAlterConfigs, written down.

`python -m tests.support.record_configs FILE` starts a Kafka broker and asks it; a unit test asks a
broker of ours the same (`tests/unit/broker/kafkas_configs_test.py`).
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from runnel.broker.handlers.config_resources import ResourceType
from runnel.client.raw import WireClient
from runnel.config.alterations import Operation
from runnel.config.effective import Source
from runnel.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from runnel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.support.configuring import incremental
from tests.support.kafka_tools import KafkaBroker

SET, DELETE, APPEND, SUBTRACT = Operation
TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP
METRICS, LOGGER = ResourceType.CLIENT_METRICS, ResourceType.BROKER_LOGGER


class Step(NamedTuple):
    kind: int
    name: str
    changes: tuple[tuple[str, Operation, str | None], ...] = ()  # none: describe

    def request(self) -> IncrementalAlterConfigsRequest | DescribeConfigsRequest:
        if self.changes:
            return incremental(self.kind, self.name, *self.changes)
        resource = DescribeConfigsResource(
            resource_type=self.kind, resource_name=self.name, configuration_keys=None
        )
        return DescribeConfigsRequest(resources=[resource], include_synonyms=True)

    def answer(self, response: Any) -> list[Any]:  # noqa: ANN401  # of either request
        if self.changes:
            (altered,) = response.responses
            return [altered.error_code, altered.error_message, {}]
        (result,) = response.results
        return [result.error_code, result.error_message, _configs(result)]


def _configs(result: DescribeConfigsResult) -> dict[str, list[Any]]:
    return {
        config.name: [
            config.value,
            config.read_only,
            config.config_source,
            config.is_sensitive,
            config.config_type,
            [[s.name, s.value, s.source] for s in config.synonyms],
        ]
        for config in result.configs
    }


def _not_given(configs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Without what this one broker was started with: its ports and folders."""
    given = {
        name
        for name, (*_, synonyms) in configs.items()
        if any(source == Source.STATIC_BROKER for _, _, source in synonyms)
    }
    return {name: config for name, config in configs.items() if name not in given}


# The topic `t` is there, with one partition and no settings; the broker's id is 1.
STEPS = [
    Step(TOPIC, "t"),
    Step(BROKER, ""),
    Step(GROUP, "g"),
    Step(METRICS, "m"),
    Step(TOPIC, "none"),
    Step(TOPIC, "a b"),
    Step(BROKER, "7"),
    Step(BROKER, "x"),
    Step(GROUP, ""),
    Step(METRICS, ""),
    Step(LOGGER, ""),
    Step(LOGGER, "9"),
    Step(TOPIC, "t", (("retention.ms", SET, "1000"), ("cleanup.policy", APPEND, "compact"))),
    Step(TOPIC, "t", (("min.cleanable.dirty.ratio", SET, "1"), ("preallocate", SET, "TRUE"))),
    Step(
        TOPIC, "t", (("flush.ms", SET, " 7 "), ("leader.replication.throttled.replicas", SET, "*"))
    ),
    Step(TOPIC, "t", (("retention.ms", SUBTRACT, "1000"),)),
    Step(TOPIC, "t", (("retention.ms", SET, "1"), ("retention.ms", SET, "2"))),
    Step(TOPIC, "t", (("retention.ms", SET, None),)),
    Step(TOPIC, "t", (("retention.ms", SET, "soon"),)),
    Step(TOPIC, "t", (("retention.ms", DELETE, None), ("nonsense", DELETE, None))),
    Step(TOPIC, "t", (("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8"))),
    Step(TOPIC, "none", (("retention.ms", SET, "5"),)),
    Step(BROKER, "", (("log.segment.bytes", SET, "2097152"),)),
    Step(BROKER, "1", (("log.retention.ms", SET, "5000"), ("log.roll.ms", SET, "60000"))),
    Step(BROKER, "1", (("log.cleanup.policy", APPEND, "compact"),)),
    Step(BROKER, "1", (("message.max.bytes", SET, "-1"),)),
    Step(BROKER, "1", (("log.retention.ms", SET, "0"),)),
    Step(BROKER, "1", (("node.id", SET, "5"),)),
    Step(BROKER, "", (("listeners", SET, "PLAINTEXT://:1"),)),
    Step(BROKER, "1", (("ssl.key.password", SET, "x"),)),
    Step(BROKER, "1", (("num.io.threads", SET, "17"),)),
    Step(BROKER, "1", (("num.io.threads", SET, "16"),)),
    Step(BROKER, "2", (("message.max.bytes", SET, "5"),)),
    Step(BROKER, "one", (("message.max.bytes", SET, "5"),)),
    Step(GROUP, "g", (("consumer.session.timeout.ms", SET, "50000"),)),
    Step(GROUP, "g", (("consumer.session.timeout.ms", SET, "5"),)),
    Step(GROUP, "g", (("consumer.session.timeout.ms", SET, "x"),)),
    Step(GROUP, "", (("consumer.session.timeout.ms", SET, "50000"),)),
    Step(METRICS, "m", (("metrics", SET, "*"), ("interval.ms", SET, "1000"))),
    Step(METRICS, "m", (("interval.ms", SET, "99"),)),
    Step(METRICS, "m", (("interval", SET, "1000"),)),
    Step(METRICS, "m", (("match", SET, "who=me"),)),
    Step(METRICS, "", (("interval.ms", SET, "1000"),)),
    Step(LOGGER, "1", (("root", APPEND, "INFO"),)),
    Step(LOGGER, "1", (("root", DELETE, None),)),
    Step(LOGGER, "1", (("nowhere", SET, "INFO"),)),
    Step(1, "x", (("a", SET, "b"),)),
    Step(TOPIC, "t"),
    Step(BROKER, "1"),
    Step(BROKER, ""),
    Step(GROUP, "g"),
    Step(METRICS, "m"),
]


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaBroker(Path(folder) / "kafka") as broker,
    ):
        host, _, port = broker.bootstrap.rpartition(":")
        with WireClient((host, int(port))) as client:
            client.create_topic("t", 1)
            time.sleep(1)
            answers = []
            for step in STEPS:
                code, message, configs = step.answer(client.call(step.request()))
                answers.append([code, message, _not_given(configs)])
                time.sleep(0.3)  # a broker takes its settings from the controller, in time
    lines = [json.dumps(answer, separators=(",", ":"), sort_keys=True) for answer in answers]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
