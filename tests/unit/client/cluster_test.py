"""Addresses as users write them, and what the cluster's refusals say."""

import pytest

from runnel.cli.connecting import told
from runnel.client import cluster as clusters
from runnel.client.cluster import ClientError, Cluster, RefusedError, addresses_of
from runnel.errors import ErrorCode


def test_addresses() -> None:
    assert addresses_of("a:1") == [("a", 1)]
    assert addresses_of("a:1, [::1]:9092") == [("a", 1), ("::1", 9092)]


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:b", "a:0", "a:65536", "a:1,", "a:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        addresses_of(text)


def test_a_refusal_names_its_subject_once() -> None:
    code = ErrorCode.TOPIC_ALREADY_EXISTS
    assert str(RefusedError(code, "Topic 'a' already exists.", "topic a")).startswith("Topic 'a'")
    assert str(RefusedError(code, "it exists", "topic zz")) == "topic zz: it exists"
    assert str(RefusedError(code, None, "topic zz")) == "topic zz: TOPIC_ALREADY_EXISTS"


def test_an_error_code_of_a_newer_broker() -> None:
    assert RefusedError(9999, "new").code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_who_waits_for_long_is_told_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "TOLD_AFTER_S", 0.06)
    refusal = RefusedError(ErrorCode.KAFKA_STORAGE_ERROR, "orders-0 is offline: No space left")
    said: list[ClientError] = []

    def attempt() -> None:
        raise refusal

    cluster = Cluster([], timeout_s=1.0, on_wait=said.append)
    with pytest.raises(RefusedError) as raised:
        cluster.retried(attempt)
    assert said == [refusal]
    assert str(told(raised.value)) == (
        "orders-0 is offline: No space left. The broker's disk is full or has failed, its log says"
        " which: mend that, and start the broker again."
    )
