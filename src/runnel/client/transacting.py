"""The transactions of a producer: begin, offsets, commit, abort, with the retries that are safe.

librdkafka tells three kinds of errors apart. Retriable ones are tried again here, within the
transaction's time. Those that require an abort become TransactionError: the transaction was
aborted, and the caller may do it again. All others are final, above all that another producer of
the same id has taken over (FencedError).
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from runnel.client.backoff import Backoff
from runnel.client.dependency import confluent_kafka
from runnel.client.failures import (
    ClientTimeoutError,
    ConfigurationError,
    TransactionError,
    error_of,
    explained,
)

if TYPE_CHECKING:
    from runnel.client.consumer import Consumer
    from runnel.client.offsets import Offsets
    from runnel.client.outbox import Outbox

KafkaException = confluent_kafka.KafkaException


class Transactions:
    """Of one producer that was started with a `transactional_id`."""

    def __init__(self, outbox: "Outbox") -> None:
        self._outbox = outbox
        self._is_open = False
        self._timeout_s = outbox.config.transaction_timeout_ms / 1000

    @staticmethod
    def of(transactions: "Transactions | None") -> "Transactions":
        if transactions is None:
            raise ConfigurationError(
                "no transactions without ProducerConfig(transactional_id=...) and `start`"
            )
        return transactions

    def initialise(self) -> None:
        """Ends what an earlier producer of this id left open, and fences it."""
        self._tried(
            lambda left_s: self._outbox.raw.init_transactions(left_s),
            "the transactional id could not be taken",
        )

    def begin(self) -> None:
        if self._is_open:
            raise TransactionError("a transaction is open already: commit or abort it first")
        try:
            self._outbox.raw.begin_transaction()
        except KafkaException as error:
            raise explained(
                error_of(error), "no transaction could be begun", TransactionError
            ) from None
        self._is_open = True

    def send_offsets(self, consumer: "Consumer", offsets: "Offsets | None" = None) -> None:
        places = consumer.offsets_to_commit(offsets)
        if places:
            metadata = consumer.raw.consumer_group_metadata()
            self._tried(
                lambda left_s: self._outbox.raw.send_offsets_to_transaction(
                    places, metadata, left_s
                ),
                "the offsets could not be made part of the transaction",
            )

    def commit(self) -> None:
        self._must_be_open()
        self._tried(self._outbox.raw.commit_transaction, "the transaction was not committed")
        self._is_open = False

    def abort(self) -> None:
        self._must_be_open()
        self._is_open = False
        self._tried(self._outbox.raw.abort_transaction, "the transaction could not be aborted")
        self._outbox.forget_failures()  # of messages that were purged on purpose

    def abort_if_open(self) -> None:
        """After an error, which is the one to tell; the broker's timer does the rest."""
        if self._is_open:
            try:
                self.abort()
            except (TransactionError, ClientTimeoutError):
                self._outbox.forget_failures()

    def _must_be_open(self) -> None:
        if not self._is_open:
            raise TransactionError("no transaction was begun")

    def _tried(self, call: Callable[[float], None], what: str) -> None:
        deadline = time.monotonic() + self._timeout_s
        for wait_s in Backoff(first_ms=20, max_ms=1000).waits_s():
            try:
                return call(max(deadline - time.monotonic(), 0.001))
            except KafkaException as exception:
                error = error_of(exception)
                if error.retriable() and time.monotonic() + wait_s < deadline:
                    time.sleep(wait_s)
                    continue
                failure = explained(error, what, TransactionError)
                if error.txn_requires_abort():
                    self.abort_if_open()
                elif error.fatal():
                    self._is_open = False  # there is nothing that this producer could abort
                    self._outbox.end_is_told = True
                raise failure from None
