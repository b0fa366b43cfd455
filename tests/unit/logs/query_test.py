"""Queries by themselves, and what lines of other loggers are read as."""

import json

import pytest

from runnel.logs.filters import Filters, field_of
from runnel.logs.lines import LEVELS, parsed
from runnel.logs.query import QueryError, parse
from runnel.logs.topics import needle_of, rows_with


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        ("payment failed", "Failed: the PAYMENT", True),
        ("payment failed", "payment done", False),
        ('"payment failed"', "the payment failed again", True),
        ('"payment failed"', "failed payment", False),
        ("pay*", "the payments", True),
        ("pay*", "repay", False),
        ('"card decl"*', "card declined", True),
        ("user=7", "user=7 x", True),
        ("user=7", "user=77", False),
        ("user=7", "user_id=7", False),
        ("10.0.0.1", "from 10.0.0.1:80", True),
        ("payment -retry", "payment retry", False),
        ("payment -retry", "payment", True),
        ('-"timed out"', "out timed", True),
        ('-"timed out"', "it timed out", False),
        (r"/or?der \d+/", "order 12", True),
        (r"-/or?der \d+/", "order 12", False),
        (r"/a\/b/", "x a/b y", True),
        ("/Case/", "case", False),
        ("/(?i)Case/", "case", True),
        ("Kraków", "in KRAKÓW", True),
        ("/var/log", "open /var/log/x", True),
        ("", "anything", True),
    ],
)
def test_matches(query: str, text: str, matches: bool) -> None:
    assert parse(query).matches(text) is matches


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("/(/", "no regular expression"),
        ("!!", "has no letter"),
        ('a"b', "phrase"),
        ("x" * 5000, "characters"),
        ("a " * 100, "words"),
    ],
)
def test_what_is_no_query(query: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        parse(query)


def test_lines_of_other_loggers() -> None:
    pino = parsed(b'{"level":50,"time":1,"msg":"no","hostname":"h","name":"api","req":{"id":"a"}}')
    assert (pino.level, pino.message, pino.host, pino.logger) == ("error", "no", "h", "api")
    assert pino.fields == {"req.id": "a"}
    zap = parsed(b'{"level":"WARN","ts":1.5,"logger":"x","msg":"slow","ok":true,"n":1.5}')
    assert (zap.level, zap.message) == ("warning", "slow")
    assert zap.fields == {"ok": "true", "n": "1.5"}
    elastic = parsed(b'{"@timestamp":"t","log.level":"INFO","message":"m","service.name":"shop"}')
    assert (elastic.level, elastic.service) == ("info", "shop")
    assert parsed(b'{"severity":3,"message":"syslog"}').level == "error"


def test_what_is_no_json_is_text() -> None:
    plain = parsed(b"2026-01-31 12:00:00 ERROR it broke")
    assert (plain.level, plain.message, plain.is_json) == (
        "error",
        "2026-01-31 12:00:00 ERROR it broke",
        False,
    )
    assert parsed(b'{"broken').message == '{"broken'
    assert parsed(b"[1, 2]").message == "[1, 2]"
    assert parsed(b"\xff\xfe").message == "\ufffd\ufffd"
    assert parsed(None).message == ""
    assert parsed(b'{"message": "\\ud800 half"}').message == "\ufffd half"
    assert parsed(b"{" + b'"a":{' * 5000).is_json is False


def test_filters() -> None:
    value = {"level": "error", "service": "shop", "message": "m", "fields": {"user": 7, "a": None}}
    line = parsed(json.dumps(value).encode())
    assert field_of(line, "user") == "7" and field_of(line, "service") == "shop"
    assert Filters(level="warning", services=("x", "shop"), fields={"user": "7"}).matches(line)
    assert not Filters(level="critical").matches(line)
    assert not Filters(services=("sho",)).matches(line)
    assert not Filters(fields={"user": "77"}).matches(line)
    assert not Filters(fields={"host": ""}).matches(line)
    assert not Filters(level=LEVELS[0]).matches(parsed(b"no level"))


def test_needles() -> None:
    assert needle_of(Filters(parse('"payment failed" -longest_of_all 123456789'))) == b"payment"
    assert needle_of(Filters(parse("123 45 Kraków -x"))) == b"123"
    assert needle_of(Filters(parse("Kraków -x"))) is None
    assert needle_of(Filters(services=("shop",), fields={"user": "7"})) in (b"shop", b"user")
    assert needle_of(Filters(services=("shop", "web"))) is None
    assert needle_of(Filters(fields={"logger": "api", "level": "warning"})) == b"api"
    data, ends = b"abcab|abxx", [0, 3, 5, 10]
    assert rows_with(b"ab", data, ends) == [0, 1, 2]
    assert rows_with(b"ca", data, ends) == []
    assert rows_with(b"ab", data, [3, 5, 10]) == [0, 1]
    assert rows_with(b"xx", data, [0, 3, 5]) == []


def test_numbers_stay_as_they_are_written() -> None:
    line = parsed(b'{"msg": "m", "a": 1.50, "b": 1.0E7, "c": [1.50, 2], "d": -0, "level": 30.0}')
    assert line.fields == {"a": "1.50", "b": "1.0E7", "c": "[1.5,2]", "d": "0"}
    assert line.level == "info"
