"""Data folders that Kafka 4.3 wrote, and what it served from them: recorded once, kept here.

`tests.compat.kafka_folder.record` makes them anew.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "integration" / "recorded"


def unpack(into: Path) -> Path:
    """Both folders, below this one."""
    with tarfile.open(RECORDED / "kafka-4.3-folder.tar.xz") as tar:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4 and newer
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(into)  # our own archive
    return into


def served() -> dict[str, Any]:
    """By how it was stopped: its topics, records and offsets, as Kafka's own consumer had them."""
    found: dict[str, Any] = json.loads((RECORDED / "kafka-4.3-folder.json").read_text())
    return found
