"""A message broker that every Kafka client can use unchanged."""

__version__ = "0.1.0"
