"""How much a client may use, and how long it waits when it used more: arithmetic, without IO.

Kafka takes the mean of the last `quota.window.num` windows, which lets a new client use ten
seconds' worth at once and then stops it for as long. Here a quota is a bucket (docs/adr/0014):
credit grows by the rate, up to one window's worth; what is spent beyond it is a debt, and the
throttle time is how long the debt takes to be gone. No single throttle lasts longer than all
windows together, what is left of the debt then counts for the next request.

Controller mutations and connections are asked for beforehand and refused while there is debt.
Kafka has a bucket for the former, too, of all windows' worth; it is the same here.

Precedence is Kafka's, for each quota by itself: user and client-id, user and any client-id, user,
any user and client-id, any user and any client-id, any user, client-id, any client-id. Who is
bound by a quota of a user shares it with all clients of that user; otherwise each client-id (of
each user, where the quota names users) has its own.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from runnel.cluster.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    Entity,
)
from runnel.cluster.values import ClientQuota
from runnel.errors import ErrorCode, RunnelError

DEBT_MAX_S: Final = 60.0  # nobody pays longer for what he once did
BUCKETS_MAX: Final = 10_000  # names of clients come from the network
NEVER_MS: Final = -1
SHARED: Final = "\0"  # in place of a name: no client has it


class Windows(NamedTuple):
    """The settings `quota.window.*` and `controller.quota.window.*`."""

    num: int = 11
    size_s: int = 1
    controller_num: int = 11
    controller_size_s: int = 1

    @property
    def throttle_max_ms(self) -> int:
        return self.num * self.size_s * 1000


class Bucket:
    """One client's credit of one quota, in bytes, seconds of work, partitions or connections."""

    __slots__ = ("_at_ms", "_credit", "_credit_max_s", "rate_per_s")

    def __init__(self, rate_per_s: float, credit_max_s: float, credit_s: float) -> None:
        self.rate_per_s = rate_per_s
        self._credit_max_s = credit_max_s
        self._credit = credit_s * rate_per_s
        self._at_ms = NEVER_MS  # nothing is earned before the first use

    def _refill(self, now_ms: int) -> None:
        if self._at_ms == NEVER_MS:
            self._at_ms = now_ms
        earned = (now_ms - self._at_ms) / 1000.0 * self.rate_per_s
        self._credit = min(self._credit + earned, self._credit_max_s * self.rate_per_s)
        self._at_ms = now_ms

    def spend(self, amount: float, now_ms: int) -> int:
        """It was used, within the quota or not. Returns how long to wait, in ms."""
        self._refill(now_ms)
        self._credit = max(self._credit - amount, -DEBT_MAX_S * self.rate_per_s)
        return self._wait_ms()

    def wait_ms(self, now_ms: int) -> int:
        """Until there is no debt."""
        self._refill(now_ms)
        return self._wait_ms()

    def _wait_ms(self) -> int:
        if self._credit >= 0.0:
            return 0
        return int(-self._credit / self.rate_per_s * 1000.0 + 0.5)

    def set_rate(self, rate_per_s: float) -> None:
        """Seconds of credit, or of debt, stay what they are."""
        self._credit *= rate_per_s / self.rate_per_s
        self.rate_per_s = rate_per_s


class Client:
    """What binds one client: a bucket for each quota that does."""

    __slots__ = ("fetch", "mutation", "produce", "request")

    def __init__(self) -> None:
        self.produce: Bucket | None = None
        self.fetch: Bucket | None = None
        self.request: Bucket | None = None
        self.mutation: Bucket | None = None


UNBOUND: Final = Client()


class Mutations:
    """What one request may create or delete, partition by partition.

    A strict one refuses while there is debt, one of an old version is only made to wait.
    """

    __slots__ = ("_bucket", "_is_strict", "_now_ms", "throttle_ms")

    def __init__(self, bucket: Bucket | None, is_strict: bool, now_ms: int) -> None:
        self._bucket = bucket
        self._is_strict = is_strict
        self._now_ms = now_ms
        self.throttle_ms = 0

    @property
    def is_bound(self) -> bool:
        return self._bucket is not None

    def record(self, partition_count: int) -> None:
        """Before the change is made. Raises RunnelError(THROTTLING_QUOTA_EXCEEDED)."""
        bucket = self._bucket
        if bucket is None:
            return
        if not self._is_strict:
            self.throttle_ms = bucket.spend(partition_count, self._now_ms)
            return
        self.throttle_ms = bucket.wait_ms(self._now_ms)
        if self.throttle_ms:
            raise RunnelError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
            )
        bucket.spend(partition_count, self._now_ms)


class Quotas:
    """Owned by the broker, follows the metadata image. `is_active` is asked by every request."""

    __slots__ = (
        "_addresses",
        "_buckets",
        "_by_entity",
        "_clients",
        "is_active",
        "limits_connections",
        "windows",
    )

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.is_active = False
        self.limits_connections = False
        self._by_entity: Mapping[Entity, ClientQuota] = {}
        self._clients: dict[tuple[str, str], Client] = {}
        self._buckets: dict[tuple[str, str, str], Bucket] = {}
        self._addresses: dict[str, Bucket | None] = {}

    def follow(self, quotas: Mapping[Entity, ClientQuota]) -> None:
        """The image's quotas; what a client spent so far is not forgotten by a change."""
        if quotas is self._by_entity:
            return
        self._by_entity = quotas
        self._clients.clear()
        self._addresses.clear()
        self.is_active = any(entity[0][0] != IP for entity in quotas)
        self.limits_connections = any(entity[0][0] == IP for entity in quotas)
        if not quotas:
            self._buckets.clear()

    def client(self, principal: str, client_id: str) -> Client:
        if not self.is_active:
            return UNBOUND
        found = self._clients.get((principal, client_id))
        if found is None:
            found = self._find_client(principal.partition(":")[2], client_id)
            if len(self._clients) >= BUCKETS_MAX:
                self._clients.clear()
            self._clients[principal, client_id] = found
        return found

    def mutations(
        self, principal: str, client_id: str, now_ms: int, *, is_strict: bool
    ) -> Mutations:
        return Mutations(self.client(principal, client_id).mutation, is_strict, now_ms)

    def fetch_bytes_max(self, principal: str, client_id: str) -> int:
        """What one fetch may bring: a window's worth, so that a large one is no long pause."""
        bucket = self.client(principal, client_id).fetch
        if bucket is None:
            return 0x7FFFFFFF
        return int(min(max(bucket.rate_per_s * self.windows.size_s, 1.0), 0x7FFFFFFF))

    def connection_wait_ms(self, host: str, now_ms: int) -> int:
        """0 if the address may connect now, and then it has; else how long it may not."""
        if host not in self._addresses:
            if len(self._addresses) >= BUCKETS_MAX:
                self._addresses.clear()
            self._addresses[host] = self._find_address(host)
        bucket = self._addresses[host]
        if bucket is None:
            return 0
        wait_ms = bucket.wait_ms(now_ms)
        if not wait_ms:
            bucket.spend(1.0, now_ms)
        return min(wait_ms, self.windows.size_s * 1000)

    def _find_client(self, user: str, client_id: str) -> Client:
        client = Client()
        size_s = float(self.windows.size_s)
        client.produce = self._bucket(PRODUCER_BYTE_RATE, user, client_id, size_s, 0.0, 1.0)
        client.fetch = self._bucket(CONSUMER_BYTE_RATE, user, client_id, size_s, 0.0, 1.0)
        # A percentage of the loop's time, in seconds per second.
        client.request = self._bucket(REQUEST_PERCENTAGE, user, client_id, size_s, size_s, 0.01)
        burst_s = float(self.windows.controller_num * self.windows.controller_size_s)
        client.mutation = self._bucket(
            CONTROLLER_MUTATION_RATE, user, client_id, burst_s, burst_s, 1.0
        )
        return client

    def _find_address(self, host: str) -> Bucket | None:
        for name in (host, None):
            quota = self._by_entity.get(((IP, name),))
            if quota is not None and CONNECTION_CREATION_RATE in quota.values:
                rate = quota.values[CONNECTION_CREATION_RATE]
                size_s = float(self.windows.size_s)
                return self._kept((CONNECTION_CREATION_RATE, host, ""), rate, size_s, size_s)
        return None

    def _bucket(
        self,
        key: str,
        user: str,
        client_id: str,
        credit_max_s: float,
        credit_s: float,
        unit: float,
    ) -> Bucket | None:
        for entity, shared_user, shared_client in _precedence(user, client_id):
            quota = self._by_entity.get(entity)
            if quota is not None and key in quota.values:
                owner = (key, shared_user, shared_client)
                return self._kept(owner, quota.values[key] * unit, credit_max_s, credit_s)
        return None

    def _kept(
        self,
        owner: tuple[str, str, str],
        rate_per_s: float,
        credit_max_s: float,
        credit_s: float,
    ) -> Bucket:
        bucket = self._buckets.get(owner)
        if bucket is None:
            if len(self._buckets) >= BUCKETS_MAX:
                del self._buckets[next(iter(self._buckets))]
            bucket = Bucket(rate_per_s, credit_max_s, credit_s)
            self._buckets[owner] = bucket
        elif bucket.rate_per_s != rate_per_s:
            bucket.set_rate(rate_per_s)
        return bucket


def _precedence(user: str, client_id: str) -> list[tuple[Entity, str, str]]:
    """Entities by rank, each with the user and the client-id that have its quota together."""
    return [
        (((CLIENT_ID, client_id), (USER, user)), user, client_id),
        (((CLIENT_ID, None), (USER, user)), user, client_id),
        (((USER, user),), user, SHARED),
        (((CLIENT_ID, client_id), (USER, None)), user, client_id),
        (((CLIENT_ID, None), (USER, None)), user, client_id),
        (((USER, None),), user, SHARED),
        (((CLIENT_ID, client_id),), SHARED, client_id),
        (((CLIENT_ID, None),), SHARED, client_id),
    ]
