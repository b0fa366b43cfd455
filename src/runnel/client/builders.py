"""Settings call by call, for those who like them so.

    config = (
        ProducerConfig.builder()
        .servers("localhost:9092")
        .acks(AckMode.ALL)
        .batching(linger_ms=20, size_bytes=200_000)
        .compression(CompressionType.ZSTD)
        .build()
    )

Everything is checked by `build`, by the same rules as in `ProducerConfig` and `ConsumerConfig`.
"""

from typing import Any, Self

from runnel.client.configuration import (
    AckMode,
    CompressionType,
    ConsumerConfig,
    IsolationLevel,
    OffsetResetPolicy,
    ProducerConfig,
    Setting,
)
from runnel.client.failures import ConfigurationError
from runnel.client.serializers import Serializer


class _Builder:
    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._extra: dict[str, Setting] = {}

    def _with(self, **given: object) -> Self:
        self._fields.update({name: value for name, value in given.items() if value is not None})
        return self

    def _build(self, kind: type[Any]) -> Any:  # noqa: ANN401  # typed by `build` of each
        try:
            return kind(**self._fields, extra=self._extra)
        except TypeError as error:
            raise ConfigurationError(str(error)) from None

    def servers(self, *addresses: str) -> Self:
        return self._with(bootstrap_servers=addresses)

    def client_id(self, name: str) -> Self:
        return self._with(client_id=name)

    def security(
        self,
        protocol: str,
        *,
        mechanism: str | None = None,
        username: str | None = None,
        password: str | None = None,
        ca_location: str | None = None,
    ) -> Self:
        return self._with(
            security_protocol=protocol,
            sasl_mechanism=mechanism,
            sasl_username=username,
            sasl_password=password,
            ssl_ca_location=ca_location,
        )

    def setting(self, name: str, value: object) -> Self:
        """A field of the settings by its name."""
        self._fields[name] = value
        return self

    def extra(self, name: str, value: Setting) -> Self:
        """Anything that librdkafka knows, by its own name."""
        self._extra[name] = value
        return self


class ProducerConfigBuilder(_Builder):
    """Made by `ProducerConfig.builder()`."""

    def acks(self, mode: AckMode) -> Self:
        return self._with(acks=mode)

    def idempotence(self, enabled: bool = True) -> Self:
        return self._with(enable_idempotence=enabled)

    def batching(self, *, linger_ms: float | None = None, size_bytes: int | None = None) -> Self:
        return self._with(linger_ms=linger_ms, batch_size=size_bytes)

    def retrying(
        self,
        *,
        retries: int | None = None,
        backoff_ms: int | None = None,
        delivery_timeout_ms: int | None = None,
    ) -> Self:
        return self._with(
            retries=retries, retry_backoff_ms=backoff_ms, delivery_timeout_ms=delivery_timeout_ms
        )

    def compression(self, kind: CompressionType) -> Self:
        return self._with(compression_type=kind)

    def queue(
        self,
        *,
        messages: int | None = None,
        size_bytes: int | None = None,
        max_block_ms: int | None = None,
    ) -> Self:
        return self._with(
            queue_messages=messages, queue_bytes=size_bytes, max_block_ms=max_block_ms
        )

    def transactional(self, transactional_id: str, *, timeout_ms: int | None = None) -> Self:
        return self._with(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)

    def serializers(
        self, *, key: Serializer | None = None, value: Serializer | None = None
    ) -> Self:
        return self._with(key_serializer=key, value_serializer=value)

    def build(self) -> ProducerConfig:
        config: ProducerConfig = self._build(ProducerConfig)
        return config


class ConsumerConfigBuilder(_Builder):
    """Made by `ConsumerConfig.builder()`."""

    def group(self, group_id: str, *, instance_id: str | None = None) -> Self:
        return self._with(group_id=group_id, group_instance_id=instance_id)

    def start_at(self, policy: OffsetResetPolicy) -> Self:
        return self._with(auto_offset_reset=policy)

    def auto_commit(self, enabled: bool = True, *, interval_ms: int | None = None) -> Self:
        return self._with(enable_auto_commit=enabled, auto_commit_interval_ms=interval_ms)

    def polling(
        self, *, max_records: int | None = None, max_interval_ms: int | None = None
    ) -> Self:
        return self._with(max_poll_records=max_records, max_poll_interval_ms=max_interval_ms)

    def isolation(self, level: IsolationLevel) -> Self:
        return self._with(isolation_level=level)

    def deserializers(
        self, *, key: Serializer | None = None, value: Serializer | None = None
    ) -> Self:
        return self._with(key_deserializer=key, value_deserializer=value)

    def build(self) -> ConsumerConfig:
        config: ConsumerConfig = self._build(ConsumerConfig)
        return config
