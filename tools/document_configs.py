"""Write docs/configuration.md from the registry; a unit test fails while the two disagree."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from runnel.config.definition import Definition
from runnel.config.kafka_names import KAFKA_NAMES
from runnel.config.meanings import meaning
from runnel.config.registry import BROKER, GROUP, TOPIC
from runnel.config.spellings import ADDRESS, ADVERTISED, FAMILIAR, HOST, PORT, SECTIONS, VARIABLES
from runnel.config.support import AWAITED, REASONED_DEFAULTS

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs/configuration.md"
OPENING = ROOT / "tools/configuration-opening.md"

KAFKA_DEFAULTS = {d.name: d.default for d in KAFKA_NAMES if d.scope == "broker"}
MOST = str(2**63 - 1)
CHANGES = {"read-only": "at start", "per-broker": "per broker", "cluster-wide": "while running"}
PARTS = {
    HOST: "the host in `listeners`",
    PORT: "the port in `listeners`",
    ADDRESS: "`listeners`",
    ADVERTISED: "the host (and port) in `advertised.listeners`",
}
# Where the underscores are read as dots, and the setting is not called so.
SHOWN_TOO = ("broker_id", "min_insync_replicas", "log_retention_hours", "max_connections")


def table(head: str, rows: Iterable[str]) -> str:
    columns = head.count("|") + 1
    return "\n".join([f"| {head} |", "|" + "---|" * columns, *rows, ""])


def code(text: str | None) -> str:
    if text is None:
        return "none"
    return "empty" if text == "" else f"`{'never (2^63-1)' if text == MOST else text}`"


def default(definition: Definition) -> str:
    name = definition.name
    if definition.scope != "broker" or name not in REASONED_DEFAULTS:
        return code(definition.default)
    kafka = KAFKA_DEFAULTS[name]
    theirs = "required in Kafka" if kafka is None else f"Kafka {code(kafka)}"
    return f"{code(definition.default)} ({theirs}; {REASONED_DEFAULTS[name][1]})"


def limits(definition: Definition) -> str:
    if definition.choices:
        return ", ".join(definition.choices) + (", by_duration:..." * definition.by_duration)
    low, high = definition.minimum, definition.maximum
    if low is None and high is None:
        return definition.type
    bounds = f"{low} to {high}" if high is not None else f"{low} or more"
    also = "" if definition.besides is None else f", or {definition.besides}"
    return f"{definition.type}, {bounds}{also}"


def full(definitions: Iterable[Definition]) -> str:
    return table(
        "name | values | default | changes | meaning",
        (
            f"| `{d.name}` | {limits(d)} | {default(d)} | {CHANGES[d.update]} | {meaning(d)} |"
            for d in definitions
        ),
    )


def short(definitions: Iterable[Definition]) -> str:
    return table(
        "name | values | default | changes",
        (f"| `{d.name}` | {limits(d)} | {default(d)} | {CHANGES[d.update]} |" for d in definitions),
    )


def spellings() -> str:
    shown = {name: name.replace("_", ".") for name in SHOWN_TOO}
    shown |= {spelling: meant.name for spelling, meant in FAMILIAR.items()}
    rows = [
        f"| `{spelling}` | {PARTS.get(name, f'`{name}`')} |"
        for spelling, name in sorted(shown.items())
    ]
    rows += [
        f"| variable `{variable}` | {PARTS.get(meant.name, f'`{meant.name}`')} |"
        for variable, meant in sorted(VARIABLES.items())
    ]
    return table("spelling | setting", rows)


def counts() -> str:
    """One line a scope, and one for all: how many names are honoured, kept, ignored, refused."""
    lines = []
    for scope, names in (("broker", BROKER), ("topic", TOPIC), ("group", GROUP)):
        found = Counter("kept" if is_kept(d) else d.status for d in names.values())
        lines.append(f"| {scope} | {len(names)} | " + " | ".join(str(found[s]) for s in STATUSES))
    return table(f"scope | names | {' | '.join(STATUSES)}", (f"{line} |" for line in lines))


STATUSES = ("honoured", "kept", "ignored", "refused")


def is_kept(definition: Definition) -> bool:
    return definition.scope == "topic" and definition.name in AWAITED


def having(names: dict[str, Definition], status: str) -> list[Definition]:
    return sorted(d for d in names.values() if d.status == status and not is_kept(d))


def document() -> str:
    mine = [d for d in having(BROKER, "honoured") if d.name.startswith("runnel.")]
    kafkas = [d for d in having(BROKER, "honoured") if not d.name.startswith("runnel.")]
    kept = sorted(d for d in TOPIC.values() if is_kept(d))
    opening = OPENING.read_text()
    sections = ", ".join(f"`{section}`" for section in SECTIONS)
    parts = [
        opening.replace("{sections}", sections).replace("{spellings}", spellings()),
        f"## Counts\n\n{counts()}",
        f"## Runnel's own settings\n\n{full(mine)}",
        f"## Kafka's settings of a broker that are honoured\n\n{full(kafkas)}",
        "## Settings of a topic\n\nSet when a topic is made, or changed while it is used.\n\n"
        f"{full(having(TOPIC, 'honoured'))}",
        "Kept, shown and alterable; what reads them comes later:\n\n" + full(kept),
        "## Ignored\n\nAccepted under Kafka's name so that a file made for Kafka works, without"
        " effect. One that is given at start is warned of.\n\n"
        + short(having(BROKER, "ignored") + having(TOPIC, "ignored") + having(GROUP, "ignored")),
        "## Refused\n\nThey ask for a class of a JVM, or for a guarantee that would silently be"
        " missing: any value but the default stops the start.\n\n"
        + short(having(BROKER, "refused") + having(TOPIC, "refused")),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"{TARGET.relative_to(ROOT)}: {len(BROKER) + len(TOPIC) + len(GROUP)} names")
