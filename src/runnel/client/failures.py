"""What can go wrong, as a small tree of exceptions whose messages say what to do.

    ClientError
      ConfigurationError       a setting is wrong or missing            (also a ValueError)
      BrokerUnavailableError   no broker answered
      ClientTimeoutError       something did not happen in time         (also a TimeoutError)
      QueueFullError           a full send queue did not drain in time
      SerializationError       a key or value does not fit its format   (also a ValueError)
      DeliveryError            a message was not delivered
      ConsumeError             messages cannot be read
      CommitError              offsets were not committed
      TransactionError         a transaction was aborted; do it again
        FencedError            another producer took over; this one is done

`retriable` says whether the same call may succeed later. `code` is librdkafka's name of the error,
`UNKNOWN_TOPIC_OR_PART` for one, or empty.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException


class ClientError(Exception):
    """All that this library raises by itself is one of these."""

    def __init__(self, message: str, *, code: str = "", retriable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retriable = retriable


class ConfigurationError(ClientError, ValueError):
    """A setting is wrong or missing; the message names it."""


class BrokerUnavailableError(ClientError):
    """No broker answered at the given addresses."""


class ClientTimeoutError(ClientError, TimeoutError):
    """Something did not happen within the time that was given for it."""


class QueueFullError(ClientError):
    """The queue of messages to send was full for `max_block_ms`: brokers are slower than sends."""


class SerializationError(ClientError, ValueError):
    """A key or a value could not be turned into bytes, or bytes into a value."""


class DeliveryError(ClientError):
    """A message was not delivered, after all retries."""


class ConsumeError(ClientError):
    """Messages cannot be read."""


class CommitError(ClientError):
    """Offsets were not committed: the messages after them will be read again."""


class TransactionError(ClientError):
    """The transaction was aborted: nothing of it is visible, and it can be done again."""


class FencedError(TransactionError):
    """Another producer started with the same transactional id: this one cannot go on."""


# By the name of librdkafka's error.
_ADVICE = {
    "_ALL_BROKERS_DOWN": "start a broker (`runnel serve`) or check bootstrap_servers",
    "_TRANSPORT": "start a broker (`runnel serve`) or check bootstrap_servers",
    "_RESOLVE": "check the host name in bootstrap_servers",
    "_AUTHENTICATION": "check sasl_username, sasl_password and sasl_mechanism",
    "_SSL": "check security_protocol and the certificates",
    "_MSG_TIMED_OUT": "no broker took it within delivery_timeout_ms: see whether the broker runs",
    "_UNKNOWN_TOPIC": "create it: `runnel topic create NAME`",
    "UNKNOWN_TOPIC_OR_PART": "create it: `runnel topic create NAME`",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions: see `runnel topic describe NAME`",
    "MSG_SIZE_TOO_LARGE": "raise max_request_size here and max.message.bytes of the topic",
    "TOPIC_EXCEPTION": "names of topics are letters, digits, `.`, `_` and `-`, 249 at most",
    "TOPIC_AUTHORIZATION_FAILED": "the user lacks the right to this topic",
    "GROUP_AUTHORIZATION_FAILED": "the user lacks the right to this group",
    "_MAX_POLL_EXCEEDED": "poll more often, lower max_poll_records or raise max_poll_interval_ms",
    "ILLEGAL_GENERATION": "the group was rebalanced meanwhile: poll again, then commit",
    "UNKNOWN_MEMBER_ID": "the group went on without this member: poll again, then commit",
    "REBALANCE_IN_PROGRESS": "the group is being rebalanced: poll again, then commit",
    "_STATE": "the partition is not assigned to this consumer, or not any more",
    "_AUTO_OFFSET_RESET": "nothing is committed, or it was deleted: seek, or set auto_offset_reset",
    "INCONSISTENT_GROUP_PROTOCOL": (
        "other members of the group assign partitions in another way: "
        "set partition_assignment_strategy as they do"
    ),
    "_FENCED": "another producer uses this transactional_id: close this one",
    "PRODUCER_FENCED": "another producer uses this transactional_id: close this one",
    "INVALID_PRODUCER_EPOCH": "another producer uses this transactional_id: close this one",
    "FENCED_INSTANCE_ID": "another member uses this group_instance_id: close this one",
}
_UNREACHABLE = {"_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE"}
_FENCING = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}


def error_of(exception: "KafkaException") -> "KafkaError":
    """What a KafkaException is about."""
    error: KafkaError = exception.args[0]
    return error


def explained(error: "KafkaError", what: str, kind: type[ClientError] = ClientError) -> ClientError:
    """An error of librdkafka as one of ours: what failed, why, and what to do about it."""
    name = error.name()
    if name in _FENCING:
        kind = FencedError
    elif name in ("_TIMED_OUT", "_TIMED_OUT_QUEUE"):
        kind = ClientTimeoutError
    elif kind is ClientError and name in _UNREACHABLE:
        kind = BrokerUnavailableError
    advice = _ADVICE.get(name)
    text = f"{what}: {error.str()} ({name})" + (f"; {advice}" if advice else "")
    return kind(text, code=name, retriable=error.retriable())
