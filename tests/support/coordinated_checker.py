"""Judges what members of groups and transactional producers saw. Names are Jepsen's if it has one.

aborted-read          (G1a) a read_committed consumer was given a value whose transaction had
                      failed, or was never asked to commit
dirty-read            the same, before anybody asked to commit
torn-transaction      of one transaction some values are there and others are not
lost-write            a committed transaction is not there at all
phantom-read, duplicate, inconsistent-offsets, nonmonotonic-poll   as in `checker`
poll-skip             below the last stable offset a reader was not given what is there
read-past-stable      a record at or above the last stable offset of the same answer
stable-regressed      the last stable offset was seen to go back
hanging-transaction   long after everything ended, the last stable offset is not the end
two-owners            two members were given one partition in one epoch
epoch-regressed       who joins later was told an earlier epoch
committed-lost        a committed offset is gone or went back
committed-phantom     a committed offset that nobody committed
copy-differs          an exactly-once copy is not its source, as far as its offset says
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from runnel.types import TopicPartition
from tests.support.checker import Anomaly, Verdict
from tests.support.coordinated import (
    NO_OFFSET,
    Commit,
    CommittedRead,
    Coordinated,
    Event,
    Fetched,
    Grant,
    Transaction,
)
from tests.support.history import Outcome


def check_coordinated(coordinated: Coordinated, *, reborn: Collection[str] = ()) -> Verdict:
    """`reborn`: groups that change their protocol. If nobody is in such a group at that moment,
    Kafka begins it anew, with the first epoch, and keeps nothing of it but its offsets."""
    verdict = Verdict()
    events = coordinated.events
    _Transactions(events, verdict).run()
    grants = [event for event in events if isinstance(event, Grant)]
    verdict.count("grants in groups of both protocols", sum(g.group in reborn for g in grants))
    _check_grants([grant for grant in grants if grant.group not in reborn], verdict)
    _check_committed(events, verdict)
    return verdict


def _report(verdict: Verdict, name: str, partition: TopicPartition, detail: str) -> None:
    anomaly = Anomaly(name, partition, detail)
    if anomaly not in verdict.anomalies[-100:]:
        verdict.anomalies.append(anomaly)


class _Transactions:
    def __init__(self, events: Sequence[Event], verdict: Verdict) -> None:
        self.verdict = verdict
        self.transactions = [event for event in events if isinstance(event, Transaction)]
        self.reads = [event for event in events if isinstance(event, CommittedRead)]
        self.finals = {read.partition: read for read in self.reads if read.is_final}
        self.transaction_of = {
            value: transaction
            for transaction in self.transactions
            for values in transaction.values.values()
            for value in values
        }

    def run(self) -> None:
        for transaction in self.transactions:
            self.verdict.count(f"transactions_{transaction.outcome.value}")
        for read in self.reads:
            self.check_read(read)
        by_partition: defaultdict[TopicPartition, list[CommittedRead]] = defaultdict(list)
        for read in self.reads:
            by_partition[read.partition].append(read)
        for partition, reads in by_partition.items():
            self.check_offsets(partition, reads)
            self.check_stable(partition, reads)
            if partition in self.finals:
                self.check_final(self.finals[partition], reads)
        for transaction in self.transactions:
            self.check_whole(transaction)

    def check_read(self, read: CommittedRead) -> None:
        last = read.position - 1
        for offset, value in read.records:
            transaction = self.transaction_of.get(value)
            where = f"{value!r} at {offset}"
            if transaction is None:
                self.report("phantom-read", read.partition, f"{where}, which nobody sent")
            elif transaction.outcome is Outcome.FAIL:
                self.report("aborted-read", read.partition, f"{where}: {transaction.why}")
            elif read.ended < transaction.end_began:
                self.report("dirty-read", read.partition, where)
            if offset >= read.last_stable_offset:
                self.report(
                    "read-past-stable", read.partition, f"{where} below {read.last_stable_offset}"
                )
            if offset <= last:
                self.report("nonmonotonic-poll", read.partition, f"{where} after {last}")
            last = offset

    def check_offsets(self, partition: TopicPartition, reads: Iterable[CommittedRead]) -> None:
        value_at: dict[int, str] = {}
        offset_of: dict[str, int] = {}
        for read in reads:
            for offset, value in read.records:
                if value_at.setdefault(offset, value) != value:
                    both = f"{value_at[offset]!r} and {value!r} at {offset}"
                    self.report("inconsistent-offsets", partition, both)
                elif offset_of.setdefault(value, offset) != offset:
                    both = f"{value!r} at {offset_of[value]} and {offset}"
                    self.report("duplicate", partition, both)

    def check_stable(self, partition: TopicPartition, reads: Sequence[CommittedRead]) -> None:
        """Nobody who asks later is told of an earlier one."""
        ended = sorted(reads, key=lambda read: read.ended)
        known, at = 0, 0
        for read in sorted(reads, key=lambda read: read.began):
            while at < len(ended) and ended[at].ended < read.began:
                known = max(known, ended[at].last_stable_offset)
                at += 1
            if read.last_stable_offset < known:
                self.report("stable-regressed", partition, f"{read.last_stable_offset} < {known}")
            if read.last_stable_offset > read.high_watermark:
                self.report(
                    "stable-regressed",
                    partition,
                    f"{read.last_stable_offset} is above the high watermark {read.high_watermark}",
                )

    def check_final(self, final: CommittedRead, reads: Iterable[CommittedRead]) -> None:
        """What lies below the last stable offset is decided for all readers, for ever."""
        if final.last_stable_offset < final.high_watermark:
            self.report(
                "hanging-transaction",
                final.partition,
                f"stable to {final.last_stable_offset} of {final.high_watermark}",
            )
        for read in reads:
            there = [
                offset
                for offset, _ in final.records
                if read.position <= offset < read.next_position
            ]
            given = [offset for offset, _ in read.records]
            if there != given:
                missing = sorted(set(there) ^ set(given))
                self.report(
                    "poll-skip",
                    final.partition,
                    f"{read.client} from {read.position} to {read.next_position}: {missing[:5]}",
                )

    def check_whole(self, transaction: Transaction) -> None:
        there: list[str] = []
        missing: list[str] = []
        for partition, values in transaction.values.items():
            final = self.finals.get(partition)
            if final is None:
                continue
            found = {value for _, value in final.records}
            for value in values:
                (there if value in found else missing).append(f"{value} in {partition}")
        partition = next(iter(transaction.values), TopicPartition("", 0))
        whose = f"{transaction.client} ({transaction.outcome.value})"
        if there and missing:
            self.report(
                "torn-transaction", partition, f"{whose}: {there[0]} is there, {missing[0]} is not"
            )
        elif missing and transaction.outcome is Outcome.OK:
            self.report("lost-write", partition, f"{whose}: {missing[0]} was committed")
        elif transaction.outcome is Outcome.UNKNOWN and (there or missing):
            self.verdict.count(f"transactions in doubt, {'there' if there else 'not there'}")

    def report(self, name: str, partition: TopicPartition, detail: str) -> None:
        _report(self.verdict, name, partition, detail)


def _check_grants(grants: Sequence[Grant], verdict: Verdict) -> None:
    owners: dict[tuple[str, int, TopicPartition], str] = {}
    for grant in grants:
        verdict.count("grants")
        for partition in grant.partitions:
            owner = owners.setdefault((grant.group, grant.epoch, partition), grant.member)
            if owner != grant.member:
                told = f"{owner} and {grant.member} in epoch {grant.epoch} of {grant.group}"
                _report(verdict, "two-owners", partition, told)
    for group in {grant.group for grant in grants}:
        _check_epochs(group, [grant for grant in grants if grant.group == group], verdict)


def _check_epochs(group: str, grants: Sequence[Grant], verdict: Verdict) -> None:
    ended = sorted(grants, key=lambda grant: grant.ended)
    known, at = 0, 0
    for grant in sorted(grants, key=lambda grant: grant.began):
        while at < len(ended) and ended[at].ended < grant.began:
            known = max(known, ended[at].epoch)
            at += 1
        if grant.joined and grant.epoch < known:
            told = f"{grant.member} joined {group} in epoch {grant.epoch} after {known}"
            _report(verdict, "epoch-regressed", TopicPartition(group, -1), told)


def _check_committed(events: Sequence[Event], verdict: Verdict) -> None:
    """Offsets only grow, so each who asks is told at least what was sure before it asked."""
    commits: defaultdict[tuple[str, TopicPartition], list[Commit]] = defaultdict(list)
    fetches: defaultdict[tuple[str, TopicPartition], list[Fetched]] = defaultdict(list)
    for event in events:
        if isinstance(event, Commit):
            verdict.count(f"commits_{event.outcome.value}")
            commits[event.group, event.partition].append(event)
        elif isinstance(event, Fetched):
            fetches[event.group, event.partition].append(event)
        elif isinstance(event, Transaction) and event.outcome is not Outcome.FAIL:
            for partition, offset in event.offsets.items():
                commits[event.group, partition].append(
                    Commit(
                        event.group, event.client, partition, offset, event.began, event.ended,
                        event.outcome,
                    )
                )  # fmt: skip
    for key, asked in fetches.items():
        _check_register(key, commits[key], asked, verdict)


def _check_register(
    key: tuple[str, TopicPartition],
    commits: Sequence[Commit],
    fetches: Sequence[Fetched],
    verdict: Verdict,
) -> None:
    group, partition = key
    possible = {commit.offset for commit in commits if commit.outcome is not Outcome.FAIL}
    sure = [(c.ended, c.offset) for c in commits if c.outcome is Outcome.OK]
    sure += [(fetched.ended, fetched.offset) for fetched in fetches]
    sure.sort()
    known, at = NO_OFFSET, 0
    for fetched in sorted(fetches, key=lambda fetched: fetched.began):
        while at < len(sure) and sure[at][0] < fetched.began:
            known = max(known, sure[at][1])
            at += 1
        if fetched.offset < known:
            told = f"{group} was told {fetched.offset} after {known}"
            _report(verdict, "committed-lost", partition, told)
        if fetched.offset != NO_OFFSET and fetched.offset not in possible:
            told = f"{group} was told {fetched.offset}, which nobody committed"
            _report(verdict, "committed-phantom", partition, told)


def check_copy(
    verdict: Verdict,
    sources: Mapping[TopicPartition, Sequence[str]],
    copies: Mapping[TopicPartition, Sequence[str]],
    offsets: Mapping[TopicPartition, int],
) -> None:
    """Each copy is its source from the start to the committed offset; keyed by the source."""
    for source, values in sources.items():
        copied, offset = list(copies[source]), max(offsets.get(source, NO_OFFSET), 0)
        verdict.count("records copied", len(copied))
        if copied != list(values[:offset]):
            at = next(
                (row for row, (a, b) in enumerate(zip(copied, values, strict=False)) if a != b),
                min(len(copied), offset),
            )
            told = f"{len(copied)} copied, committed {offset}, the first difference at {at}"
            _report(verdict, "copy-differs", source, told)
