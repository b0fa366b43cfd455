"""The runner of the documents' examples: what it takes for a command, and what for agreement."""

from pathlib import Path

import pytest

from tests.support.blocks import BlockError
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

<!-- run by make compat -->

```go
package main
```

```yaml title="broker.yaml"
port: 1
```

```console
$ A=1 runnel serve -c broker.yaml
```

1. In a list:

    ```console
    $ echo within
    within
    ```

```text
a drawing
```
"""


def test_what_is_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(DOCUMENT)
    serve, make, show, script, file, serve_more, within = examples_of(document)
    assert serve.starts_a_broker and not serve.has_settings and serve.line == 4
    assert make.command == "cat > file <<END\none\nEND" and make.output == []
    assert (show.command, show.output) == ("cat file", ["one"])
    assert 'print("hello")' in script.command
    assert file.command.startswith("cat > broker.yaml <<") and "port: 1" in file.command
    assert (within.command, within.output) == ("echo within", ["within"])
    assert serve_more.starts_a_broker and serve_more.has_settings


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("```sh\nls\n```\n", "nothing runs this sh"),
        ("```yaml\na: 1\n```\n", "nothing runs this yaml"),
        ('```yaml title="a.yaml"\na: 1\n```\n', "no command uses a.yaml"),
        ("```console not-run\n$ ls\n```\n", "'not-run' is not title"),
        ("```console\nls\n```\n", "no command to run"),
        ("```\n$ ls\n```\n", "commands belong into a console block"),
        ("<!-- run by make nothing -->\n```go\nx\n```\n", "there is no make nothing"),
    ],
)
def test_a_block_that_nobody_runs_is_refused(tmp_path: Path, block: str, why: str) -> None:
    document = tmp_path / "document.md"
    document.write_text(f"# Words\n\n{block}")
    with pytest.raises(BlockError, match=why):
        list(examples_of(document))


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
