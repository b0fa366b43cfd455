"""Every API this broker serves: versions, handler, and the right it needs.

What is not in this table is not advertised. A row without a right says so with None on purpose.
What only administrators ask for is imported when somebody does (`_late`), because each of these
modules costs a start one or two milliseconds.
"""

from importlib import import_module

from runnel.broker.context import RequestContext, Services
from runnel.broker.dispatch import ApiRow, Handler
from runnel.broker.handlers.api_versions import AdvertisedVersions
from runnel.broker.handlers.coordinators import find_coordinator
from runnel.broker.handlers.epochs import offset_for_leader_epoch
from runnel.broker.handlers.fetch import fetch
from runnel.broker.handlers.list_offsets import list_offsets
from runnel.broker.handlers.metadata import describe_cluster, metadata
from runnel.broker.handlers.produce import produce
from runnel.broker.handlers.producers import init_producer_id
from runnel.broker.handlers.records import delete_records
from runnel.broker.handlers.topics import create_topics, delete_topics
from runnel.broker.security import Operation, Resource, Right
from runnel.wire.apis import APIS, ApiKey

WRITE_TOPIC = Right(Operation.WRITE, Resource.TOPIC)
READ_TOPIC = Right(Operation.READ, Resource.TOPIC)
DESCRIBE_TOPIC = Right(Operation.DESCRIBE, Resource.TOPIC)
CREATE_TOPIC = Right(Operation.CREATE, Resource.TOPIC)
ALTER_TOPIC = Right(Operation.ALTER, Resource.TOPIC)
DELETE_TOPIC = Right(Operation.DELETE, Resource.TOPIC)
WRITE_IDEMPOTENTLY = Right(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)
DESCRIBE_GROUP = Right(Operation.DESCRIBE, Resource.GROUP)
READ_GROUP = Right(Operation.READ, Resource.GROUP)
DELETE_GROUP = Right(Operation.DELETE, Resource.GROUP)
WRITE_TRANSACTIONALLY = Right(Operation.WRITE, Resource.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION = Right(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID)
ALTER_CLUSTER = Right(Operation.ALTER, Resource.CLUSTER)
DESCRIBE_CONFIGS = Right(Operation.DESCRIBE_CONFIGS, Resource.TOPIC)
ALTER_CONFIGS = Right(Operation.ALTER_CONFIGS, Resource.TOPIC)
LIST_CONFIGS = Right(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
DESCRIBE_CLUSTER = Right(Operation.DESCRIBE, Resource.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS = Right(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
ALTER_CLUSTER_CONFIGS = Right(Operation.ALTER_CONFIGS, Resource.CLUSTER)


def _late(name: str) -> Handler:
    """The handler `<module>.<function>`, imported at its first call."""
    module, _, function = name.partition(".")
    found: Handler | None = None

    def call(context: RequestContext, services: Services, request: object) -> object:
        nonlocal found
        if found is None:
            found = getattr(import_module(f"runnel.broker.handlers.{module}"), function)
        response: object = found(context, services, request)
        return response

    return call


def api_table() -> tuple[ApiRow, ...]:
    rows = [
        # librdkafka looks for version 0, so Kafka advertises it and serves from 3 (KAFKA-18659).
        ApiRow(ApiKey.PRODUCE, produce, WRITE_TOPIC, advertised_from=0),
        ApiRow(ApiKey.FETCH, fetch, READ_TOPIC),
        ApiRow(ApiKey.LIST_OFFSETS, list_offsets, DESCRIBE_TOPIC),
        ApiRow(ApiKey.METADATA, metadata, DESCRIBE_TOPIC),
        ApiRow(ApiKey.FIND_COORDINATOR, find_coordinator, DESCRIBE_GROUP),
        ApiRow(ApiKey.JOIN_GROUP, _late("classic_groups.join_group"), READ_GROUP),
        ApiRow(ApiKey.HEARTBEAT, _late("classic_groups.heartbeat"), READ_GROUP),
        ApiRow(ApiKey.LEAVE_GROUP, _late("classic_groups.leave_group"), READ_GROUP),
        ApiRow(ApiKey.SYNC_GROUP, _late("classic_groups.sync_group"), READ_GROUP),
        ApiRow(ApiKey.OFFSET_COMMIT, _late("offset_commit.offset_commit"), READ_GROUP),
        ApiRow(ApiKey.OFFSET_FETCH, _late("offset_fetch.offset_fetch"), DESCRIBE_GROUP),
        ApiRow(ApiKey.OFFSET_DELETE, _late("groups.offset_delete"), DELETE_GROUP),
        ApiRow(ApiKey.TXN_OFFSET_COMMIT, _late("txn_offset_commit.txn_offset_commit"), READ_GROUP),
        ApiRow(ApiKey.LIST_GROUPS, _late("groups.list_groups"), DESCRIBE_GROUP),
        ApiRow(ApiKey.DESCRIBE_GROUPS, _late("groups.describe_groups"), DESCRIBE_GROUP),
        ApiRow(ApiKey.DELETE_GROUPS, _late("groups.delete_groups"), DELETE_GROUP),
        ApiRow(ApiKey.CREATE_TOPICS, create_topics, CREATE_TOPIC),
        ApiRow(ApiKey.DELETE_TOPICS, delete_topics, DELETE_TOPIC),
        ApiRow(ApiKey.DELETE_RECORDS, delete_records, DELETE_TOPIC),
        ApiRow(ApiKey.INIT_PRODUCER_ID, init_producer_id, WRITE_IDEMPOTENTLY),
        ApiRow(ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch, DESCRIBE_TOPIC),
        ApiRow(ApiKey.DESCRIBE_CLUSTER, describe_cluster, DESCRIBE_CLUSTER),
        ApiRow(ApiKey.DESCRIBE_CONFIGS, _late("configs.describe_configs"), DESCRIBE_CONFIGS),
        ApiRow(ApiKey.ALTER_CONFIGS, _late("alter_configs.alter_configs"), ALTER_CONFIGS),
        ApiRow(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            _late("alter_configs.incremental_alter_configs"),
            ALTER_CONFIGS,
        ),
        ApiRow(ApiKey.LIST_CONFIG_RESOURCES, _late("configs.list_config_resources"), LIST_CONFIGS),
        ApiRow(ApiKey.CREATE_PARTITIONS, _late("growth.create_partitions"), ALTER_TOPIC),
        ApiRow(ApiKey.DESCRIBE_LOG_DIRS, _late("log_dirs.describe_log_dirs"), DESCRIBE_CLUSTER),
        ApiRow(
            ApiKey.ALTER_REPLICA_LOG_DIRS, _late("log_dirs.alter_replica_log_dirs"), ALTER_CLUSTER
        ),
        ApiRow(ApiKey.ELECT_LEADERS, _late("assignments.elect_leaders"), ALTER_CLUSTER),
        ApiRow(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            _late("assignments.alter_partition_reassignments"),
            ALTER_CLUSTER,
        ),
        ApiRow(
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            _late("assignments.list_partition_reassignments"),
            DESCRIBE_CLUSTER,
        ),
        ApiRow(ApiKey.DESCRIBE_QUORUM, _late("quorum.describe_quorum"), DESCRIBE_CLUSTER),
        ApiRow(ApiKey.UPDATE_FEATURES, _late("features.update_features"), ALTER_CLUSTER),
        ApiRow(ApiKey.DESCRIBE_PRODUCERS, _late("producer_states.describe_producers"), READ_TOPIC),
        ApiRow(ApiKey.UNREGISTER_BROKER, _late("quorum.unregister_broker"), ALTER_CLUSTER),
        ApiRow(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            _late("topic_partitions.describe_topic_partitions"),
            DESCRIBE_TOPIC,
        ),
        ApiRow(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            _late("client_quotas.describe_client_quotas"),
            DESCRIBE_CLUSTER_CONFIGS,
        ),
        ApiRow(
            ApiKey.ALTER_CLIENT_QUOTAS,
            _late("client_quotas.alter_client_quotas"),
            ALTER_CLUSTER_CONFIGS,
        ),
        ApiRow(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            _late("scram.describe_user_scram_credentials"),
            DESCRIBE_CLUSTER,
        ),
        ApiRow(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            _late("consumer_groups.consumer_group_heartbeat"),
            READ_GROUP,
        ),
        ApiRow(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            _late("consumer_groups.consumer_group_describe"),
            DESCRIBE_GROUP,
        ),
        ApiRow(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            _late("transactions.add_partitions_to_txn"),
            WRITE_TRANSACTIONALLY,
        ),
        ApiRow(
            ApiKey.ADD_OFFSETS_TO_TXN,
            _late("transactions.add_offsets_to_txn"),
            WRITE_TRANSACTIONALLY,
        ),
        ApiRow(ApiKey.END_TXN, _late("transactions.end_txn"), WRITE_TRANSACTIONALLY),
        ApiRow(
            ApiKey.WRITE_TXN_MARKERS, _late("transaction_markers.write_txn_markers"), ALTER_CLUSTER
        ),
        ApiRow(
            ApiKey.DESCRIBE_TRANSACTIONS,
            _late("transaction_views.describe_transactions"),
            DESCRIBE_TRANSACTION,
        ),
        ApiRow(
            ApiKey.LIST_TRANSACTIONS,
            _late("transaction_views.list_transactions"),
            DESCRIBE_TRANSACTION,
        ),
    ]
    ranges = [
        (
            int(row.key),
            versions[0] if row.advertised_from is None else row.advertised_from,
            versions[-1],
        )
        for row in rows
        for versions in (APIS[row.key].versions,)
    ]
    own = APIS[ApiKey.API_VERSIONS].versions
    ranges.append((int(ApiKey.API_VERSIONS), own[0], own[-1]))
    return (*rows, ApiRow(ApiKey.API_VERSIONS, AdvertisedVersions(ranges), None))
