"""Write docs/compatibility.md: clients, APIs and defaults from where they are true.

The text around the tables is `compatibility.md` beside this file; a line `{name}` in it is replaced
by the table of that name. A unit test fails while page and sources disagree.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from runnel.broker.api_table import api_table
from runnel.config.support import REASONED_DEFAULTS
from runnel.wire.apis import APIS
from tests.compat.clients import DRIVERS, OLD_KAFKA
from tests.compat.findings import FINDINGS, not_applicable
from tests.compat.operations import OPERATIONS
from tools.document_configs import KAFKA_DEFAULTS, code, table

ROOT = Path(__file__).resolve().parents[1]
COMPAT = ROOT / "tests/compat"
TARGET = ROOT / "docs/compatibility.md"
TEXT = ROOT / "tools/compatibility.md"
SUBJECTS = {
    "topics": (
        *("create", "create with config", "describe config", "alter config"),
        *("delete records", "add partitions", "delete topic"),
    ),
    "compression": ("none", "gzip", "snappy", "lz4", "zstd"),
    "records": ("headers", "nulls", "large", "many"),
    "read from": ("earliest", "latest", "offset", "timestamp"),
    "classic groups": ("group, classic", "two members, classic"),
    "new groups": ("group, consumer", "two members, consumer"),
    "group offsets": ("offsets by hand", "list, describe group", "delete group"),
    "transactions": ("transaction", "read committed", "transactional copy"),
}
# Where the version of a client is pinned; kcat is whatever Debian has.
PINS = {
    "kafka-clients-4.3": ("java/pom.xml", r"<kafka.version>([\d.]+)<"),
    "kafka-clients-scala": ("scala/pom.xml", r"kafka-clients</artifactId>\s*<version>([\d.]+)<"),
    "confluent-kafka": ("../../requirements.lock", r"^confluent-kafka==([\d.]+)"),
    "kafka-python": ("python/requirements.txt", r"^kafka-python\S*==([\d.]+)"),
    "aiokafka": ("python/requirements.txt", r"^aiokafka\S*==([\d.]+)"),
    "franz-go": ("go/go.mod", r"franz-go v([\d.]+)"),
    "kafkajs": ("node/package.json", r'"kafkajs": "([\d.]+)"'),
    "@platformatic/kafka": ("node/package.json", r'"@platformatic/kafka": "([\d.]+)"'),
    "@confluentinc/kafka-javascript": (
        "node-librdkafka/package.json",
        r'kafka-javascript": "([\d.]+)"',
    ),
    "rskafka": ("rust/Cargo.toml", r'rskafka = "=([\d.]+)"'),
    "rdkafka": ("rust/Cargo.toml", r'\brdkafka = \{ version = "=([\d.]+)"'),
}
LANGUAGES = {
    "Java": ("kafka-clients-4.3", "kafka-clients-3.9"),
    "Scala": ("kafka-clients-scala",),
    "Python": ("confluent-kafka", "kafka-python", "aiokafka"),
    "Go": ("franz-go",),
    "Node.js": ("kafkajs", "@platformatic/kafka", "@confluentinc/kafka-javascript"),
    "Rust": ("rskafka", "rdkafka"),
    "C": ("kcat",),
}
# Why a Kafka broker offers these to clients and this one does not; what no client asks for
# (between Kafka's brokers and controllers) is not shown.
NOT_SERVED = {
    "SASL and access rules: on the way": r"Sasl\w+|\w+Acls|AlterUserScramCredentials",
    "delegation tokens: with security, perhaps": r"\w+DelegationToken",
    "share groups (KIP-932): not yet": r"Share\w+|\w+ShareGroup\w*",
    "streams groups (KIP-1071): not yet; Kafka Streams uses classic groups": r"StreamsGroup\w+",
    "metrics pushed by clients (KIP-714): none are asked for": r"GetTelemetry\w+|PushTelemetry",
}
BETWEEN_BROKERS = (
    r"Vote|\w+QuorumEpoch|AlterPartition|Envelope|FetchSnapshot|Broker\w+|AllocateProducerIds"
    r"|ControllerRegistration|AssignReplicasToDirs|\w+RaftVoter"
)


def version_of(client: str) -> str:
    if client == "kafka-clients-3.9":
        return OLD_KAFKA
    if client not in PINS:
        return "Debian's"
    file, pattern = PINS[client]
    found = re.search(pattern, (COMPAT / file).read_text(), re.MULTILINE)
    assert found is not None, f"no version of {client} in {file}"
    return found[1]


def clients() -> str:
    lacking = not_applicable()
    rows = []
    for language, names in LANGUAGES.items():
        for name in names:
            shown = name.removesuffix("-4.3").removesuffix("-3.9").removesuffix("-scala")
            cells = []
            for operations in SUBJECTS.values():
                missing = sum((name, operation) in lacking for operation in operations)
                done = len(operations) - missing
                cells.append("yes" if not missing else f"{done} of {len(operations)}" * bool(done))
            rows.append(f"| {language} | {shown} {version_of(name)} | {' | '.join(cells)} |")
    return table(" | ".join(["language", "client", *SUBJECTS]), rows)


def reasons() -> str:
    head = FINDINGS.read_text().partition("| client | operations | why |")[2]
    rows = head.partition("\n\n")[0].strip().splitlines()[1:]
    return table("client | operations it has no call for | why", rows)


def operations() -> str:
    rows = (f"| {subject} | {'; '.join(names)} |" for subject, names in SUBJECTS.items())
    return table("subject | operations", rows)


def served() -> str:
    rows = []
    for row in sorted(api_table(), key=lambda row: row.key):
        versions = APIS[row.key].versions
        rows.append(f"| {int(row.key)} | {APIS[row.key].name} | {versions[0]} to {versions[-1]} |")
    return table("key | API | versions", rows)


def not_served() -> str:
    here = {row.key for row in api_table()}
    absent = [api.name for key, api in sorted(APIS.items()) if key not in here]
    rows = []
    for why, pattern in NOT_SERVED.items():
        names = [name for name in absent if re.fullmatch(pattern, name)]
        rows.append(f"| {', '.join(names)} | {why} |")
    left = [
        name
        for name in absent
        if not any(
            re.fullmatch(pattern, name) for pattern in (*NOT_SERVED.values(), BETWEEN_BROKERS)
        )
    ]
    assert not left, f"say why these are not served: {left}"
    return table("API | why", rows)


def defaults() -> str:
    return table(
        "setting | Runnel | Kafka | why",
        (
            f"| `{name}` | {code(value)} | {code(KAFKA_DEFAULTS[name])} | {why} |"
            for name, (value, why) in REASONED_DEFAULTS.items()
        ),
    )


def counts() -> str:
    cells = len(DRIVERS) * len(OPERATIONS)
    lacking = len(not_applicable())
    return (
        f"{len(DRIVERS)} clients, {len(OPERATIONS)} operations: {cells - lacking} pass, none fails,"
        f" {lacking} times a client has no such call.\n"
    )


def document() -> str:
    return _filled(
        TEXT.read_text(),
        {
            "clients": clients(),
            "counts": counts(),
            "operations": operations(),
            "reasons": reasons(),
            "served": served(),
            "not served": not_served(),
            "defaults": defaults(),
        },
    )


def _filled(text: str, tables: dict[str, str]) -> str:
    unused = set(tables)

    def fill(name: re.Match[str]) -> str:
        unused.discard(name[1])
        return tables[name[1]]

    filled = re.sub(r"^\{([a-z ]+)\}\n", fill, text, flags=re.MULTILINE)
    assert not unused, f"the text has no place for {unused}"
    return filled


def named_twice_or_never(all_names: Iterable[str], groups: Iterable[Iterable[str]]) -> list[str]:
    listed = [name for group in groups for name in group]
    return [name for name in {*all_names, *listed} if listed.count(name) != 1]


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"{TARGET.name}: {counts()}", end="")
