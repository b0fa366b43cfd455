"""A pipeline that is killed in the middle, as `tests/pipeline_faults/<kind>.py` describes it.

    CASES = (Case("dedup", yaml=YAML, grow=grow, wrong=wrong, steps=("written",)),)

`grow` is called before every run and sends more to the topics; `wrong` says what is not as plain
Python computes it from all that was sent, or nothing. Steps are those of `runnel.spark.steps`; a
case without any is killed at a time drawn at random.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support import tables
from tests.support.process import BrokerProcess

SECONDS = 30.0
RANDOM_TIME = "random time"
DISK = "disk"


class Stage:
    """One broker, one folder with the pipeline's file, and all that was sent."""

    def __init__(self, folder: Path, broker: BrokerProcess, case: "Case") -> None:
        self.folder = folder
        self.broker = broker
        self.case = case
        self.sent: list[Any] = []  # whatever `grow` wants `wrong` to know
        self.rounds = 0
        self.attempts = 0

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @property
    def home(self) -> Path:
        return self.folder / ".runnel/pipelines" / self.case.name

    def topic(self, name: str) -> str:
        """The name, which no other case has: all share a broker."""
        return f"{self.case.name}-{name}"

    def create(
        self, name: str, partitions: int = 2, config: Mapping[str, str] | None = None
    ) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        topic = NewTopic(self.topic(name), partitions, 1, config=dict(config or {}))
        admin.create_topics([topic])[self.topic(name)].result(SECONDS)

    def send(
        self, name: str, records: "Sequence[tuple[bytes | None, bytes | None, int | None]]"
    ) -> None:
        """Key, value and timestamp in ms (None: now), by librdkafka."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, "linger.ms": 5})
        for key, value, time_ms in records:
            producer.produce(self.topic(name), value, key, timestamp=time_ms or 0)
        assert producer.flush(SECONDS) == 0

    def received(self, name: str) -> list[Any]:
        """All messages of a topic that are committed, partition by partition."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "none",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        try:
            topic = consumer.list_topics(self.topic(name), SECONDS).topics[self.topic(name)]
            left = set(topic.partitions)
            consumer.assign([TopicPartition(self.topic(name), index, 0) for index in left])
            found = []
            while left:
                message = consumer.poll(SECONDS)
                assert message is not None, f"no end of {name} within {SECONDS} s"
                if message.error() is not None:
                    left.discard(message.partition())
                else:
                    found.append(message)
            return sorted(found, key=lambda each: (each.partition(), each.offset()))
        finally:
            consumer.close()

    def table(self, path: str, format_: str = "delta") -> list[dict[str, Any]]:
        """The rows of a table below the folder, by a reader that had no part in writing it."""
        return tables.rows(format_, self.folder / path)

    def status(self) -> dict[str, Any]:
        file = self.home / "status.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found


def nothing(stage: Stage) -> None:
    pass


@dataclass(frozen=True)
class Case:
    """`yaml` may have `{bootstrap}`, `{folder}` and `{prefix}`, which names of topics begin with.

    `files` go beside it.
    """

    name: str
    yaml: str
    grow: Callable[[Stage], None]
    wrong: Callable[[Stage], str]
    prepare: Callable[[Stage], None] = nothing
    steps: tuple[str, ...] = ()
    victims: tuple[str, ...] = ("driver",)  # driver, worker, broker; disk: it is full at first
    files: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ("pipeline", "run", "NAME", "--once")
    cores: int = 2

    def written(self, stage: Stage) -> None:
        """The files of the pipeline, in `stage.folder`."""
        folder = stage.folder / "pipelines"
        folder.mkdir(parents=True)
        text = self.yaml.replace("{bootstrap}", stage.bootstrap)
        text = text.replace("{folder}", str(stage.folder)).replace("{prefix}", f"{self.name}-")
        if "\nspark:" not in text:
            text += f"\nspark: {{cores: {self.cores}, memory: 1g}}\n"
        (folder / f"{self.name}.yml").write_text(text)
        for name, content in self.files.items():
            (folder / name).write_text(content)


def differing(wanted: Sequence[object], found: Sequence[object]) -> str:
    """What is wrong with a multiset, in few words; empty if nothing is."""
    from collections import Counter

    left, right = Counter(wanted), Counter(found)
    lost, extra = left - right, right - left
    if not lost and not extra:
        return ""
    some = [*list(lost)[:2], "/", *list(extra)[:2]]
    return f"LOST {lost.total()} TOO MANY {extra.total()}: {some}"[:300]


def environment(stage: Stage) -> dict[str, str]:
    from tests.support.process import PACKAGES, ROOT
    from tests.support.process import environment as plain

    return plain({"PYTHONPATH": f"{PACKAGES}{os.pathsep}{ROOT}"})
