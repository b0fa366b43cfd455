"""docs/configuration.md says what the registry says. Its commands are run by tests/docs_test.py."""

from pathlib import Path

import pytest

from runnel.config.meanings import MEANINGS, meaning
from runnel.config.registry import BROKER, GROUP, TOPIC
from runnel.config.settings import load
from tests.support.blocks import blocks_of
from tools.document_configs import TARGET, counts, document


def test_the_page_is_what_the_script_writes() -> None:
    assert TARGET.read_text() == document(), (
        "run: PYTHONPATH=src:. python tools/document_configs.py"
    )


def test_every_honoured_name_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    every = [*BROKER.values(), *TOPIC.values(), *GROUP.values()]
    for definition in every:
        assert meaning(definition) or definition.status != "honoured", definition.name
    assert {definition.name for definition in every} >= MEANINGS.keys()
    with capsys.disabled():
        print(f"\n{counts()}", end="")


def test_the_three_files_give_the_same_broker(tmp_path: Path) -> None:
    found = []
    for block in blocks_of(TARGET):
        if block.title is None:
            continue
        file = tmp_path / block.title
        file.write_text(block.body)
        settings, warnings = load({}, {}, file)
        assert not warnings
        found.append(
            (
                settings.listeners,
                settings.node_id,
                settings.num_partitions,
                settings.log,
                settings.log_dirs,
                settings.own_log,
            )
        )
    assert len(found) == 3 and found[0] == found[1] == found[2]
    assert found[0][1:3] == (1, 3)
