"""A cluster as a tool sees it: connections to its brokers by number, its metadata, its errors.

Works with every broker that speaks Kafka's protocol. Blocking, one request at a time. A broker that
does not answer at the first try is told at once, as a person waits; what the cluster itself calls
passing (an election, a quota) is tried again until the time-out.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from runnel.client.raw import Address, ClosedError, NotKafkaError, WireClient
from runnel.errors import ErrorCode, WireError
from runnel.wire.apis import APIS, ApiKey
from runnel.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from runnel.wire.schema import schema_of

CLIENT_ID: Final = "runnel-cli"
CONNECT_TIMEOUT_S: Final = 10.0
TIMEOUT_S: Final = 60.0
CREATED_WITHIN_S: Final = 3.0
BACKOFF_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
TOLD_AFTER_S: Final = 2.0  # a person who waits longer than that wants to know for what
PASSING: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_Result = TypeVar("_Result")


class ClientError(Exception):
    """Anything that keeps a request from being done."""


class UnreachableError(ClientError):
    """No broker answers, or one went away; whether it has acted is not known."""


class MisdirectedError(ClientError):
    """A broker answers, but not at the address that clients are told; trying again is no use."""


class UnsupportedError(ClientError):
    """The broker does not know the API."""


class RefusedError(ClientError):
    """The broker's own answer, with its error code."""

    def __init__(self, code: int, message: str | None, subject: str = "") -> None:
        try:
            self.code = ErrorCode(code)
        except ValueError:  # of a broker newer than we are
            self.code = ErrorCode.UNKNOWN_SERVER_ERROR
        self.subject = subject
        text = message or self.code.name
        named = subject.rpartition(" ")[2] in text  # of `topic orders` the name is enough
        super().__init__(text if named else f"{subject}: {text}")


def addresses_of(bootstrap: str) -> list[Address]:
    """`host:port,[::1]:port` as addresses. Raises ValueError, saying what is wrong."""
    found: list[Address] = []
    for text in bootstrap.split(","):
        host, colon, port = text.strip().rpartition(":")
        host = host.strip("[]")
        is_port = port.isdecimal() and 0 < int(port) < 65536
        if not colon or not host or "/" in host or not is_port:  # a slash: a URL
            raise ValueError(f"{text.strip()!r} is not HOST:PORT")
        found.append((host, int(port)))
    return found


class Cluster:
    """Connections are opened when they are first needed. Use it as a context manager."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = CLIENT_ID,
        timeout_s: float = TIMEOUT_S,
        on_wait: "Callable[[ClientError], None] | None" = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._on_wait = on_wait
        self._bootstrap = list(bootstrap)
        self._client_id = client_id
        self._any: WireClient | None = None
        self._nodes: dict[int, WireClient] = {}
        self._addresses: dict[int, Address] = {}
        self._reached: set[int] = set()  # brokers that have been connected before

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for client in (self._any, *self._nodes.values()):
            if client is not None:
                client.close()
        self._any = None
        self._nodes.clear()

    def call(  # its class follows from that of the request
        self, request: object, *, node_id: int | None = None, newest: int | None = None
    ) -> Any:  # noqa: ANN401
        """The response of that broker, or of any, in no version above `newest`.

        Raises ClientError.
        """
        client = self._someone() if node_id is None else self._node(node_id)
        try:
            key = _key_of(request)
            ensure_offered(client, key)
            version = client.version_of(key)
            return client.call(request, version=min(version, newest or version))
        except (OSError, ClosedError, WireError) as error:
            self._forget(client)
            raise UnreachableError(_reason(error)) from None
        except KeyboardInterrupt:  # the answer to this would be taken for that to the next request
            self._forget(client)
            raise

    def send(self, request: object, *, node_id: int) -> None:
        """What has no response: a produce request with acks 0. Raises ClientError."""
        client = self._node(node_id)
        try:
            client.send(request, client.version_of(_key_of(request)), 0)
        except (OSError, ClosedError) as error:
            self._forget(client)
            raise UnreachableError(_reason(error)) from None

    def connection(self, node_id: int) -> WireClient:
        """That to a broker, for those who send the next request before they have the answer.

        Such a one calls `drop` where an answer is left unread. Raises ClientError.
        """
        return self._node(node_id)

    def drop(self, client: WireClient) -> None:
        """Close a connection; the next who needs one to that broker gets a new one."""
        self._forget(client)

    def version_of(self, key: ApiKey) -> int:
        """The newest version of an API that any broker and we know. Raises ClientError."""
        client = self._someone()
        ensure_offered(client, key)
        return client.version_of(key)

    def node_ids(self) -> list[int]:
        """The numbers of all brokers."""
        return sorted(row.node_id for row in self.metadata([]).brokers)

    def retried(self, attempt: Callable[[], _Result], *, reconnect: bool = False) -> _Result:
        """What `attempt` returns, tried again while the cluster calls its refusal passing.

        With `reconnect` also while no broker answers: for those who have seen one.
        """
        began, backoff_s = time.monotonic(), BACKOFF_S
        deadline = began + self.timeout_s
        while True:
            failure: ClientError
            try:
                return attempt()
            except RefusedError as error:
                if error.code not in PASSING or time.monotonic() + backoff_s > deadline:
                    raise
                failure = error
            except UnreachableError as error:
                if not reconnect or time.monotonic() + backoff_s > deadline:
                    raise
                failure = error
            self.wait(failure, began, backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    def wait(self, failure: ClientError, began: float, backoff_s: float) -> None:
        """Before the next try; who waits since `began`, and that is long, is told why, once."""
        if self._on_wait is not None and time.monotonic() - began > TOLD_AFTER_S:
            self._on_wait(failure)
            self._on_wait = None
        time.sleep(backoff_s)

    def metadata(self, topics: Iterable[str] | None, *, create: bool = False) -> MetadataResponse:
        """Of the topics of these names, or of all. Errors of topics are left to the caller."""
        rows = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=rows, allow_auto_topic_creation=create)
        response: MetadataResponse = self.call(request)
        self._addresses = {row.node_id: (row.host, row.port) for row in response.brokers}
        return response

    def topic(self, name: str, *, create: bool = False) -> MetadataResponseTopic:
        """Its partitions, in order, each of which may be without a leader. Raises ClientError.

        With `create`, a broker that makes topics by itself is asked to, and has some time for it.
        """
        created_by = time.monotonic() + (CREATED_WITHIN_S if create else 0)

        def attempt() -> MetadataResponseTopic:
            (found,) = self.metadata([name], create=create).topics
            unknown = found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if unknown and time.monotonic() < created_by:
                found.error_code = ErrorCode.LEADER_NOT_AVAILABLE
            ensure_there(found)
            found.partitions.sort(key=lambda row: row.partition_index)
            return found

        return self.retried(attempt)

    def leaders(
        self,
        name: str,
        partitions: Collection[int] | None = None,
        *,
        create: bool = False,
        reconnect: bool = False,
    ) -> dict[int, int]:
        """The broker that leads each of these partitions, or of all; waits until they are led.

        Raises ClientError, also for a partition that the topic does not have.
        """

        def attempt() -> dict[int, int]:
            rows = self.topic(name, create=create).partitions
            leaders = {row.partition_index: row.leader_id for row in rows}
            wanted = leaders if partitions is None else partitions
            for at in wanted:
                if at not in leaders:
                    message = f"topic {name} has no partition {at}; it has {len(leaders)}"
                    raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
                if leaders[at] < 0:
                    message = f"partition {at} of {name} has no leader"
                    raise RefusedError(ErrorCode.LEADER_NOT_AVAILABLE, message)
            return {at: leaders[at] for at in wanted}

        return self.retried(attempt, reconnect=reconnect)

    def _someone(self) -> WireClient:
        if self._any is None:
            self._any = self._connect(list(dict.fromkeys(self._bootstrap)))
        return self._any

    def _node(self, node_id: int) -> WireClient:
        if node_id not in self._nodes:
            if node_id not in self._addresses:
                self.metadata([])
            address = self._addresses.get(node_id)
            if address is None:
                known = ", ".join(map(str, sorted(self._addresses)))
                raise RefusedError(
                    ErrorCode.BROKER_ID_NOT_REGISTERED,
                    f"there is no broker {node_id}; the cluster has {known}",
                )
            self._nodes[node_id] = self._connect_to_node(node_id, address)
        return self._nodes[node_id]

    def _connect_to_node(self, node_id: int, address: Address) -> WireClient:
        try:
            client = self._connect([address])
        except UnreachableError as error:
            if address in self._bootstrap or node_id in self._reached:
                raise
            asked = ", ".join(f"{host}:{port}" for host, port in self._bootstrap)
            raise MisdirectedError(
                f"broker {node_id} is not reached where {asked} says that it is: {error}"
            ) from None
        self._reached.add(node_id)
        return client

    def _connect(self, addresses: Sequence[Address]) -> WireClient:
        failures: list[str] = []
        for host, port in addresses:
            try:
                client = WireClient(
                    (host, port), timeout_s=CONNECT_TIMEOUT_S, client_id=self._client_id
                )
            except (OSError, UnicodeError) as error:
                failures.append(f"{host}:{port}: {_reason(error)}")
                continue
            try:
                _ = client.versions  # whoever answers this is a broker
            except (OSError, ClosedError, WireError) as error:
                client.close()
                failures.append(f"{host}:{port}: {_reason(error)}")
                continue
            client.sock.settimeout(self.timeout_s)
            return client
        raise UnreachableError("; ".join(failures))

    def _forget(self, client: WireClient) -> None:
        client.close()
        if client is self._any:
            self._any = None
        self._nodes = {key: other for key, other in self._nodes.items() if other is not client}


def _key_of(request: object) -> int:
    key = schema_of(type(request)).api_key
    assert key is not None, request
    return key


def ensure_offered(client: WireClient, key: int) -> None:
    """Raises UnsupportedError where there is no version of the API in common."""
    ours, theirs = APIS[key].versions, client.versions.get(key)
    if theirs is None or min(ours[-1], theirs[-1]) < max(ours[0], theirs[0]):
        raise UnsupportedError(f"the broker does not offer {APIS[key].name}")


def ensure_there(topic: MetadataResponseTopic) -> None:
    """Raises RefusedError for what the cluster says of a topic, above all that there is none."""
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise RefusedError(topic.error_code, f"there is no topic {topic.name}")
    if topic.error_code:
        raise RefusedError(topic.error_code, None, f"topic {topic.name}")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnicodeError):  # Python's, of a part that is empty or too long
        return "that is no name of a host"
    if isinstance(error, WireError | NotKafkaError):
        return f"what answered is not Kafka's protocol ({error})"
    return str(error) or "the connection was closed"
