"""What producers and consumers have in common: librdkafka is set up, and may not be reached."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from runnel.client.configuration import ConsumerConfig, ProducerConfig
from runnel.client.dependency import confluent_kafka
from runnel.client.failures import BrokerUnavailableError, ConfigurationError, error_of

LOG = logging.getLogger("runnel.client")
RDKAFKA_LOG = LOG.getChild("librdkafka")  # its own lines, for those who set up logging
RDKAFKA_LOG.addHandler(logging.NullHandler())
KafkaException = confluent_kafka.KafkaException
WAIT_SLICE_S: Final = 0.1  # librdkafka's waits cannot be interrupted by Ctrl-C
BOOTSTRAPS_ANEW_SINCE: Final = 0x020A0000  # 2.10; earlier ones do not know the setting

Raw = TypeVar("Raw")
Config = ProducerConfig | ConsumerConfig


def opened(
    make: Callable[[dict[str, Any]], Raw], config: Config, on_error: Callable[[Any], None]
) -> Raw:
    """Connects to nobody yet. Raises ConfigurationError."""
    settings: Mapping[str, Any] = {**config.settings(), **config.extra}
    if isinstance(config, ProducerConfig) and config.transactional_id is not None:
        settings = {**for_transactions(), **settings}
    try:
        return make({**settings, "error_cb": on_error, "logger": RDKAFKA_LOG})
    except KafkaException as error:
        raise ConfigurationError(f"librdkafka refuses: {error_of(error).str()}") from None


def for_transactions() -> dict[str, str]:
    """What a producer with transactions is to be given besides.

    A client that reaches no broker, as while the only one is restarted, forgets those that it knew
    and begins with its bootstrap servers. `send_offsets_to_transaction` then waits for a group
    coordinator that was forgotten, for ever and whatever its time-out (librdkafka's issues 5511 and
    5456).
    """
    if confluent_kafka.libversion()[1] < BOOTSTRAPS_ANEW_SINCE:
        return {}
    return {"metadata.recovery.strategy": "none"}


def unavailable(config: Config, timeout_s: float, trouble: str) -> BrokerUnavailableError:
    """`trouble`: what librdkafka said last about its connections."""
    reason = f" ({trouble})" if trouble else ""
    return BrokerUnavailableError(
        f"no broker answered at {config.servers} within {timeout_s:g} s{reason}; "
        "start one (`runnel serve`) or check bootstrap_servers",
        retriable=True,
    )
