"""What `runnel transaction` prints of a transaction, seen at its coordinator or in a partition."""

import time
from collections.abc import Sequence
from typing import Any

from runnel.cli.output import show_table
from runnel.cli.record_text import time_text
from runnel.client.hanging import OpenTransaction
from runnel.client.transactions import Transaction


def document_of(found: Transaction) -> dict[str, Any]:
    open_ms = None
    if found.started_ms is not None:
        open_ms = max(0, time.time_ns() // 1_000_000 - found.started_ms)
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": found.coordinator,
        "timeout_ms": found.timeout_ms,
        "started": None if found.started_ms is None else time_text(found.started_ms),
        "open_ms": open_ms,
        "partitions": [{"topic": at.topic, "partition": at.index} for at in found.partitions],
    }


def open_document(row: OpenTransaction) -> dict[str, Any]:
    return {
        "topic": row.at.topic,
        "partition": row.at.index,
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "coordinator_epoch": row.coordinator_epoch,
        "start_offset": row.start_offset,
        "last_timestamp": row.last_timestamp_ms,
    }


def show_open(found: Sequence[OpenTransaction]) -> None:
    columns = ("topic", "partition", "producer", "epoch", "start offset", "last record")
    rows = [
        (
            row.at.topic,
            row.at.index,
            row.producer_id,
            row.producer_epoch,
            row.start_offset,
            time_text(row.last_timestamp_ms),
        )
        for row in found
    ]
    show_table(columns, rows)
