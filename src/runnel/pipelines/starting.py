"""Where a pipeline begins the first time: `earliest`, `latest`, a time, or offsets as JSON."""

import json
import re
import time
from datetime import datetime

from runnel.pipelines.units import span_ms

WAYS = "earliest, latest, a time such as 2026-01-31T12:00 or '-2h', or offsets as JSON"


def start_options(text: str) -> dict[str, str]:
    """As options of the source. Raises ValueError."""
    if text in ("earliest", "beginning"):
        return {"startingOffsets": "earliest"}
    if text == "latest":
        return {"startingOffsets": "latest"}
    if text.startswith("{"):
        json.loads(text)
        return {"startingOffsets": text}
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    return {"startingTimestamp": str(time_ms(text)), **strategy}


def time_ms(text: str) -> int:
    """Milliseconds since 1970; of this machine's zone unless it names one. Raises ValueError."""
    if re.fullmatch(r"@\d{1,15}", text):
        return int(text[1:])
    try:
        if text.startswith("-"):
            return int(time.time() * 1000) - span_ms(text[1:])
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is not {WAYS}") from None
