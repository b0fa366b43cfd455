"""One look at all groups: where each is, where its partitions end, and for how long it is behind.

A lag over the limit is followed from poll to poll. Since when it has been so stands in every row,
so that an alert is a matter of one row and needs no look at the others.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from runnel.arrow.errors import OptionError
from runnel.client.cluster import Cluster, RefusedError
from runnel.client.group_lag import Lag, lags_of
from runnel.client.groups import DEAD, describe_group, list_groups
from runnel.errors import ErrorCode

_GONE: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

Since = Mapping[str, int]  # in ms, by `place_of`


class Seen(NamedTuple):
    """One partition of one group."""

    group: str
    state: str
    members: int
    lag: Lag


class Limits(NamedTuple):
    alert_lag: int | None  # above it a group is behind; None: never
    alert_after_ms: int  # how long it has to be so before it is an alert
    rows_max: int  # of a poll


def poll(cluster: Cluster, wanted: re.Pattern[str], limits: Limits) -> list[Seen]:
    """The groups whose names match, by name. Raises ClientError; OptionError for too many."""
    found: list[Seen] = []
    for listed in list_groups(cluster):
        if wanted.search(listed.group) is None:
            continue
        try:
            group = describe_group(cluster, listed.group)
            if group.state == DEAD:
                continue
            lags = lags_of(cluster, group)
        except RefusedError as error:
            if error.code not in _GONE:  # else it went while we looked
                raise
            continue
        found += [Seen(group.group, group.state, len(group.members), lag) for lag in lags]
        if len(found) > limits.rows_max:
            raise OptionError(
                f"there are more than {limits.rows_max} partitions of groups: choose groups with"
                " options.groups, or raise options.rows_max"
            )
    return found


def place_of(seen: Seen) -> str:
    return f"{seen.group}\t{seen.lag.topic}\t{seen.lag.partition}"


def since_when(seen: list[Seen], before: Since, limits: Limits, now_ms: int) -> dict[str, int]:
    """Of those that are over the limit now: when they were first seen so, without a pause."""
    if limits.alert_lag is None:
        return {}
    return {
        place_of(each): min(before.get(place_of(each), now_ms), now_ms)
        for each in seen
        if (each.lag.lag or 0) > limits.alert_lag
    }


def rows(
    seen: list[Seen], since: Since, limits: Limits, now_ms: int
) -> Iterator[dict[str, object]]:
    """For the table; times in ms."""
    for each in seen:
        over_ms = since.get(place_of(each))
        yield {
            "polled_at": now_ms,
            "group_id": each.group,
            "state": each.state,
            "members": each.members,
            "topic": each.lag.topic,
            "partition": each.lag.partition,
            "committed_offset": each.lag.committed,
            "end_offset": each.lag.end,
            "lag": each.lag.lag,
            "owner": each.lag.owner.client_id if each.lag.owner else None,
            "over_since": over_ms,
            "alert": over_ms is not None and now_ms - over_ms >= limits.alert_after_ms,
        }
