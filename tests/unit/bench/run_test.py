"""Which cells a run takes, and which brokers it understands."""

import pytest

from bench.brokers import ensure_word
from bench.model import Cell, Figures, Measure, Scale, Target
from bench.run import chosen


def cell(*names: str, is_quick: bool = True) -> Cell:
    def run(_target: Target, _scale: Scale) -> Figures:
        raise AssertionError("not run here")

    return Cell(tuple(Measure(name, "us") for name in names), run, is_quick=is_quick)


FETCH, PRODUCE = cell("fetch p50", "fetch p99"), cell("produce")
LONG, ALL = cell("long fetch", is_quick=False), cell("produce, acks=all")
CELLS = (FETCH, PRODUCE, LONG, ALL)


@pytest.mark.parametrize(
    ("words", "quick", "wanted"),
    [
        ([], False, [FETCH, PRODUCE, LONG, ALL]),
        ([], True, [FETCH, PRODUCE, ALL]),
        (["fetch"], True, [FETCH, LONG]),
        (["p99", "acks"], False, [FETCH, ALL]),
        (["produce"], False, [PRODUCE]),
        (["nothing"], False, []),
    ],
    ids=["all", "quick", "a word", "two words", "a whole name", "unknown"],
)
def test_words_choose_cells(words: list[str], quick: bool, wanted: list[Cell]) -> None:
    assert chosen(CELLS, words, quick) == wanted


@pytest.mark.parametrize("word", ["kafka", "runnel:os", "runnel:ack", "other=127.0.0.1:9092/12"])
def test_words_name_brokers(word: str) -> None:
    assert ensure_word(word) == word


@pytest.mark.parametrize("word", ["runnel", "runnel:never", "redis", "other=here", "x=h:1/pid"])
def test_other_words_do_not(word: str) -> None:
    with pytest.raises(ValueError):
        ensure_word(word)
