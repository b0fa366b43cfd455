"""The coordinators' own topics, as they are created with the first request for a coordinator."""

from typing import Final

from runnel.cluster.image import Image
from runnel.cluster.topics import NewTopic
from runnel.config.settings import Settings

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"


def consumer_offsets(settings: Settings, image: Image) -> NewTopic:
    groups = settings.groups
    return NewTopic(
        CONSUMER_OFFSETS,
        groups.offsets_topic_num_partitions,
        _replicas(groups.offsets_topic_replication_factor, image),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(groups.offsets_topic_segment_bytes),
        },
    )


def transaction_state(settings: Settings, image: Image) -> NewTopic:
    transactions = settings.transactions
    factor = _replicas(transactions.transaction_state_log_replication_factor, image)
    return NewTopic(
        TRANSACTION_STATE,
        transactions.transaction_state_log_num_partitions,
        factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(min(transactions.transaction_state_log_min_isr, factor)),
            "segment.bytes": str(transactions.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )


def own_configs(settings: Settings, image: Image) -> dict[str, dict[str, str]]:
    """By topic. One that is adopted is configured as one that is made here."""
    return {
        topic.name: {name: value for name, value in topic.configs.items() if value is not None}
        for topic in (consumer_offsets(settings, image), transaction_state(settings, image))
    }


def _replicas(wanted: int, image: Image) -> int:
    """As many as there are brokers, if fewer: one broker alone is to work at once."""
    return max(1, min(wanted, sum(broker.ready for broker in image.brokers.values())))
