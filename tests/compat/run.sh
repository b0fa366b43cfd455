#!/bin/sh
# Other people's clients and tools against Runnel; `run.sh --broker kafka` proves the suites.
# Needs java, mvn, go and python; kcat is installed where the system allows it.
set -eu
cd "$(dirname "$0")/../.."

if ! command -v kcat >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
    apt-get install -y -q kcat >/dev/null 2>&1 || echo "kcat could not be installed" >&2
fi

[ -x .venv/bin/python ] || make setup

exec .venv/bin/python -m tests.compat.run "$@"
