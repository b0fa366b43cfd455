"""The runner of the documents' examples: what it takes for a command, and what for agreement."""

from pathlib import Path

import pytest

from tests.support.examples import agrees, examples_of

DOCUMENT = """\
# Words

```console
$ runnel serve
... is ready on 127.0.0.1:9092

$ cat > file <<END
> one
> END
$ cat file
one
```

```python
print("hello")
```

```console not-run
$ rm -rf everything
```

```yaml
not: run
```
"""


def test_what_is_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(DOCUMENT)
    serve, make, show, script = examples_of(document)
    assert serve.starts_a_broker and serve.line == 4
    assert make.command == "cat > file <<END\none\nEND" and make.output == []
    assert (show.command, show.output) == ("cat file", ["one"])
    assert 'print("hello")' in script.command


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "b"], "a\n", False),
        (["a"], "a\nb\n", False),
        (["a", "..."], "a\nb\nc\n", True),
        (["...", "c"], "a\nb\nc\n", True),
        (["id ... end"], "id 1234 end\n", True),
        (["id ... end"], "id 1234\n", False),
        (["took 3 ms"], "took 120 ms\n", True),
        (["took 3 ms"], "took 3 cm\n", False),
        ([], "anything\n", True),
        (["a", ""], "a\n", True),
    ],
)
def test_agreement(shown: list[str], printed: str, agree: bool) -> None:
    assert agrees(shown, printed) == agree
