"""Alters settings of topics while everything else goes on, and checks what becomes of them.

The names it touches change how logs are cut, indexed, flushed and compressed, never what a client
was promised, so the checker of the history need not know of them.
"""

import asyncio
from random import Random
from typing import Final

from runnel.config.alterations import Operation
from runnel.errors import ErrorCode
from runnel.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.simulated.rpc import LostError, Rpc
from tests.simulated.world import World
from tests.support.configuring import TOPIC, incremental

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "compression.type": ("producer", "gzip", "uncompressed"),
    "delete.retention.ms": ("1", "2"),
    "file.delete.delay.ms": ("0", "1000", "60000"),
    "flush.messages": ("3", "50"),
    "flush.ms": ("300", "5000"),
    "index.interval.bytes": ("300", "400", "500"),
    "min.insync.replicas": ("1", "2", "3"),
    "preallocate": ("true", "false"),
    "segment.index.bytes": ("60", "72", "96"),
    "segment.jitter.ms": ("0", "2000"),
}
ALTERED: Final = ("ack", "interval", "short")
IN_DOUBT_S: Final = 10.0  # for so long what got no reply may come before what did
# The broker is about to end or was not the controller for a moment: done, or not.
PASSING: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)

ATTEMPTS_MAX: Final = 100

Setting = tuple[str, str]  # topic, name


class Tuner:
    def __init__(self, world: World, chance: Random) -> None:
        self.stopping = False
        self._world = world
        self._chance = chance
        self._rpc = Rpc(world.network, "tuner")
        self._known: dict[Setting, tuple[float, str]] = {}  # when it was asked for, what was said
        self._doubtful: dict[Setting, list[tuple[float, str]]] = {}

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self._chance.expovariate(1 / 1.5))
            topic = self._chance.choice(ALTERED)
            name = self._chance.choice(list(CHOICES))
            await self._alter((topic, name), self._chance.choice(CHOICES[name]))
        for _ in range(ATTEMPTS_MAX):
            if await self._check():
                break
            await asyncio.sleep(0.2)
        else:
            self._world.failures.append("settings: nobody answers")
        self._rpc.close()

    async def _alter(self, setting: Setting, value: str) -> None:
        topic, name = setting
        asked = self._world.loop.time()
        attempts = self._doubtful.setdefault(setting, [])
        attempts.append((asked, value))
        try:
            response = await self._rpc.call(
                incremental(TOPIC, topic, (name, Operation.SET, value)), 1, timeout_s=20.0
            )
        except LostError:
            self._world.counts["settings in doubt"] += 1
            return
        (answer,) = response.responses
        if answer.error_code == ErrorCode.NONE:
            self._world.counts["settings altered"] += 1
            self._known[setting] = asked, value
            self._doubtful[setting] = [a for a in attempts[:-1] if a[0] > asked - IN_DOUBT_S]
        elif answer.error_code not in PASSING:
            self._world.failures.append(f"settings: {setting}={value}: {answer.error_message}")

    async def _check(self) -> bool:
        """False if nobody answered. What is described must be what was last set."""
        resources = [
            DescribeConfigsResource(
                resource_type=TOPIC, resource_name=topic, configuration_keys=list(CHOICES)
            )
            for topic in ALTERED
        ]
        try:
            response = await self._rpc.call(DescribeConfigsRequest(resources=resources), 4)
        except LostError:
            return False
        for result in response.results:
            for config in result.configs:
                setting = result.resource_name, config.name
                if setting not in self._known:
                    continue
                _, known = self._known[setting]
                possible = {known, *[value for _, value in self._doubtful.get(setting, ())]}
                if config.value not in possible:
                    self._world.failures.append(
                        f"settings: {setting} is {config.value}, not {possible}"
                    )
        return True
