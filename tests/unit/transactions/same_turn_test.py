"""Whatever comes in one turn of the loop counts in its order, and a restart changes nothing.

Method: several connections put random requests about the same groups before the loop goes on, and
a model takes them one by one: commits, which are gathered, offsets in transactions and their ends,
deletions, and questions, which must be answered as the model would.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from runnel.client.raw import decode_reply, encode_frame
from runnel.errors import ErrorCode
from runnel.wire.messages.delete_groups import DeleteGroupsRequest
from runnel.wire.messages.end_txn import EndTxnRequest
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from runnel.wire.schema import schema_of
from tests.support.asking import create
from tests.support.asking_groups import commit_request, fetch_offsets, find, txn_commit_request
from tests.support.desk import Desk, at_desk
from tests.support.transactions import FEW, Sender

GROUPS = ("g", "h", "i")
TURNS = 40
BY_NAME = 9  # of commits and fetches
Check = Callable[[Any], None]


class _Turn:
    """What was put and is to be answered; the model says how."""

    def __init__(self, random: Random, sender: Sender) -> None:
        self._random = random
        self._sender = sender
        self.committed: dict[str, int] = {}  # each offset is the number of its request
        self._pending: dict[str, int] = {}
        self._is_open = False
        self._number = 0
        self.is_last = False  # nothing more may be put in this turn
        self._asked: list[tuple[Desk, int, int, int, Check]] = []

    def put_something(self, desk: Desk) -> None:
        group = self._random.choice(GROUPS)
        kinds = (self._commit, self._fetch, self._delete, self._commit_in_transaction, self._end)
        (kind,) = self._random.choices(kinds, (8, 3, 1, 3, 2))
        kind(desk, group)

    def _put(self, desk: Desk, request: object, version: int, check: Check) -> None:
        desk.put(encode_frame(request, version, correlation_id=self._number))
        key = schema_of(type(request)).api_key
        assert key is not None
        self._asked.append((desk, key, version, self._number, check))

    def _commit(self, desk: Desk, group: str) -> None:
        for _ in range(self._random.randint(1, 4)):
            self._number += 1
            self.committed[group] = self._number
            request = commit_request({0: self._number}, group=group)
            self._put(desk, request, BY_NAME, _no_error_of_partitions)

    def _fetch(self, desk: Desk, group: str) -> None:
        self._number += 1
        is_stable = self._random.random() < 0.5
        offset, code = self.committed.get(group, -1), ErrorCode.NONE
        if is_stable and group in self._pending:
            offset, code = -1, ErrorCode.UNSTABLE_OFFSET_COMMIT

        def check(response: Any) -> None:  # noqa: ANN401  # of this request
            (found,) = response.groups[0].topics[0].partitions
            assert (found.committed_offset, found.error_code) == (offset, code)

        topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        wanted = OffsetFetchRequestGroup(group_id=group, topics=[topic])
        request = OffsetFetchRequest(groups=[wanted], require_stable=is_stable)
        self._put(desk, request, BY_NAME, check)

    def _delete(self, desk: Desk, group: str) -> None:
        self._number += 1
        self.committed.pop(group, None)
        self._pending.pop(group, None)
        self._put(desk, DeleteGroupsRequest(groups_names=[group]), 2, lambda _response: None)

    def _commit_in_transaction(self, desk: Desk, group: str) -> None:
        self._number += 1
        self._is_open = True
        self._pending[group] = self._number
        request = txn_commit_request(
            {0: self._number},
            group=group,
            transactional_id=self._sender.transactional_id,
            producer_id=self._sender.producer_id,
            producer_epoch=self._sender.epoch,
        )
        self._put(desk, request, 5, _no_error_of_partitions)

    def _end(self, desk: Desk, _group: str) -> None:
        if not self._is_open:
            return
        self._number += 1
        self._is_open = False
        self.is_last = True  # the next transaction has another epoch, which the answer tells
        is_commit = self._random.random() < 0.6
        for group, offset in self._pending.items() if is_commit else ():
            self.committed[group] = max(offset, self.committed.get(group, -1))
        self._pending.clear()
        sender = self._sender

        def check(response: Any) -> None:  # noqa: ANN401  # of this request
            assert response.error_code == 0
            sender.producer_id, sender.epoch = response.producer_id, response.producer_epoch

        request = EndTxnRequest(
            transactional_id=sender.transactional_id,
            producer_id=sender.producer_id,
            producer_epoch=sender.epoch,
            committed=is_commit,
        )
        self._put(desk, request, 5, check)

    async def end(self) -> None:
        self.is_last = False
        asked, self._asked = self._asked, []
        for desk, key, version, number, check in asked:
            found, response = decode_reply(key, version, await desk.next_frame())
            assert found == number
            check(response)


def _no_error_of_partitions(response: Any) -> None:  # noqa: ANN401  # of either kind of commit
    assert not any(each.error_code for topic in response.topics for each in topic.partitions)


@pytest.mark.parametrize("seed", range(10))
def test_what_comes_in_one_turn_counts_in_its_order(seed: int) -> None:
    async def test(desk: Desk) -> None:
        await create(desk)
        await find(desk, *GROUPS)
        random, sender = Random(seed), Sender(desk)
        await sender.init()
        turn = _Turn(random, sender)
        for number in range(TURNS):
            for _ in range(random.randint(1, 5)):
                turn.put_something(Desk(desk.broker, desk.clock))
                if turn.is_last:
                    break
            await turn.end()
            if number % 10 == 9:
                await desk.restart()
            for group in GROUPS:
                found = await fetch_offsets(desk, group=group)
                assert found["t", 0][0] == turn.committed.get(group, -1)

    at_desk(test, FEW)
