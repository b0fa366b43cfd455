"""confluent-kafka, or one line that says how to get it."""

from runnel.client.failures import ClientError


class MissingDependencyError(ClientError, ImportError):
    """The library that `runnel.client` stands on is not installed."""


try:
    import confluent_kafka
except ImportError:
    raise MissingDependencyError(
        "runnel.client needs confluent-kafka: pip install 'runnel[client]'"
    ) from None

__all__ = ["MissingDependencyError", "confluent_kafka"]
