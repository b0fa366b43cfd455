"""The page of options says what the code does."""

from runnel.spark.kafka_settings import REFUSED, USED, WITHOUT_EFFECT
from runnel.spark.reads.option_table import BATCH, BOTH, OPTIONS, STREAM
from tools import document_spark


def test_the_page_is_as_generated() -> None:
    assert document_spark.TARGET.read_text() == document_spark.rendered(), (
        "run: python -m tools.document_spark"
    )


def test_every_option_is_described_with_an_example() -> None:
    for name, option in OPTIONS.items():
        assert option.meaning.endswith((".", "`")), name
        assert option.example, name
        assert option.reads in (BATCH, STREAM, BOTH), name


def test_a_setting_of_the_client_has_one_fate() -> None:
    fates = [*USED, *REFUSED, *WITHOUT_EFFECT]
    assert len(fates) == len(set(fates))
