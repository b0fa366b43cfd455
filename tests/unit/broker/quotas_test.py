"""Goal: how long a client waits, computed by hand; whose quota binds whom, after Kafka's rules.

Method: plain calls with numbers and times. The property: whatever a client does, if it waits as
told it gets its rate, a window's worth and its last request, and not more.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.broker.quotas import BUCKETS_MAX, DEBT_MAX_S, Bucket, Quotas, Windows
from runnel.cluster.client_quotas import Entity
from runnel.cluster.values import ClientQuota
from runnel.errors import ErrorCode, RunnelError

ALICE, APP = ("user", "alice"), ("client-id", "app")
ANY_USER, ANY_CLIENT = ("user", None), ("client-id", None)


def quotas(by_entity: dict[Entity, dict[str, float]], windows: Windows | None = None) -> Quotas:
    made = Quotas(windows or Windows())
    made.follow({entity: ClientQuota(values) for entity, values in by_entity.items()})
    return made


def rate_of(made: Quotas, user: str, client_id: str) -> float | None:
    bucket = made.client(f"User:{user}", client_id).produce
    return None if bucket is None else bucket.rate_per_s


def test_a_debt_is_waited_for_at_the_rate() -> None:
    bucket = Bucket(1000.0, 1.0, 0.0)  # nothing is earned before its first use
    assert bucket.spend(500, 5000) == 500
    assert bucket.spend(250, 5250) == 500  # 250 were paid off, as many are new
    assert bucket.wait_ms(5600) == 150
    assert bucket.spend(0, 5750) == 0
    assert bucket.spend(1000, 6750) == 0, "one second of credit"
    assert bucket.spend(1, 6750) == 1
    assert bucket.spend(1000, 100_000) == 0, "credit ends at one window's worth"
    assert bucket.spend(1000, 100_000) == 1000


def test_parts_of_a_millisecond_are_not_forgotten() -> None:
    bucket = Bucket(1_000_000.0, 1.0, 0.0)
    assert [bucket.spend(400, 0) for _ in range(4)] == [0, 1, 1, 2]


def test_a_debt_is_bounded() -> None:
    bucket = Bucket(1.0, 1.0, 0.0)
    assert bucket.spend(1e12, 0) == DEBT_MAX_S * 1000


def test_a_new_rate_keeps_the_seconds() -> None:
    bucket = Bucket(1000.0, 1.0, 0.0)
    assert bucket.spend(2000, 0) == 2000
    bucket.set_rate(10.0)
    assert bucket.wait_ms(500) == 1500


@given(
    rate=st.floats(1.0, 1e9),
    steps=st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(0, 3000)), min_size=1, max_size=50),
)
def test_who_waits_gets_the_rate_and_no_more(rate: float, steps: list[tuple[float, int]]) -> None:
    """Amounts in seconds of the rate; after each the client waits as told, and then a while."""
    bucket = Bucket(rate, 1.0, 0.0)
    now_ms, used, largest = 0, 0.0, 0.0
    for seconds, pause_ms in steps:
        amount = seconds * rate
        waits_ms = bucket.spend(amount, now_ms)
        used, largest = used + amount, max(largest, amount)
        assert used <= rate * (now_ms / 1000 + 1.0) + largest + rate * 0.001
        assert waits_ms <= 1000 * largest / rate + 1
        now_ms += waits_ms + pause_ms


@given(st.lists(st.floats(0.001, 3.0), min_size=10, max_size=100))
def test_who_never_rests_gets_all_of_the_rate(seconds: list[float]) -> None:
    bucket = Bucket(1e6, 1.0, 0.0)
    now_ms = 0
    for each in seconds:
        now_ms += bucket.spend(each * 1e6, now_ms)
    assert now_ms / 1000 == pytest.approx(sum(seconds), abs=0.002)


def test_precedence_is_kafkas() -> None:
    """Each is taken away once it was found; the next in rank must then bind."""
    ranked: list[Entity] = [
        (APP, ALICE),
        (ANY_CLIENT, ALICE),
        (ALICE,),
        (APP, ANY_USER),
        (ANY_CLIENT, ANY_USER),
        (ANY_USER,),
        (APP,),
        (ANY_CLIENT,),
    ]
    left = {entity: {"producer_byte_rate": 1000.0 + n} for n, entity in enumerate(ranked)}
    for n, entity in enumerate(ranked):
        assert rate_of(quotas(left), "alice", "app") == 1000.0 + n, entity
        del left[entity]
    assert rate_of(quotas(left), "alice", "app") is None


def test_a_quota_without_the_key_binds_nothing() -> None:
    made = quotas(
        {(APP, ALICE): {"consumer_byte_rate": 1}, (ANY_CLIENT,): {"producer_byte_rate": 9}}
    )
    client = made.client("User:alice", "app")
    assert client.fetch is not None and client.fetch.rate_per_s == 1
    assert client.produce is not None and client.produce.rate_per_s == 9
    assert client.request is None and client.mutation is None


@pytest.mark.parametrize(
    ("entity", "together", "apart"),
    [
        ((ALICE,), ("alice", "other"), ("bob", "app")),
        ((ANY_USER,), ("alice", "other"), ("bob", "app")),
        ((APP,), ("bob", "app"), ("alice", "other")),
        ((ANY_CLIENT,), ("bob", "app"), ("alice", "other")),
        ((ANY_CLIENT, ANY_USER), ("alice", "app"), ("bob", "app")),
        ((APP, ANY_USER), ("alice", "app"), ("bob", "app")),
    ],
)
def test_who_shares_a_quota(
    entity: Entity, together: tuple[str, str], apart: tuple[str, str]
) -> None:
    made = quotas({entity: {"producer_byte_rate": 1}})
    mine = made.client("User:alice", "app").produce
    assert mine is not None
    assert made.client(f"User:{together[0]}", together[1]).produce is mine
    assert made.client(f"User:{apart[0]}", apart[1]).produce is not mine


def test_a_change_for_others_forgets_no_debt() -> None:
    made = quotas({(APP,): {"producer_byte_rate": 10}})
    bucket = made.client("User:x", "app").produce
    assert bucket is not None and bucket.spend(50, 0) == 5000
    made.follow(
        {
            (APP,): ClientQuota({"producer_byte_rate": 20.0}),
            (ALICE,): ClientQuota({"producer_byte_rate": 1.0}),
        }
    )
    again = made.client("User:x", "app").produce
    assert again is bucket and again.rate_per_s == 20 and again.wait_ms(0) == 5000
    made.follow({})
    assert not made.is_active and made.client("User:x", "app").produce is None


def test_names_from_the_network_do_not_fill_the_memory() -> None:
    made = quotas({(ANY_CLIENT,): {"producer_byte_rate": 10}, (("ip", None),): CONNECTIONS})
    for n in range(BUCKETS_MAX + 10):
        made.client("User:x", f"c{n}")
        made.connection_wait_ms(f"10.0.{n // 256}.{n % 256}", 0)
    for held in (made._clients, made._buckets, made._addresses):
        assert len(held) <= BUCKETS_MAX


def test_one_fetch_brings_a_windows_worth() -> None:
    made = quotas({(APP,): {"consumer_byte_rate": 1000}}, Windows(size_s=2))
    assert made.fetch_bytes_max("User:x", "app") == 2000
    assert made.fetch_bytes_max("User:x", "other") == 2**31 - 1


def test_mutations_are_refused_while_there_is_debt_as_in_kafka() -> None:
    """Kafka's bucket holds all windows' worth, and admits as long as it is not below zero."""
    made = quotas({(APP,): {"controller_mutation_rate": 2}})
    strict = made.mutations("User:x", "app", 0, is_strict=True)
    strict.record(22)
    strict.record(6)
    with pytest.raises(RunnelError) as refused:
        strict.record(1)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert strict.throttle_ms == 3000
    later = made.mutations("User:x", "app", 3000, is_strict=True)
    later.record(1)
    assert later.throttle_ms == 0
    old = made.mutations("User:x", "app", 3000, is_strict=False)
    old.record(1)
    assert old.throttle_ms == 1000
    unbound = made.mutations("User:x", "other", 0, is_strict=True)
    unbound.record(10**9)
    assert unbound.throttle_ms == 0 and not unbound.is_bound


CONNECTIONS = {"connection_creation_rate": 2.0}


def test_connections_of_an_address() -> None:
    made = quotas({(("ip", "10.0.0.1"),): CONNECTIONS})
    assert made.limits_connections and not made.is_active
    waits = [made.connection_wait_ms("10.0.0.1", 0) for _ in range(5)]
    assert waits == [0, 0, 0, 500, 500], (
        "a window's worth, one more, and then none until it is paid"
    )
    assert made.connection_wait_ms("10.0.0.1", 500) == 0
    assert made.connection_wait_ms("10.0.0.2", 0) == 0
