"""Cells of coordinators: commits, transactions, members that stay, a rebalance, a long journal."""

import tempfile
from pathlib import Path

from bench import groups, journal_replay
from bench.commits import Commits, commit_offsets
from bench.crowd import Connect
from bench.figures import requests_cell, requests_figure
from bench.members import ClassicMember, ConsumerMember
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from bench.transactions import Transactions, commit_transactions

CLASSIC, CONSUMER = "classic protocol", "consumer protocol"
# How often members of each protocol send heartbeats if nobody sets it: the client and the broker.
BEATS_S = {CLASSIC: 3.0, CONSUMER: 5.0}
KINDS: dict[str, Connect] = {CLASSIC: ClassicMember, CONSUMER: ConsumerMember}


def _commits(name: str, load: Commits, *, is_quick: bool = True) -> Cell:
    return requests_cell(
        name,
        lambda target, scale: commit_offsets(
            target.address, load, seconds=scale.seconds, pid=target.pid
        ),
        is_quick=is_quick,
    )


def _transactions(name: str, load: Transactions, *, is_quick: bool = True) -> Cell:
    def run(target: Target, scale: Scale) -> Figures:
        result = commit_transactions(target.address, load, seconds=scale.seconds, pid=target.pid)
        return {name: requests_figure(result)}

    return Cell((Measure(name, "transactions/s"),), run, is_quick=is_quick)


def _staying(protocol: str) -> Cell:
    measure = Measure(f"1,000 members in 100 groups, {protocol}", "%")  # of a core

    def run(target: Target, scale: Scale) -> Figures:
        if target.pid is None:
            return {}
        cost = groups.staying(
            target.address,
            KINDS[protocol],
            groups=scale.groups,
            beat_s=BEATS_S[protocol],
            seconds=scale.idle_s,
            pid=target.pid,
        )
        return {measure.name: Figure(cost.cpu_s / scale.idle_s * 100, cost=cost)}

    return Cell((measure,), run, is_repeated=False, is_own=True)


def _rebalance(protocol: str) -> Cell:
    founding = Measure(f"100 members join at once, {protocol}", "s")
    wall = Measure(f"rebalance of 100 members, {protocol}", "s")
    cpu = Measure(f"CPU of a rebalance of 100 members, {protocol}", "ms")

    def run(target: Target, _scale: Scale) -> Figures:
        found = groups.rebalance(target.address, KINDS[protocol], pid=target.pid)
        figures = {
            founding.name: Figure(found.founding_s, cost=found.cost),
            wall.name: Figure(found.seconds, cost=found.cost),
        }
        if found.cost is not None:
            figures[cpu.name] = Figure(found.cost.cpu_s * 1e3, cost=found.cost)
        return figures

    return Cell((wall, cpu, founding), run)


def _replay() -> Cell:
    measure = Measure("start with a journal of 1,000,000 commits", "s")

    def run(target: Target, scale: Scale) -> Figures:
        assert target.another is not None, f"{target.name} was not started here"
        with tempfile.TemporaryDirectory(prefix="runnel-bench-") as folder:
            broker = target.another(Path(folder))
            try:
                found = journal_replay.replay(broker, Path(folder) / "data", scale.commits)
            finally:
                if broker.is_running:
                    broker.kill()
        return {measure.name: Figure(found.seconds, cost=found.cost)}

    return Cell((measure,), run, starts_its_own=True, is_repeated=False, is_own=True)


GROUP_CELLS: tuple[Cell, ...] = (
    _commits("offset commits, 100 connections", Commits()),
    _commits("offset commits, 16 connections", Commits(connections=16), is_quick=False),
    _transactions("transactions of 100 records, 16 producers", Transactions()),
    _transactions(
        "transactions of 100 records, 1 producer", Transactions(producers=1), is_quick=False
    ),
    _rebalance(CLASSIC),
    _rebalance(CONSUMER),
    _staying(CLASSIC),
    _staying(CONSUMER),
    _replay(),
)
