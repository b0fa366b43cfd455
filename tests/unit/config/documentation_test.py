"""docs/configuration.md says what the registry says, and its examples do what it claims."""

import re
import shlex
from pathlib import Path

import pytest

from runnel.cli.serve import arguments, settings_from
from runnel.config.meanings import MEANINGS, meaning
from runnel.config.registry import BROKER, GROUP, TOPIC
from runnel.config.settings import load
from tools.document_configs import TARGET, counts, document

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(*kinds: str) -> list[tuple[str, str]]:
    found = BLOCK.findall(TARGET.read_text())
    return [(kind, text) for kind, text in found if kind in kinds]


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
    for kind, text in blocks("yaml", "json", "properties"):
        file = tmp_path / f"broker.{kind}"
        file.write_text(text)
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


def test_every_command_line_is_understood(tmp_path: Path) -> None:
    (tmp_path / "broker.yaml").write_text(blocks("yaml")[0][1])
    ((_, text),) = blocks("sh")
    lines = text.splitlines()
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line.replace("broker.yaml", str(tmp_path / "broker.yaml")))
        at = words.index("runnel")
        environ = dict(word.split("=", 1) for word in words[:at])
        assert words[at + 1] == "serve"
        options = arguments().parse_args(words[at + 2 :])
        assert settings_from(options, environ)[0].given, line
