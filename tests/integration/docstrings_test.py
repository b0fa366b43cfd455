"""The examples in the docstrings of `runnel.client` run: they are the API reference (docs/api.md).

An example is the indented part of a docstring. It sees the public names, a producer, a consumer of
a topic that has a record, and `STAND_INS`. Its first `print` ends it, so that those which read for
ever end too.
"""

import asyncio
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import pytest

import runnel.client
from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig
from runnel.testing import RunnelBroker
from tests.support.blocks import ROOT

ADDRESS = "localhost:9092"
STAND_INS = {"work": lambda message: message.value, "ask_for_price": lambda _: 3, "order": 1}


class _PrintedError(Exception):
    pass


class Example(NamedTuple):
    name: str
    code: str


def _examples() -> Iterator[Example]:
    for name in runnel.client.__all__:
        public = getattr(runnel.client, name)
        described = {name: public}
        if inspect.isclass(public):
            members = vars(public).items()
            described |= {f"{name}.{key}": member for key, member in members if key[0] != "_"}
        for place, thing in described.items():
            text = inspect.getdoc(thing) if callable(thing) else None
            for block in re.findall(r"(?:^(?: {4}.*)?\n)+", f"{text or ''}\n", re.MULTILINE):
                if block.strip():
                    yield Example(place, textwrap.dedent(block).strip())


EXAMPLES = list(_examples())


@pytest.fixture(scope="module")
def broker() -> Iterator[RunnelBroker]:
    with RunnelBroker() as broker:
        yield broker


def test_the_main_classes_have_one() -> None:
    assert {"Producer", "Consumer", "AsyncProducer", "AsyncConsumer", "Message", "Delivery"} <= {
        example.name for example in EXAMPLES
    }


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs/api.md").read_text()
    for name in runnel.client.__all__:
        assert re.search(rf"^::: runnel\.client\.\w+\.{name}$", page, re.MULTILINE), name


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_it_runs(example: Example, broker: RunnelBroker) -> None:
    def end(*_: object) -> NoReturn:
        raise _PrintedError

    address, group = broker.bootstrap_servers, f"group of {example.name}"
    names = {name: getattr(runnel.client, name) for name in runnel.client.__all__}
    transactional_id = group if "transaction" in example.code else None
    sending = ProducerConfig(address, transactional_id=transactional_id)
    reading = ConsumerConfig(address, group_id=group, enable_auto_commit=transactional_id is None)
    with Producer(ProducerConfig(address)) as first:
        first.send_batch("orders", ["1 pear"])
    with Producer(sending) as producer, Consumer(reading) as consumer:
        consumer.subscribe("orders")
        names |= {"producer": producer, "consumer": consumer, "print": end, **STAND_INS}
        code = example.code.replace(ADDRESS, address)
        try:
            if re.search(r"\b(await|async)\b", code):
                exec(f"async def run():\n{textwrap.indent(code, '    ')}", names)
                asyncio.run(asyncio.wait_for(names["run"](), 30))
            else:
                exec(code, names)
        except _PrintedError:
            pass
        else:
            assert "print(" not in code, "it ended before it printed anything"
