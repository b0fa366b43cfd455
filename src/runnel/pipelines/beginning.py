"""The first step of a run: whether the checkpoint that is there is this file's, and goes on."""

from collections.abc import Callable
from dataclasses import replace

from runnel.pipelines import origin as origins
from runnel.pipelines.checkpoint import reached
from runnel.pipelines.failures import MISTAKE, Failure, PipelineError
from runnel.pipelines.home import Home
from runnel.pipelines.origin import Origin
from runnel.pipelines.spec import Spec


def begin(spec: Spec, home: Home, tell: Callable[[str], None]) -> tuple[Spec, str]:
    """What is to be run, as a reset may have changed it, and its query id. Raises PipelineError."""
    try:
        origin = origins.read(home)
    except origins.OriginError as error:
        raise PipelineError(Failure(MISTAKE, str(error))) from None
    if origin.start:
        spec = _starting(spec, origin.start)
    now = origins.told(spec)
    has_state = reached(home.checkpoint).has_state
    for change in origins.changes(origin.spec, now, has_state=has_state):
        if change.needs_reset:
            raise PipelineError(
                Failure(
                    MISTAKE,
                    f"{change.what} since this pipeline began: {change.meaning}."
                    f" 'runnel pipeline reset {spec.name} --to earliest' begins anew, and"
                    " says first what that means; another name would be another pipeline.",
                )
            )
        tell(f"{change.what} since the last run: {change.meaning}")
    origins.write(home, Origin(origin.generation, origin.start, now))
    return spec, origin.query_id(spec.name)


def _starting(spec: Spec, start: str) -> Spec:
    """Where a reset has set it, whatever the file says of the first time."""
    options = spec.source.options.items()
    kept = {name: text for name, text in options if not name.lower().startswith("starting")}
    return replace(spec, source=replace(spec.source, start=start, options=kept))
