"""Ask Kafka 4.3 anew and keep what it says: python -m tests.golden.record [--show] [NAME ...]"""

import argparse
import sys

from tests.golden.found import RECORDED, dialogues, record_of
from tests.golden.kafka_stage import ask_kafka


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which dialogues; all if none is named")
    parser.add_argument("--show", action="store_true", help="print, and keep nothing")
    options = parser.parse_args()
    known = dialogues()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"no such dialogue: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return 2
    RECORDED.mkdir(exist_ok=True)
    for name in options.names or sorted(known):
        text = ask_kafka(known[name])
        if options.show:
            print(text)
            continue
        before = record_of(name).read_text() if record_of(name).exists() else None
        record_of(name).write_text(text)
        told = "new" if before is None else "as before" if before == text else "changed"
        print(f"{name}: {len(text.splitlines())} lines, {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
