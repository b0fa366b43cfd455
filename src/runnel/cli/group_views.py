"""What `runnel group describe` prints of a group: itself, its members, its offsets."""

from collections.abc import Sequence
from typing import Any

from runnel.cli.output import Cell, note, show_fields, show_table
from runnel.client.group_lag import Lag
from runnel.client.groups import Group, Member, Owned


def state_document(group: Group) -> dict[str, Any]:
    return {
        "group": group.group,
        "type": group.group_type,
        "state": group.state,
        "protocol": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "epoch": group.epoch,
        "member_count": len(group.members),
    }


def member_documents(group: Group) -> dict[str, Any]:
    rows = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "epoch": member.epoch,
            "owned": {topic: list(indexes) for topic, indexes in member.owned.items()},
        }
        for member in group.members
    ]
    return {**state_document(group), "members": rows}


def described(group: Group, lags: Sequence[Lag]) -> dict[str, Any]:
    rows = [
        {
            "topic": row.topic,
            "partition": row.partition,
            "committed_offset": row.committed,
            "end_offset": row.end,
            "lag": row.lag,
            "metadata": row.metadata,
            "member_id": None if row.owner is None else row.owner.member_id,
            "client_id": None if row.owner is None else row.owner.client_id,
            "host": None if row.owner is None else row.owner.client_host,
        }
        for row in lags
    ]
    return {**member_documents(group), "total_lag": total_lag(lags), "partitions": rows}


def total_lag(lags: Sequence[Lag]) -> int:
    return sum(row.lag or 0 for row in lags)


def show_state(group: Group, lags: Sequence[Lag] | None) -> None:
    fields: dict[str, Cell] = {
        "group": group.group,
        "type": group.group_type,
        "state": group.state,
        "assignor": group.assignor or "-",
        "members": len(group.members),
        "coordinator": f"broker {group.coordinator}",
    }
    if group.epoch is not None:
        fields["epoch"] = group.epoch
    if lags is not None:
        fields["total lag"] = total_lag(lags)
    show_fields(fields)


def show_lags(lags: Sequence[Lag]) -> None:
    if not lags:
        note("nothing is committed and nobody owns a partition")
        return
    columns = ("topic", "partition", "committed", "end", "lag", "owner", "host")
    rows = [
        (
            row.topic,
            row.partition,
            *("-" if cell is None else cell for cell in (row.committed, row.end, row.lag)),
            *_owner(row.owner),
        )
        for row in lags
    ]
    show_table(columns, rows)


def show_members(group: Group) -> None:
    if not group.members:
        note("no members")
        return
    columns = ("member", "client", "instance", "host", "partitions", "owns")
    rows = [
        (
            member.member_id,
            member.client_id,
            member.instance_id or "-",
            member.client_host,
            sum(map(len, member.owned.values())),
            _owned(member.owned),
        )
        for member in group.members
    ]
    show_table(columns, rows)


def _owner(member: Member | None) -> tuple[str, str]:
    if member is None:
        return "-", "-"
    return member.instance_id or member.client_id or member.member_id, member.client_host


def _owned(owned: Owned) -> str:
    """`orders:0,2 users:1`, as it can be given to --topic."""
    texts = [f"{topic}:{','.join(map(str, sorted(owned[topic])))}" for topic in sorted(owned)]
    return " ".join(texts) or "-"
