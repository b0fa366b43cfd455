"""Write docs/spark-options.md from the table of options; a test fails if they disagree."""

from pathlib import Path

from runnel.spark.kafka_settings import REFUSED, USED, WITHOUT_EFFECT
from runnel.spark.reads.option_table import BATCH, SECTIONS, STREAM, Option

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs/spark-options.md"
OPENING = ROOT / "tools/spark-opening.md"
READS = {BATCH: "batch", STREAM: "stream"}


def options_part() -> str:
    parts = []
    for title, section in SECTIONS.items():
        head = ["| option | default | what |", "|---|---|---|"]
        rows = [_row(option) for option in section]
        parts.append("\n".join([f"## {title}", "", *head, *rows, ""]))
    return "\n".join(parts)


def _row(option: Option) -> str:
    star = "" if option.connector else " *"
    only = f"Only {READS[option.reads]}. " if option.reads in READS else ""
    default = f"`{option.default}`" if option.default else ""
    example = f" For example `{option.example}`."
    return (
        f"| `{option.name}`{star} | {_cell(default)} | {_cell(only + option.meaning + example)} |"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def settings_part() -> str:
    used = "\n".join(f"| `kafka.{name}` | {what} |" for name, what in USED.items())
    refused = ", ".join(f"`kafka.{name}`" for name in REFUSED)
    ignored = ", ".join(f"`{name}`" for name in sorted(WITHOUT_EFFECT))
    return f"""\
## Settings of the client

| setting | what |
|---|---|
{used}

Refused, in the words of Spark's Kafka source: {refused}. Refused too, as encryption and
authentication are not spoken yet: `kafka.ssl.*`, `kafka.sasl.*`.

Accepted without effect, because they are about buffers, threads and membership of the Java client:
{ignored}. Any other name is an error.
"""


def rendered() -> str:
    return "\n".join([OPENING.read_text(), options_part(), settings_part()]).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(rendered())
    print(f"wrote {TARGET.relative_to(ROOT)}: {sum(map(len, SECTIONS.values()))} options")
