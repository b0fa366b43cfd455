"""The rows that a pipeline begins with: `from` and `decode` as options of the source."""

from typing import TYPE_CHECKING

from runnel.pipelines.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from runnel.pipelines.kind import Run


def input_stream(run: "Run", **more: str) -> "DataFrame":
    """The stream of `from`, decoded. `more` are options of the source that go before all others."""
    options = source_options(run.spec, run.query_id) | more
    return run.spark.readStream.format("runnel").options(**options).load()


def source_options(spec: Spec, query_id: str) -> dict[str, str]:
    source = spec.source
    found = {
        "kafka.bootstrap.servers": source.bootstrap,
        "queryId": query_id,
        "isolation": "read_committed",
        **_what(spec),
        **_start(source.start),
        **decode_options(spec),
    }
    if source.on_data_loss == "skip":
        found["failOnDataLoss"] = "false"
    return found | dict(source.options)


def decode_options(spec: Spec) -> dict[str, str]:
    decode = spec.decode
    if not decode.format:
        return {}
    found = {"decode": decode.format}
    for name, value in (
        ("valueSchema", decode.schema),
        ("schemaRegistry", decode.registry),
        ("schemaSubject", decode.subject),
    ):
        if value:
            found[name] = value
    if decode.nested:
        found["nestValue"] = "true"
    if decode.bad_records == "dead_letter":
        found |= {"badRecords": "dlq", "deadLetterTopic": dead_letter_topic(spec)}
    else:
        found["badRecords"] = "fail" if decode.bad_records == "fail" else "null"
    return found


def dead_letter_topic(spec: Spec) -> str:
    return spec.decode.dead_letters or f"{spec.name}-dlq"


def _what(spec: Spec) -> dict[str, str]:
    source = spec.source
    found = {"path": source.path} if source.path else {}
    if source.pattern:
        return {**found, "subscribePattern": source.pattern}
    return {**found, "subscribe": ",".join(source.topics)}


def _start(text: str) -> dict[str, str]:
    from runnel.pipelines.starting import start_options

    return start_options(text)
