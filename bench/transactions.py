"""Transactions as fast as a broker ends them: producers that each send a batch and commit it.

The newer protocol (KIP-890): the first produce adds its partition to the transaction, and every
commit brings a new epoch. A producer does as clients do: it commits when its records are
acknowledged, and tries again when the markers of the transaction before are not written yet.
"""

import selectors
import struct
import time
from typing import NamedTuple

from bench.coordination import PASSING, TIMEOUT_S, await_coordinator
from runnel.bench.frames import TIMEOUT_MS, values
from runnel.bench.load import Result
from runnel.bench.pipeline import LoadError
from runnel.bench.topics import passing_topic, unique_name
from runnel.bench.usage import Usage
from runnel.client.coordinators import KeyType
from runnel.client.raw import Address, Topic, WireClient, decode_reply, encode_frame
from runnel.errors import ErrorCode
from runnel.native.columns import Record
from runnel.native.encode import encode
from runnel.wire.apis import ApiKey
from runnel.wire.batch import CRC_START, crc32c
from runnel.wire.messages.end_txn import EndTxnRequest
from runnel.wire.messages.init_producer_id import InitProducerIdRequest
from runnel.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

END_TXN_VERSION = 5  # of KIP-890, as are the versions of Produce from 12
PRODUCE_SINCE = 12
RETRY_S = 0.02  # as Kafka's Java client waits
_PRODUCER = struct.Struct(">qh")  # id and epoch
_PRODUCER_AT, _CRC_AT = 43, 17
_CRC = struct.Struct(">I")


class Transactions(NamedTuple):
    """Each producer has a transactional id, a connection and a partition of its own."""

    producers: int = 16
    records: int = 100
    record_bytes: int = 100


class Producer:
    """One request is open at a time. `count` is how many transactions were committed."""

    def __init__(
        self, address: Address, name: str, topic: Topic, index: int, load: Transactions
    ) -> None:
        self.client = WireClient(address, timeout_s=TIMEOUT_S)
        self.count = 0
        self.retry_at = 0.0  # when to send what was refused; 0 while a reply is awaited
        self._name = name
        self._produce_version = self.client.version_of(ApiKey.PRODUCE)
        if self._produce_version < PRODUCE_SINCE:
            raise LoadError("the broker does not know KIP-890's transactions")
        await_coordinator(self.client, KeyType.TRANSACTION, name)
        self._producer_id, self._epoch = self._initialised()
        now_ms = time.time_ns() // 1_000_000
        records = [Record(None, value, now_ms) for value in values(load.record_bytes, load.records)]
        batch = encode(records, producer_id=self._producer_id, base_sequence=0, transactional=True)
        rows = [PartitionProduceData(index=index, records=bytes(batch))]
        request = ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[
                TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=rows)
            ],
        )
        self._frame = bytearray(encode_frame(request, self._produce_version))
        self._batch_at = self._frame.index(batch)
        self._batch_end = self._batch_at + len(batch)
        self._is_ending = False

    def _initialised(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=60_000)
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            reply = self.client.call(request)
            if not reply.error_code:
                return reply.producer_id, reply.producer_epoch
            if reply.error_code not in PASSING:
                break
            time.sleep(RETRY_S)
        raise LoadError(f"{self._name} gets no producer id: {ErrorCode(reply.error_code).name}")

    def send(self) -> None:
        """The request that is due: the records, or the commit."""
        self.retry_at = 0.0
        if self._is_ending:
            request = EndTxnRequest(
                transactional_id=self._name,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                committed=True,
            )
            self.client.sock.sendall(encode_frame(request, END_TXN_VERSION))
            return
        frame, at = self._frame, self._batch_at
        _PRODUCER.pack_into(frame, at + _PRODUCER_AT, self._producer_id, self._epoch)
        checked = memoryview(frame)[at + CRC_START : self._batch_end]
        _CRC.pack_into(frame, at + _CRC_AT, crc32c(checked))
        self.client.sock.sendall(frame)

    def on_reply(self) -> bool:
        """Whether a transaction is now committed. Raises LoadError for what does not pass."""
        if self._is_ending:
            _, reply = decode_reply(ApiKey.END_TXN, END_TXN_VERSION, self.client.receive_frame())
            code = reply.error_code
        else:
            frame = self.client.receive_frame()
            _, reply = decode_reply(ApiKey.PRODUCE, self._produce_version, frame)
            code = reply.responses[0].partition_responses[0].error_code
        if code:
            if code not in PASSING:
                what = "commit" if self._is_ending else "produce"
                raise LoadError(f"{self._name} cannot {what}: {ErrorCode(code).name}")
            self.retry_at = time.perf_counter() + RETRY_S
            return False
        if self._is_ending:
            self._producer_id, self._epoch = reply.producer_id, reply.producer_epoch
            self.count += 1
        self._is_ending = not self._is_ending
        return not self._is_ending


def commit_transactions(
    address: Address, load: Transactions, *, seconds: float, pid: int | None = None
) -> Result:
    """For so long; the transactions that are open then are committed too, and counted."""
    prefix = unique_name("transactions")
    with (
        WireClient(address) as client,
        passing_topic(client, "transactions", load.producers) as topic,
        selectors.DefaultSelector() as selector,
    ):
        producers = [
            Producer(address, f"{prefix}-{index}", topic, index, load)
            for index in range(load.producers)
        ]
        for producer in producers:
            selector.register(producer.client.sock, selectors.EVENT_READ, producer)
        try:
            _run(producers, selector, 0.0)  # one each, which makes brokers write files beside them
            usage, own_cpu_s = Usage(pid), time.process_time()
            before, started = sum(each.count for each in producers), time.perf_counter()
            _run(producers, selector, seconds)
            took_s = time.perf_counter() - started
            own_cpu_s = time.process_time() - own_cpu_s
            count = sum(each.count for each in producers) - before
            batch_bytes = load.records * load.record_bytes
            return Result(took_s, count, count * batch_bytes, own_cpu_s / took_s, usage.cost())
        finally:
            for producer in producers:
                producer.client.close()


def _run(producers: list[Producer], selector: selectors.BaseSelector, seconds: float) -> None:
    """Returns when nobody has a transaction open. Raises LoadError if the broker stalls."""
    end = time.perf_counter() + seconds
    open_count = len(producers)
    for producer in producers:
        producer.send()
    while open_count:
        waiting = [producer for producer in producers if producer.retry_at]
        wait_s = min((each.retry_at for each in waiting), default=0.0) - time.perf_counter()
        events = selector.select(max(0.0, wait_s) if waiting else TIMEOUT_S)
        if not events and not waiting:
            raise LoadError(f"no reply for {TIMEOUT_S} s")
        now = time.perf_counter()
        for producer in waiting:
            if producer.retry_at <= now:
                producer.send()
        for key, _ in events:
            producer = key.data
            if not producer.on_reply():
                if not producer.retry_at:
                    producer.send()
            elif time.perf_counter() < end:
                producer.send()
            else:
                open_count -= 1
