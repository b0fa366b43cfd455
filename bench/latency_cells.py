"""Cells of latency: at rest, at half load, with every ack on disk, beside cold reads."""

from bench import client_latency, cold
from bench.figures import latency_cell
from bench.half_load import half_load
from bench.load_cells import ON_DISK
from bench.model import Cell, Figure, Figures, Measure, Scale, Target
from runnel.bench import latency
from runnel.bench.latency import ONE_RECORD, Latency
from runnel.bench.usage import Usage

ON_DISK_SAMPLES_MAX = 1000  # a sync of the disk takes milliseconds on some
CLIENT_SAMPLES_MAX = 2000  # others are stopped meanwhile, which must not be for long


def _sync(target: Target, scale: Scale) -> Latency:
    return latency.sync_produce(target.address, samples=scale.samples)


def _end_to_end(target: Target, scale: Scale) -> Latency:
    return latency.end_to_end(target.address, samples=scale.samples)


def _end_to_end_librdkafka(target: Target, scale: Scale) -> Latency:
    samples = min(scale.samples, CLIENT_SAMPLES_MAX)
    return client_latency.end_to_end(target.address, samples=samples)


def _sync_at_half_load(target: Target, scale: Scale) -> Latency:
    with half_load(target.address, scale.seconds):
        return _sync(target, scale)


def _end_to_end_at_half_load(target: Target, scale: Scale) -> Latency:
    with half_load(target.address, scale.seconds):
        return _end_to_end(target, scale)


def _sync_on_disk(target: Target, scale: Scale) -> Latency:
    load = ONE_RECORD._replace(configs=ON_DISK)
    samples = min(scale.samples, ON_DISK_SAMPLES_MAX)
    return latency.sync_produce(target.address, samples=samples, load=load)


def _beside_cold_reads() -> Cell:
    before = Measure("produce p99 before cold data is read", "us")
    meanwhile = Measure("produce p99 while cold data is read", "us")
    read = Measure("cold data read meanwhile", "MB/s")

    def run(target: Target, scale: Scale) -> Figures:
        if target.data_dir is None:
            return {}
        usage = Usage(target.pid)
        found = cold.produce_while_reading(
            target.address, target.data_dir, samples=scale.samples, megabytes=scale.megabytes
        )
        cost = usage.cost()
        return {
            before.name: Figure(found.before.p99, cost=cost),
            meanwhile.name: Figure(found.meanwhile.p99, cost=cost),
            read.name: Figure(found.read_megabytes_per_second, cost=cost),
        }

    return Cell((before, meanwhile, read), run, is_own=True, is_tail=True)


LATENCY_CELLS: tuple[Cell, ...] = (
    latency_cell("sync produce", _sync)._replace(is_alone=True, is_tail=True),
    latency_cell("end to end", _end_to_end)._replace(is_alone=True, is_tail=True),
    latency_cell("end to end, librdkafka", _end_to_end_librdkafka, is_quick=False)._replace(
        is_alone=True, is_tail=True
    ),
    latency_cell("sync produce at half load", _sync_at_half_load, is_quick=False),
    latency_cell("end to end at half load", _end_to_end_at_half_load, is_quick=False),
    latency_cell("sync produce, every ack on disk", _sync_on_disk, is_quick=False),
    _beside_cold_reads(),
)
