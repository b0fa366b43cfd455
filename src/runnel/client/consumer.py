"""The blocking consumer."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from runnel.client.assigning import RebalanceListener
from runnel.client.committing import Committing
from runnel.client.failures import ClientTimeoutError, ConfigurationError
from runnel.client.message import Message
from runnel.client.offsets import Partition, TopicPartition

POLL_TIMEOUT_S = 1.0
UNTIL_END_TIMEOUT_S = 60.0
END_SLICE_S = 0.1


class Consumer(Committing):
    """Reads messages, alone or as a member of a group; for one thread, except for `stop`.

        with Consumer(ConsumerConfig("localhost:9092", group_id="billing")) as consumer:
            consumer.subscribe("orders")
            for message in consumer:
                print(message.offset, message.value)

    A group goes on where it stopped. A message counts as handled when the next one is asked for; a
    block that ends with an error does not count the messages it had in hand, so that they are read
    again.
    """

    _is_stopping = False

    def start(self) -> Self:
        """Wait for a first answer of a broker; `with` does it. Raises BrokerUnavailableError."""
        self.reach()
        return self

    def subscribe(
        self,
        topics: str | Sequence[str],
        partitions: int | Sequence[int] | None = None,
        *,
        on_assign: RebalanceListener | None = None,
        on_revoke: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
    ) -> None:
        """Read these topics, as the group shares them out, or these partitions of one topic.

        In a group a topic that starts with `^` is a regular expression. Without one all partitions
        are read. `on_assign`, `on_revoke` and `on_lost` are called by `poll` with lists of
        `TopicPartition`; in `on_assign` one may `seek`, and in `on_revoke` still commit.
        """
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            raise ConfigurationError("no topic was given to subscribe")
        if partitions is not None:
            if len(names) != 1:
                raise ConfigurationError("partitions are given for one topic at a time")
            wanted = [partitions] if isinstance(partitions, int) else partitions
            self.assign([(names[0], index) for index in wanted])
        elif self.config.group_id is None:
            if patterns := [name for name in names if name.startswith("^")]:
                raise ConfigurationError(
                    f"{patterns[0]} is a regular expression: only a group can subscribe to one, "
                    "so set group_id"
                )
            self.assign(self.partitions_of(names))
        else:
            self.subscribe_to(names, on_assign, on_revoke, on_lost)

    def unsubscribe(self) -> None:
        """Give all partitions back; what was handled can still be committed before."""
        self._must_not_be_listener("unsubscribe")
        self.store_handled()
        was_subscribed, self._is_subscribed = self._is_subscribed, False
        if self._is_manual:
            self.raw.unassign()
            self._forget(self.assignment())
        elif was_subscribed:
            # librdkafka's own `unsubscribe` is done later: a subscription that follows would be
            # told of these partitions, and partitions given by hand would be taken with them.
            self._end_raw()
            self._raise_kept()

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now; none before the first `poll` in a group."""
        return [TopicPartition(*partition) for partition in self._assignment.partitions]

    # Reading

    def poll(
        self, timeout_s: float = POLL_TIMEOUT_S, max_records: int | None = None
    ) -> list[Message]:
        """The next messages, `max_poll_records` at most; none if none came in time."""
        limit = self.config.max_poll_records if max_records is None else max_records
        if self._handout.is_empty:
            self._refill(limit, timeout_s)
        return self.take(limit)

    def consume_one(self, timeout_s: float = POLL_TIMEOUT_S) -> Message | None:
        """The next message, or None if none came in time."""
        if time.monotonic() >= self._store_at:  # `take_one`, without a call for each message
            self._store_again()
        message = self._handout.take_one()
        if message is None:
            self._refill(self.config.max_poll_records, timeout_s)
            message = self._handout.take_one()
        return message

    def _refill(self, limit: int, timeout_s: float) -> None:
        self.store_handled()
        self._handout.put(self.fetch(limit, timeout_s))

    def messages(self, idle_timeout_s: float | None = None) -> Iterator[Message]:
        """One message after the other, until `stop`, or until none came for `idle_timeout_s`."""
        self._is_stopping = False
        handout, now = self._handout, time.monotonic
        while not self._is_stopping:
            message = handout.take_one()
            if message is None:
                message = self._wait_for_one(idle_timeout_s)
                if message is None:
                    return
            yield message
            if now() >= self._store_at:
                self._store_again()

    def _wait_for_one(self, idle_timeout_s: float | None) -> Message | None:
        """What comes before a first answer does not count as idle, within a session's time."""
        started = time.monotonic()
        joined_by = started + self.config.session_timeout_ms / 1000
        while not self._is_stopping:
            timeout_s = POLL_TIMEOUT_S
            if idle_timeout_s is not None:
                timeout_s = min(timeout_s, idle_timeout_s)
            message = self.consume_one(timeout_s)
            if message is not None:
                return message
            if idle_timeout_s is None:
                continue
            now = time.monotonic()
            if not self.has_begun and now < joined_by:
                started = now
            elif now - started >= idle_timeout_s:
                break
        return None

    def until_end(self, timeout_s: float = UNTIL_END_TIMEOUT_S) -> Iterator[Message]:
        """All messages up to the ends of the partitions as they are now, then stop.

        In a group: of the partitions that it gets first. What is written meanwhile is left for
        later. Raises ClientTimeoutError if the ends are not reached in time.
        """
        deadline = time.monotonic() + timeout_s
        ends: dict[Partition, int] | None = None
        handout = self._handout
        while True:
            if ends is None and self._assignment.partitions:
                ends = self.ends_ahead()
            is_drained = handout.is_empty
            if is_drained and ends is not None:
                ends = self.still_ahead(ends)
            if ends is not None and not ends:
                return
            if is_drained:
                if time.monotonic() > deadline:
                    raise end_not_reached(ends, timeout_s)
                self._refill(self.config.max_poll_records, END_SLICE_S)
            elif ends is not None:
                message = self.take_one()
                assert message is not None, "it is not drained"
                yield message
                partition = (message.topic, message.partition)
                if message.next_offset >= ends.get(partition, message.next_offset + 1):
                    del ends[partition]

    def __iter__(self) -> Iterator[Message]:
        return self.messages()

    def start_consuming(
        self, callback: Callable[[Message], Any], *, idle_timeout_s: float | None = None
    ) -> None:
        """Call it with each message, until it returns False or somebody calls `stop`.

        What it raises ends this call, and the message is not counted as handled; to go on with the
        next one instead, see `DeadLetters`.
        """
        for message in self.messages(idle_timeout_s):
            if callback(message) is False:
                break
        self.all_is_handled()

    def stop(self) -> None:
        """End a running iteration or `start_consuming` soon; from any thread or signal handler."""
        self._is_stopping = True

    # The end

    def close(self) -> None:
        """Commit what was handled, if that is automatic, and leave the group.

        Not in a listener, which `stop` is for. Raises what a listener has raised meanwhile.
        """
        self._must_not_be_listener("close")
        self.all_is_handled()
        self.leave()

    def leave(self) -> None:
        """Close, without counting the messages in hand as handled: they are read again."""
        self._must_not_be_listener("close")
        self._is_closed = True
        if self._raw is None:
            return
        try:
            self.store()
        finally:  # or the group would wait for this member until its session ends
            self._end_raw()
        self._raise_kept()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.leave()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.leave()


def end_not_reached(ends: Mapping[Partition, int] | None, timeout_s: float) -> ClientTimeoutError:
    if ends is None:
        return ClientTimeoutError(f"no partition was assigned within {timeout_s:g} s")
    left = ", ".join(f"{topic}-{partition}" for topic, partition in ends)
    return ClientTimeoutError(f"the end of {left} was not reached within {timeout_s:g} s")
