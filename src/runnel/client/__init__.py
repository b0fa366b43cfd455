"""Producers and consumers for Runnel and for Apache Kafka, typed, blocking and for asyncio.

    from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig

    with Producer(ProducerConfig("localhost:9092")) as producer:
        print(producer.send("greetings", "hello").offset)

They stand on librdkafka by way of confluent-kafka: `pip install 'runnel[client]'`. The other
modules of this package are the small wire client of Runnel's own commands, which needs neither:
that is why these names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.client.async_consumer import AsyncConsumer
    from runnel.client.async_producer import AsyncProducer
    from runnel.client.backoff import Backoff, retry, retry_async
    from runnel.client.builders import ConsumerConfigBuilder, ProducerConfigBuilder
    from runnel.client.configuration import (
        AckMode,
        CompressionType,
        ConsumerConfig,
        IsolationLevel,
        OffsetResetPolicy,
        ProducerConfig,
    )
    from runnel.client.consumer import Consumer
    from runnel.client.dead_letters import AsyncDeadLetters, DeadLetters, replay
    from runnel.client.delivery import Delivery
    from runnel.client.failures import (
        BrokerUnavailableError,
        ClientError,
        ClientTimeoutError,
        CommitError,
        ConfigurationError,
        ConsumeError,
        DeliveryError,
        FencedError,
        QueueFullError,
        SerializationError,
        TransactionError,
    )
    from runnel.client.information import client_info
    from runnel.client.message import Message
    from runnel.client.offsets import TopicPartition
    from runnel.client.producer import Producer
    from runnel.client.serializers import (
        AvroSerializer,
        BytesSerializer,
        JsonSerializer,
        Serializer,
        StringSerializer,
    )

_MODULES = {
    "AckMode": "configuration",
    "AsyncConsumer": "async_consumer",
    "AsyncDeadLetters": "dead_letters",
    "AsyncProducer": "async_producer",
    "AvroSerializer": "serializers",
    "Backoff": "backoff",
    "BrokerUnavailableError": "failures",
    "BytesSerializer": "serializers",
    "ClientError": "failures",
    "ClientTimeoutError": "failures",
    "CommitError": "failures",
    "CompressionType": "configuration",
    "ConfigurationError": "failures",
    "ConsumeError": "failures",
    "Consumer": "consumer",
    "ConsumerConfig": "configuration",
    "ConsumerConfigBuilder": "builders",
    "DeadLetters": "dead_letters",
    "Delivery": "delivery",
    "DeliveryError": "failures",
    "FencedError": "failures",
    "IsolationLevel": "configuration",
    "JsonSerializer": "serializers",
    "Message": "message",
    "OffsetResetPolicy": "configuration",
    "Producer": "producer",
    "ProducerConfig": "configuration",
    "ProducerConfigBuilder": "builders",
    "QueueFullError": "failures",
    "SerializationError": "failures",
    "Serializer": "serializers",
    "StringSerializer": "serializers",
    "TopicPartition": "offsets",
    "TransactionError": "failures",
    "client_info": "information",
    "replay": "dead_letters",
    "retry": "backoff",
    "retry_async": "backoff",
}

__all__ = [
    "AckMode",
    "AsyncConsumer",
    "AsyncDeadLetters",
    "AsyncProducer",
    "AvroSerializer",
    "Backoff",
    "BrokerUnavailableError",
    "BytesSerializer",
    "ClientError",
    "ClientTimeoutError",
    "CommitError",
    "CompressionType",
    "ConfigurationError",
    "ConsumeError",
    "Consumer",
    "ConsumerConfig",
    "ConsumerConfigBuilder",
    "DeadLetters",
    "Delivery",
    "DeliveryError",
    "FencedError",
    "IsolationLevel",
    "JsonSerializer",
    "Message",
    "OffsetResetPolicy",
    "Producer",
    "ProducerConfig",
    "ProducerConfigBuilder",
    "QueueFullError",
    "SerializationError",
    "Serializer",
    "StringSerializer",
    "TopicPartition",
    "TransactionError",
    "client_info",
    "replay",
    "retry",
    "retry_async",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
