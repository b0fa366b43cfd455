#!/bin/sh
# Other people's clients and tools against Runnel; `run.sh --broker kafka` proves the programs.
# Needs java, mvn, go, node, npm, cargo and a C++ compiler: a client whose tools are missing is
# skipped, and said to be. What Debian packages for them is installed where the system allows it:
# kcat, librdkafka for the page about C, and the headers that librdkafka in Node is compiled with.
set -eu
cd "$(dirname "$0")/../.."

install() {
    command -v apt-get >/dev/null 2>&1 || return 0
    apt-get install -y -q "$@" >/dev/null 2>&1 && return 0
    { apt-get update -q && apt-get install -y -q "$@"; } >/dev/null 2>&1 ||
        echo "$* could not be installed" >&2
}

command -v kcat >/dev/null 2>&1 || install kcat
pkg-config --exists rdkafka 2>/dev/null || install librdkafka-dev pkg-config
for header in curl/curl.h zstd.h sasl/sasl.h openssl/ssl.h zlib.h; do
    [ -n "$(find /usr/include -path "*/$header" 2>/dev/null | head -n 1)" ] && continue
    install libcurl4-openssl-dev libzstd-dev libsasl2-dev libssl-dev zlib1g-dev
    break
done

[ -x .venv/bin/python ] || make setup

exec .venv/bin/python -m tests.compat.run "$@"
