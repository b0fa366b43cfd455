"""Goal: at night the log says who sent what and what to do, as fields, and never a secret."""

import json
import socket
from pathlib import Path
from struct import pack

from runnel.client.raw import WireClient
from runnel.wire.messages.metadata import MetadataRequest
from tests.support.process import BrokerProcess, StartBroker, serve_until_it_fails

SECRET = "c0rrect-h0rse"
PRODUCE, UNKNOWN_API = 0, 9999


def request(key: int, version: int, client_id: str, body: bytes = b"") -> bytes:
    name = client_id.encode()
    frame = pack(">hhih", key, version, 77, len(name)) + name + body
    return pack(">i", len(frame)) + frame


def send(broker: BrokerProcess, data: bytes) -> int:
    """Returns our own port when the broker has closed the connection."""
    with socket.create_connection(broker.address, timeout=10) as sock:
        sock.sendall(data)
        try:
            while sock.recv(4096):
                pass
        except ConnectionResetError:  # it left bytes of ours unread
            pass
        return int(sock.getsockname()[1])


def closed_by(broker: BrokerProcess, port: int) -> dict[str, object]:
    lines = [json.loads(line) for line in broker.log.splitlines()]
    (line,) = [each for each in lines if each.get("peer") == f"127.0.0.1:{port}"]
    found: dict[str, object] = line
    return found


def test_a_closed_connection_says_who_what_and_what_to_do(start_broker: StartBroker) -> None:
    broker = start_broker(settings={"runnel.log.format": "json", "node.id": "7"})
    cases: list[tuple[bytes, str, dict[str, object]]] = [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "this is HTTP", {"first_bytes": b"GET ".hex()}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", "security.protocol=PLAINTEXT", {}),
        (pack(">i", 200 << 20), "raise socket.request.max.bytes", {}),
        (b"SSH-2.0-OpenSSH\r\n", "speaks another protocol", {}),
        (request(UNKNOWN_API, 0, "who"), "another protocol", {"api": "9999", "client_id": "who"}),
        (
            request(PRODUCE, 2, "old one"),
            "versions 3 to",
            {"api": "PRODUCE", "api_version": 2, "correlation_id": 77, "client_id": "old one"},
        ),
        (request(PRODUCE, 9, "cut", b"\x00\x01"), "follow Kafka's protocol", {"api_version": 9}),
    ]
    for data, advice, fields in cases:
        line = closed_by(broker, send(broker, data))
        message = str(line["message"])
        assert advice in message and "; " in message, message
        assert line["level"] == "warning" and line["listener"] == "PLAINTEXT"
        assert fields.items() <= line.items(), line
    with WireClient(broker.address) as client:
        cluster_id = client.call(MetadataRequest(topics=[])).cluster_id
    assert line["cluster_id"] == cluster_id and line["broker_id"] == 7
    assert broker.stop() == 0


def test_no_secret_and_no_forged_line_gets_through(start_broker: StartBroker) -> None:
    settings = {
        "ssl.keystore.password": SECRET,
        "sasl.jaas.config": f'x.PlainLoginModule required password="{SECRET}2";',
        "runnel.log.level": "debug",
    }
    for form in ("text", "json"):
        broker = start_broker(form, settings={**settings, "runnel.log.format": form})
        for client_id in (
            f"me {SECRET} you",
            f"password={SECRET[::-1]}",
            "x\n2026-01-31T12:00:00.000Z INFO    serve: forged",
            "\x1b[2J\x1b]0;title\x07",
        ):
            send(broker, request(UNKNOWN_API, 0, client_id))
        assert broker.stop() == 0
        assert "client id 'me [hidden] you'" in broker.log
        assert SECRET not in broker.log and SECRET[::-1] not in broker.log
        assert "\x1b" not in broker.log
        assert not [line for line in broker.log.splitlines() if line.startswith("2026-01-31T12")]


def test_no_secret_in_what_stops_a_start(tmp_path: Path) -> None:
    for arguments in (
        ("--set", f"ssl.key.password:{SECRET}"),
        ("--set", f"sasl.jaas.config={SECRET}", "--set", f"sasl_jaas_config={SECRET}2"),
        (
            *("--set", f"listener.name.a.ssl.key.password={SECRET}"),
            *("--set", f"pasword={SECRET}"),
        ),
    ):
        status, told = serve_until_it_fails(tmp_path / "no", *arguments)
        assert status == 2 and told.count("\n") == 1
        assert SECRET not in told, told


def test_a_flood_is_held_back_and_counted(start_broker: StartBroker) -> None:
    broker = start_broker(settings={"runnel.log.format": "json"})
    with socket.create_connection(broker.address) as probe:
        probe.close()
    for _ in range(300):
        send(broker, request(UNKNOWN_API, 0, "flood"))
    assert broker.stop() == 0
    lines = [json.loads(line) for line in broker.log.splitlines()]
    closed = [line for line in lines if line["logger"] == "broker.complaints"]
    held = sum(line.get("held_back", 0) for line in closed)
    told = sum("held_back" not in line for line in closed)
    assert told < 300 and told + held == 300
