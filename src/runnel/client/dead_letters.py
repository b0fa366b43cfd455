"""Messages that cannot be handled: tried again, then put aside, so that the others go on.

    dead_letters = DeadLetters(producer, tries=3)
    consumer.start_consuming(dead_letters.guard(handle))

After the last try the message is sent to `<topic>.dlq`, with its key, its value and its headers as
they were, and headers that say why, from where and when. It is acknowledged there before the next
message is asked for: it is always in one of the two topics. `replay` sends dead letters back.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, Final

from runnel.client.async_producer import AsyncProducer
from runnel.client.backoff import Backoff
from runnel.client.consumer import Consumer
from runnel.client.failures import ConfigurationError
from runnel.client.message import Message, RawHeaders
from runnel.client.producer import Producer

SUFFIX: Final = ".dlq"
PREFIX: Final = "dlq."
TOPIC: Final = "dlq.topic"
PARTITION: Final = "dlq.partition"
OFFSET: Final = "dlq.offset"
TIME: Final = "dlq.timestamp"  # when it was given up, in milliseconds since 1970
TRIES: Final = "dlq.tries"
ERROR: Final = "dlq.error"  # the name of the exception
REASON: Final = "dlq.reason"  # what the exception says
REPLAYS: Final = "dlq.replays"  # how often it was sent back
REASON_CHARS_MAX: Final = 1000

Handler = Callable[[Message], Any]


class _Rules:
    """How often a message is tried, and what it looks like as a dead letter."""

    def __init__(self, tries: int, backoff: Backoff | None, topic: str | None) -> None:
        if tries < 1:
            raise ConfigurationError(f"tries is {tries}: there has to be at least one")
        self.tries = tries
        self.backoff = backoff or Backoff()
        self._topic = topic

    def topic_for(self, message: Message) -> str:
        return message.topic + SUFFIX if self._topic is None else self._topic

    def headers_for(self, message: Message, error: Exception) -> RawHeaders:
        replays = message.header(REPLAYS, "0") or "0"
        why = {
            TOPIC: message.topic,
            PARTITION: str(message.partition),
            OFFSET: str(message.offset),
            TIME: str(int(time.time() * 1000)),
            TRIES: str(self.tries),
            ERROR: type(error).__name__,
            REASON: str(error)[:REASON_CHARS_MAX],
            REPLAYS: replays,
        }
        kept = [(name, value) for name, value in message.raw_headers if name not in why]
        # Whatever an exception says: half a character in it must not keep the message here.
        return [*kept, *((name, text.encode(errors="replace")) for name, text in why.items())]


class DeadLetters:
    """Tries a handler several times, then puts the message aside.

    `topic` is where to, by default the message's own topic with `.dlq`. The producer must have no
    serializers: bytes are sent as they were.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        tries: int = 3,
        backoff: Backoff | None = None,
        topic: str | None = None,
    ) -> None:
        self._rules = _Rules(tries, backoff, topic)
        self._producer = _plain(producer)

    def handle(self, message: Message, handler: Handler) -> Any:  # noqa: ANN401  # the handler's
        """What the handler returns, or None if the message was put aside."""
        waits = self._rules.backoff.waits_s()
        for left in range(self._rules.tries - 1, -1, -1):
            try:
                return handler(message)
            except Exception as error:  # noqa: BLE001  # whatever a handler raises
                if left == 0:
                    self.put_aside(message, error)
                else:
                    time.sleep(next(waits))
        return None

    def put_aside(self, message: Message, error: Exception) -> None:
        """At once; returns when the broker has it. Raises DeliveryError."""
        self._producer.send(
            self._rules.topic_for(message),
            message.raw_value,
            message.raw_key,
            self._rules.headers_for(message, error),
            message.timestamp if message.timestamp > 0 else None,
        ).result()

    def guard(self, handler: Handler) -> Handler:
        """The handler for `start_consuming`, which never sees what was put aside."""
        return lambda message: self.handle(message, handler)


class AsyncDeadLetters:
    """`DeadLetters` for asyncio; the handler may be a coroutine function."""

    def __init__(
        self,
        producer: AsyncProducer,
        *,
        tries: int = 3,
        backoff: Backoff | None = None,
        topic: str | None = None,
    ) -> None:
        self._rules = _Rules(tries, backoff, topic)
        self._producer = _plain(producer)

    async def handle(self, message: Message, handler: Handler) -> Any:  # noqa: ANN401  # its own
        """What the handler returns, or None if the message was put aside."""
        waits = self._rules.backoff.waits_s()
        for left in range(self._rules.tries - 1, -1, -1):
            try:
                answer = handler(message)
                return await answer if inspect.isawaitable(answer) else answer
            except Exception as error:  # noqa: BLE001  # whatever a handler raises
                if left == 0:
                    await self.put_aside(message, error)
                else:
                    await asyncio.sleep(next(waits))
        return None

    async def put_aside(self, message: Message, error: Exception) -> None:
        """At once; returns when the broker has it. Raises DeliveryError."""
        await self._producer.send_and_wait(
            self._rules.topic_for(message),
            message.raw_value,
            message.raw_key,
            self._rules.headers_for(message, error),
            message.timestamp if message.timestamp > 0 else None,
        )

    def guard(self, handler: Handler) -> Handler:
        """The handler for `start_consuming`, which never sees what was put aside."""
        return lambda message: self.handle(message, handler)


def replay(
    consumer: Consumer,
    producer: Producer,
    *,
    idle_timeout_s: float = 5.0,
    select: Callable[[Message], bool] = lambda _: True,
) -> int:
    """Send dead letters back to the topics they came from; how many.

    The consumer is subscribed to the topic of dead letters, by a group of its own, so that none is
    sent back twice; it ends when none came for `idle_timeout_s`. Those for which `select` is False
    are passed over. A header counts how often a message was sent back.
    """
    count = 0
    _plain(producer)
    for message in consumer.messages(idle_timeout_s):
        origin = message.header(TOPIC)
        if origin is None or not select(message):
            continue
        replays = int(message.header(REPLAYS, "0") or "0") + 1
        kept = [pair for pair in message.raw_headers if not pair[0].startswith(PREFIX)]
        producer.send(
            origin,
            message.raw_value,
            message.raw_key,
            [*kept, (REPLAYS, str(replays).encode())],
        ).result()
        count += 1
    return count


def _plain(producer: Any) -> Any:  # noqa: ANN401  # either producer, given back as it is
    if producer.config.value_serializer is not None or producer.config.key_serializer is not None:
        raise ConfigurationError("dead letters are bytes: use a producer without serializers")
    return producer
