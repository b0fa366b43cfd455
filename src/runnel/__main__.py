"""The `runnel` command: finds the subcommand and imports nothing else."""

import sys

USAGE = """\
usage: runnel COMMAND [options]

  serve     run a broker that every Kafka client can connect to
  bench     load a running broker and tell how fast it is

`runnel COMMAND --help` tells more, `runnel --version` the version.
"""


def main() -> None:
    command, *rest = sys.argv[1:] or ["--help"]
    if command == "serve":
        from runnel.cli.serve import main as serve

        sys.exit(serve(rest))
    if command == "bench":
        from runnel.cli.bench import main as bench

        sys.exit(bench(rest))
    if command == "--version":
        from runnel import __version__

        sys.stdout.write(f"runnel {__version__}\n")
    elif command in ("--help", "-h", "help"):
        sys.stdout.write(USAGE)
    else:
        sys.stderr.write(f"runnel: there is no command {command!r}\n\n{USAGE}")
        sys.exit(2)


if __name__ == "__main__":
    main()
