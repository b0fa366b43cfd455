"""Goal: no secret reaches a log, whether it was declared one or only looks like one."""

import time

import pytest

from runnel.cli.log_secrets import HIDDEN, Secrets
from runnel.config.registry import BROKER

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="admin" password="hunter2";'
)


def test_every_setting_of_type_password_is_hidden_by_its_value() -> None:
    names = [name for name, definition in BROKER.items() if definition.type == "password"]
    assert len(names) > 8
    for name in (*names, *(f"listener.name.internal.{name}" for name in names)):
        secrets = Secrets({name: "tr0ub4dor&3'x"})
        for shown in ("tr0ub4dor&3'x", repr("tr0ub4dor&3'x"), "<<tr0ub4dor&3'x>>"):
            assert "tr0ub" not in secrets.hide(f"client id {shown} is odd"), name


def test_settings_that_are_no_secrets_stay_readable() -> None:
    assert Secrets({"log.dirs": "/data"}).hide("/data is full") == "/data is full"


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        "ssl.key.password = hunter2",
        "client id 'x password:hunter2'",
        '{"api_key": "hunter2"}',
        "SASL_PASSWORD='hunter2 with blanks'",
        f"sasl.jaas.config={JAAS}",
        f"listener.name.internal.plain.sasl.jaas.config: {JAAS}",
        "https://user:hunter2@registry/",
        "Authorization: Basic hunter2",
        "Authorization: Bearer hunter2hunter2",
        "token=hunter2",
        "client-secret=hunter2&x=1",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----hunter2 and the rest is cut",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    hidden = Secrets({}).hide(f"a client sent {text}")
    assert "hunter2" not in hidden
    assert HIDDEN in hidden and hidden.startswith("a client sent")


def test_a_json_web_token_is_hidden() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    assert Secrets({}).hide(f"client id {token}") == f"client id {HIDDEN}"


@pytest.mark.parametrize(
    "text",
    [
        "topic orders deleted, 3 partitions",
        "connection from 10.0.0.9:4711 closed: frame of 1347375956 bytes, allowed are 8 to 1048576",
        "max.connections=10 are open; raise it",
        "runnel 0.1.0 is ready on [::1]:9092 after 120 ms, broker 0, data in runnel-data",
    ],
)
def test_ordinary_lines_are_left_alone(text: str) -> None:
    assert Secrets({}).hide(text) == text


@pytest.mark.parametrize("unit", ["password", "token=", "a", "://a:", "eyJ", '"', "=:", "key "])
def test_no_text_takes_long(unit: str) -> None:
    text = (unit * 16_000)[:16_000]
    began_s = time.process_time()
    Secrets({}).hide(text)
    assert time.process_time() - began_s < 1.0  # some milliseconds; a backtracking one: minutes
