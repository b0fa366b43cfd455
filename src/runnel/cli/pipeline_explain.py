"""`runnel pipeline explain`: the plan in words, and on demand Spark's."""

import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

from runnel.cli.output import EXIT_FAILED, CommandError, show_json, show_line
from runnel.cli.pipeline_files import home_of, load

WIDTH = 100


def explain(given: str, state_dir: Path | None, *, spark: bool, as_json: bool) -> None:
    from runnel.pipelines.explaining import explain as words
    from runnel.pipelines.origin import OriginError

    spec = load(given)
    try:
        lines = list(words(spec, home_of(spec, state_dir)))
    except OriginError as error:
        raise CommandError(str(error)) from None
    plan = _plan(given) if spark else ""
    if as_json:
        document: dict[str, object] = {name: spec.hidden(text) for name, text in lines if name}
        document["also"] = [spec.hidden(text) for name, text in lines if not name]
        show_json(document | ({"plan": plan} if spark else {}))
        return
    width = max(len(name) for name, _ in lines) + 2
    for name, text in lines:
        filled = textwrap.wrap(
            spec.hidden(text), WIDTH - width, break_on_hyphens=False, break_long_words=False
        )
        show_line(f"{name:<{width}}{filled[0]}")
        for more in filled[1:]:
            show_line(" " * width + more)
    if plan:
        show_line(f"\n{plan}")


def _plan(given: str) -> str:
    from runnel.pipelines.building import built, plan_of
    from runnel.pipelines.failures import PipelineError

    spec = load(given)
    with TemporaryDirectory(prefix="runnel-explain-") as folder:
        try:
            with built(spec, Path(folder)) as flow:
                return plan_of(flow)
        except PipelineError as error:
            raise CommandError(f"{spec.name}: {error}", EXIT_FAILED) from None
