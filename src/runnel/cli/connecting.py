"""A cluster for the length of a command, and its errors in words that say what to do next."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from runnel.cli.output import EXIT_FAILED, EXIT_REFUSED, CommandError, note, sentence
from runnel.client.cluster import (
    PASSING,
    TIMEOUT_S,
    ClientError,
    Cluster,
    MisdirectedError,
    RefusedError,
    UnreachableError,
    addresses_of,
)
from runnel.errors import ErrorCode

ADVICE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "'runnel topic list' shows what there is.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Choose another name, or look at it with"
    " 'runnel topic describe'.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "A name has up to 249 of a-z, A-Z, 0-9, '.', '_' and '-'.",
    ErrorCode.INVALID_PARTITIONS: "'runnel topic describe' shows how many there are; they can"
    " only become more.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "A topic cannot have more replicas than there are"
    " brokers: leave --replication-factor out.",
    ErrorCode.INVALID_CONFIG: "'runnel config describe --all --topic TOPIC' shows the names and"
    " values of one that is there.",
    ErrorCode.INVALID_REQUEST: "Check the names and values given.",
    ErrorCode.POLICY_VIOLATION: "The broker's policy forbids it; ask who runs it.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "This user may not do that; ask who runs the broker.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "This user may not do that; ask who runs the broker.",
    ErrorCode.TOPIC_DELETION_DISABLED: "The broker runs with delete.topic.enable=false.",
    ErrorCode.MESSAGE_TOO_LARGE: "Raise the topic's max.message.bytes with 'runnel config set',"
    " or send less at once.",
    ErrorCode.INVALID_RECORD: "A compacted topic takes no record without a key: see --key and"
    " --key-separator.",
    ErrorCode.INVALID_TIMESTAMP: "The topic's message.timestamp settings refuse this time.",
    ErrorCode.GROUP_ID_NOT_FOUND: "'runnel group list' shows what there is.",
    ErrorCode.NON_EMPTY_GROUP: "Stop its consumers first; 'runnel group describe --members' shows"
    " where they run.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has members, and only they may commit: stop"
    " them first.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Members of the group read that topic: stop them first.",
    ErrorCode.INVALID_GROUP_ID: "A group's name must not be empty.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "This user may not do that; ask who runs the broker.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "'runnel transaction list' shows what there is.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "This user may not do that; ask who runs the"
    " broker.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "Its producer has gone on since: look again with"
    " 'runnel transaction find-hanging'.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "Begin elsewhere: --from beginning.",
}


UNKNOWN_NAME: Final = "Unknown topic config name: "  # Kafka's words
PASSING_ADVICE: Final = {
    ErrorCode.KAFKA_STORAGE_ERROR: "The broker's disk is full or has failed, its log says which:"
    " mend that, and start the broker again.",
}


class NoBrokerError(CommandError):
    """Nobody answers: some commands can do without."""


@contextmanager
def connected(bootstrap: str) -> Iterator[Cluster]:
    """Raises CommandError for whatever goes wrong with the cluster inside the block."""
    try:
        addresses = addresses_of(bootstrap)
    except ValueError as error:
        raise CommandError(
            f"--bootstrap-server: {error}. Write it as localhost:9092, several with commas."
        ) from None
    with Cluster(addresses, on_wait=_say_that_it_waits) as cluster:
        try:
            yield cluster
        except ClientError as error:
            raise told(error) from None


def _say_that_it_waits(error: ClientError) -> None:
    text = str(error).rstrip(".")
    note(f"waiting, for {TIMEOUT_S:g} s at most: {text}. Ctrl-C gives up.")


def told(error: ClientError) -> CommandError:
    """The line that a user reads."""
    text = str(error).rstrip(".")
    if isinstance(error, MisdirectedError):
        return CommandError(
            f"{text}. If it runs, its advertised.listeners have to name an address that can be"
            " reached from here ('runnel serve --advertised-host').",
            EXIT_FAILED,
        )
    if isinstance(error, UnreachableError):
        return NoBrokerError(
            f"no broker answers: {text}. Is it running ('runnel serve')? Another is named with"
            " --bootstrap-server or RUNNEL_BOOTSTRAP_SERVER.",
            EXIT_FAILED,
        )
    if not isinstance(error, RefusedError):
        return CommandError(f"{text}; it may be older than this command.", EXIT_FAILED)
    if error.code in PASSING:
        advice = PASSING_ADVICE.get(
            error.code, "It did not pass within the time-out; try again later."
        )
        return CommandError(f"{text}. {advice}", EXIT_FAILED)
    if error.code == ErrorCode.INVALID_CONFIG:
        text += _nearest_name(text)
    advice = ADVICE.get(error.code, f"The broker's error code is {error.code.name}.")
    return CommandError(f"{sentence(text)} {advice}", EXIT_REFUSED)


def _nearest_name(text: str) -> str:
    """For a setting of a topic that is misspelt; empty if that is not what is wrong."""
    _, unknown, name = text.partition(UNKNOWN_NAME)
    if not unknown:
        return ""
    from runnel.config.registry import TOPIC, suggestion

    return suggestion(name, TOPIC)
