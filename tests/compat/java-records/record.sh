#!/bin/sh
# Records what Kafka's Java writes into tests/unit/native/recorded. Needs Maven, Java 17 and xz.
set -eu
cd "$(dirname "$0")"
class_path=$(mktemp)
trap 'rm -f "$class_path" "$class_path.lines"' EXIT
mvn -q -f pom.xml dependency:build-classpath -Dmdep.outputFile="$class_path"
java -cp "$(cat "$class_path")" RecordOracle.java write > "$class_path.lines"
mkdir -p ../../unit/native/recorded
xz -9e < "$class_path.lines" > ../../unit/native/recorded/batches.jsonl.xz
wc -l < "$class_path.lines"
