"""The `runnel` command. `serve` and `health` go their own short way; the rest is the command line.

A broker shall answer within 0.3 s of its start, and the framework of the other commands would take
most of that to import (ADR 4); a probe runs every few seconds.
"""

import sys


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        from runnel.cli.serve import main as serve

        sys.exit(serve(arguments[1:]))
    if arguments[:1] == ["health"]:
        from runnel.cli.health import main as health

        sys.exit(health(arguments[1:]))
    from runnel.cli.app import main as run

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
