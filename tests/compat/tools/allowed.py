"""The fields that may differ between two brokers, each with its reason; everything else may not.

A field is a pattern and what takes its place before the outputs are compared line by line. Each is
as narrow as what it stands for, and no tool is left out as a whole.
"""

import re
from typing import Final, NamedTuple

DATA_DIR: Final = "data folder"  # its pattern is only known when a broker runs


class Field(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    stands_for: str
    reason: str


def _field(name: str, pattern: str, stands_for: str, reason: str) -> Field:
    return Field(name, re.compile(pattern, re.MULTILINE), stands_for, reason)


_APIS_TO_COME: Final = "|".join(
    [
        "SaslHandshake|SaslAuthenticate",
        "(Describe|Create|Delete)Acls|(Create|Renew|Expire|Describe)DelegationToken",
        "AlterUserScramCredentials|(Add|Remove)RaftVoter",
        r"\w*ShareGroup\w*|ShareFetch|ShareAcknowledge|StreamsGroup\w*",
    ]
)

_OWN_DEFAULTS: Final = (
    r"node\.id|log\.dir|max\.connections"
    r"|socket\.(listen\.backlog\.size|receive\.buffer\.bytes|send\.buffer\.bytes)"
)
_OF_THE_CONTROLLER: Final = (
    r"process\.roles|controller\.listener\.names|controller\.quorum\.voters"
    r"|(advertised\.)?listeners|listener\.security\.protocol\.map"
)

_STATES: Final = "Ongoing|PrepareCommit|PrepareAbort|CompleteCommit|CompleteAbort"

FIELDS: Final = (
    _field(DATA_DIR, r"(?!)", "DATA", "each has a folder of its own"),
    _field("address", r"127\.0\.0\.1([: ])\d+", r"127.0.0.1\1PORT", "each has a port of its own"),
    _field(
        "random id",
        r"(?<=TopicId: )[\w-]{22}|(?<=Cluster ID: )[\w-]{22}|(?<= )[\w-]{22}(?= /127\.0\.0\.1)"
        r"|(?<=console-consumer-)[\da-f-]{36}(?= /127\.0\.0\.1)",
        "ID",
        "drawn at random: of topics, of clusters, of members of groups",
    ),
    _field("timestamp", r"\b1[6-9]\d{11}\b", "TIME_MS", "when the record was produced"),
    _field("checksum", r"(?<=crc: )\d+", "CRC", "covers the timestamp and the producer id"),
    _field(
        "producer id",
        rf"(?<=producerId: )\d+|^((?:\S+ *\t){{0,2}})\d+ *(?=\t(\d+ *\t)?({_STATES})"
        r"|\t\d+ *\t-?\d+ *\t-?\d+ *\tTIME_MS)",
        r"\1ID",
        "how many producers came before; Kafka spends one on each try while it makes its journal",
    ),
    _field(
        "perf figures",
        r"\d+(\.\d+)?(?= (records/sec|MB/sec|ms ))|(?<=avg_throughput\":)\d+(\.\d+)?",
        "N",
        "measured",
    ),
    _field("age of a transaction", r"(?<=TIME_MS) +\t\d+ *", "\tN", "measured"),
    _field("features epoch", r"(?<=Epoch: )\d+$", "N", "how often metadata was written"),
    _field(
        "own settings",
        r"^  runnel\.\S+ sensitive=false synonyms=\{.*\}\n",
        "",
        "Kafka has none of Runnel's own settings",
    ),
    _field(
        "own defaults",
        rf"^  ({_OWN_DEFAULTS})=.*\n",
        "",
        "they differ on purpose, with reasons in docs/configuration.md",
    ),
    _field(
        "controller",
        rf"^  ({_OF_THE_CONTROLLER})=.*\n",
        "",
        "Kafka was told of a controller and its listener beside the broker",
    ),
    _field("hint", r"; did you mean \S+\?", "", "Kafka has no suggestion for a name misspelt"),
    _field(
        "APIs to come",
        rf"^\t({_APIS_TO_COME})\(\d+\): .*\n",
        "",
        "security, share and streams groups are later issues",
    ),
    _field(
        "levels to come",
        r"^(Feature: (share|streams|kraft|eligible\.leader\.replicas)\.version .*"
        r"SupportedMaxVersion): .*\n",
        r"\1\n",
        "what these features switch on is in later issues, or is Kafka's own Raft",
    ),
)


def normalised(text: str, data_dir: str) -> list[str]:
    """Lines that must be equal on both brokers."""
    for field in FIELDS:
        if field.name == DATA_DIR:
            text = text.replace(data_dir, field.stands_for)
        else:
            text = field.pattern.sub(field.stands_for, text)
    return [line.rstrip() for line in text.splitlines() if line.strip()]
