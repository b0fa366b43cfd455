"""Committed offsets of groups that have no members."""

from runnel.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from runnel.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.golden.talk import Talk


async def offsets_without_members(talk: Talk) -> None:
    await talk.groups_ready()
    await talk.topic("t", partitions=2)
    committed = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index * 10, committed_metadata="so far"
        )
        for index in (0, 1, 7)
    ]
    topic = OffsetCommitRequestTopic(name="t", partitions=committed)
    for version in (2, 5, 9):
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        await talk.ask(request, version)
    await talk.ask(OffsetCommitRequest(group_id="g", member_id="nobody", topics=[topic]), 9)
    stale = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=3, topics=[topic])
    await talk.ask(stale, 9)
    asked = OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1, 7])
    await talk.ask(OffsetFetchRequest(group_id="g", topics=[asked]), 5)
    group = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 5])]
    )
    await talk.ask(OffsetFetchRequest(groups=[group]), 9)
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    nobody = OffsetFetchRequestGroup(group_id="unknown", topics=None)
    await talk.ask(OffsetFetchRequest(groups=[everything, nobody]), 9)
    await talk.restart()
    await talk.ask(OffsetFetchRequest(groups=[everything]), 9)
    await talk.journal("__consumer_offsets")
