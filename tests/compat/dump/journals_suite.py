"""What coordinators write, read by Kafka's own decoders: the same records as Kafka's, in its order.

`python -m tests.compat.dump.journals_suite runnel`, or `kafka`, which compares Kafka with itself. A
client does the same things with both brokers; then `__consumer_offsets` and `__transaction_state`
are dumped. How records are put into batches is not compared, nor when a transaction's marker comes
among them: Kafka answers before it is written.
"""

import json
import re
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import KafkaException

from tests.compat.checks import FIRST_TIMESTAMP_MS, PATIENCE_S, Checks
from tests.compat.librdkafka.confluent_driver import Client
from tests.compat.serve import Line, encode
from tests.support.kafka_tools import ALONE, KafkaBroker, KafkaToolError, dump_log
from tests.support.process import BrokerError, BrokerProcess

RECORDS = 10
ONGOING = '"transactionStatus": 1'
JOURNALS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
# What is drawn at random, measured, or follows from either.
_DRAWN = re.compile(
    r'(?<="topicId":")[^"]+|[\w-]*[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}'
    r'|(?<="memberId":")[\w/+-]{22}|(?<="metadataHash":)-?\d+|\b1[6-9]\d{11}\b'
)
_RECORD = re.compile(r"(?:key: .*|endTxnMarker: \w+.*)$", re.MULTILINE)


def lines() -> list[Line]:
    return [
        {
            "key": encode(b"k%d" % index),
            "value": encode(b"v%d" % index),
            "timestamp": FIRST_TIMESTAMP_MS,
            "headers": [],
        }
        for index in range(RECORDS)
    ]


def use_coordinators(bootstrap: str) -> None:
    """Everything that is written to a journal, one thing after the other."""
    client = Client(bootstrap)
    for topic in ("lines", "plain", "copies"):
        client.create(topic, 2, {})
    client.transaction("writer", "lines", lines(), commit=False)
    client.transaction("writer", "lines", lines(), commit=True)
    for protocol in ("classic", "consumer"):
        client.join("member", protocol, "lines", protocol)
        read, deadline = 0, time.monotonic() + PATIENCE_S
        while read < RECORDS and time.monotonic() < deadline:
            read += len(client.poll("member", 200))
        assert read == RECORDS, f"{read} records read"
        client.commit("member")
        client.leave("member")
    client.commit_offset("by hand", "lines", 1, 7, "noted")
    client.delete_group("by hand")
    # No markers in it, which a reader may have passed already when it commits, or not.
    client.produce("plain", 0, "none", lines())
    client.copy("copier", "copied", "plain", "copies", RECORDS, commit=False)
    client.copy("copier", "copied", "plain", "copies", RECORDS, commit=True)


def journals(kind: str, scratch: Path) -> dict[str, list[str]]:
    data_dir = scratch / "data"
    if kind == "kafka":
        broker: KafkaBroker | BrokerProcess = KafkaBroker(data_dir)
    else:
        broker = BrokerProcess(data_dir, settings={"node.id": "1", **ALONE})
    with broker:
        use_coordinators(broker.bootstrap)
    found = {}
    for topic, decoder in JOURNALS.items():
        log = data_dir / f"{topic}-0/00000000000000000000.log"
        printed = dump_log([log], decoder)
        assert printed.returncode == 0, printed.stderr[-300:]
        written = [_DRAWN.sub("X", text) for text in _RECORD.findall(printed.stdout)]
        if topic == "__transaction_state":
            written = _last_of_ongoing(list(map(_ordered, written)))
        found[topic] = sorted(written, key=lambda text: text.startswith("endTxnMarker"))
    return found


def _ordered(text: str) -> str:
    """A transaction's partitions are a set, which Kafka writes as it comes."""
    key, _, payload = text.partition(" payload: ")
    value = json.loads(payload.replace(":X", ":0"))
    partitions = value["data"]["transactionPartitions"] or []
    partitions.sort(key=lambda row: row["topic"])
    for row in partitions:
        row["partitionIds"].sort()
    return f"{key} payload: {json.dumps(value)}"


def _last_of_ongoing(written: list[str]) -> list[str]:
    """A client adds partitions as it gets to them, in one request or in several."""
    following = [*written[1:], ""]
    return [
        text
        for text, after in zip(written, following, strict=True)
        if not (ONGOING in text and ONGOING in after)
    ]


def require_same(kafka: list[str], other: list[str]) -> None:
    assert len(kafka) > RECORDS, f"Kafka wrote {len(kafka)} records: {kafka[:1]}"
    for index, (wanted, got) in enumerate(zip(kafka, other, strict=False)):
        assert got == wanted, f"record {index}: wanted {wanted}, got {got}"
    assert len(other) == len(kafka), f"{len(other)} records, {len(kafka)} wanted"


def main() -> None:
    checks = Checks((KafkaException, KafkaToolError, BrokerError))
    found: list[dict[str, list[str]]] = []
    for kind in ("kafka", sys.argv[1]):

        def used(kind: str = kind) -> None:
            with tempfile.TemporaryDirectory() as scratch:
                found.append(journals(kind, Path(scratch)))

        checks.check(f"a client uses the coordinators of {kind}", used)
    if len(found) == 2:
        for topic in JOURNALS:

            def same(topic: str = topic) -> None:
                require_same(found[0][topic], found[1][topic])

            checks.check(f"{topic}: the same records", same)
    checks.end()


if __name__ == "__main__":
    main()
