"""Every shipped pipeline, killed with -9 in the middle and run again: the same as undisturbed.

    python -m tests.pipeline_faults.run [--only table] [--seeds 3] [--keep FOLDER]

For each case of `tests/pipeline_faults/*.py`: every victim at every step that it names, then as
many seeds more, each with a fault drawn from them. One line for each.
"""

import argparse
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tests.pipeline_faults.case import Case, Stage
from tests.pipeline_faults.striking import Fault, RunError, drawn, faults_of, run
from tests.support.process import BrokerProcess

HERE = Path(__file__).parent
NOT_REACHED = "NOT REACHED"
NOT_CASES = ("case", "striking", "run")


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for file in sorted(HERE.glob("*.py")):
        if file.stem not in NOT_CASES:
            module = import_module(f"{__package__}.{file.stem}")
            found |= {case.name: case for case in module.CASES}
    return found


def main() -> int:
    known = cases()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(known), action="append", help="these alone")
    parser.add_argument("--victim", action="append", help="these alone: driver, broker, disk ...")
    parser.add_argument("--seeds", type=int, default=0, help="faults drawn after all of them")
    parser.add_argument("--keep", type=Path, help="a folder for what the run leaves")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="pipeline-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    try:
        with BrokerProcess(
            folder / "data", settings={"group.initial.rebalance.delay.ms": "0"}
        ) as broker:
            for name in given.only or sorted(known):
                failed += _run(folder / name, broker, known[name], given)
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    _say("every pipeline as if undisturbed" if not failed else f"{failed} went wrong")
    return 1 if failed else 0


def _run(folder: Path, broker: BrokerProcess, case: Case, given: argparse.Namespace) -> int:
    folder.mkdir()
    stage = Stage(folder, broker, case)
    case.written(stage)
    case.prepare(stage)
    victims = [each for each in case.victims if each in (given.victim or case.victims)]
    faults = faults_of(case.steps, victims)
    all_of_them = len(faults)
    faults += [drawn(stage, seed) for seed in range(given.seeds)]
    failed = 0
    for number, fault in enumerate(faults):
        told = _under(stage, fault)
        is_too_late = told == NOT_REACHED and number >= all_of_them  # drawn after the run's end
        failed += not (told.startswith("ok") or is_too_late)
        _say(f"{case.name}: {fault}: {told}")
    return failed


def _under(stage: Stage, fault: Fault) -> str:
    stage.case.grow(stage)
    stage.rounds += 1
    try:
        outcome = run(stage, fault)
    except RunError as error:
        return f"FAILED {error}"
    if wrong := stage.case.wrong(stage):
        return wrong
    if not outcome.struck:
        return NOT_REACHED
    return f"ok, {outcome.tries} tries, {outcome.seconds:.0f} s"


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
