"""Every API of Kafka 4.3.1 by its key.

Written by tools/declare.py from tools/kafka-4.3; never edited by hand.
"""

from enum import IntEnum
from typing import Final


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


# Key: file, name, first and last version that a broker offers, first flexible version.
ROWS: Final[dict[int, tuple[str, str, int, int, int | None]]] = {
    0: ("produce", "Produce", 3, 13, 9),
    1: ("fetch", "Fetch", 4, 18, 12),
    2: ("list_offsets", "ListOffsets", 1, 11, 6),
    3: ("metadata", "Metadata", 0, 13, 9),
    8: ("offset_commit", "OffsetCommit", 2, 10, 8),
    9: ("offset_fetch", "OffsetFetch", 1, 10, 6),
    10: ("find_coordinator", "FindCoordinator", 0, 6, 3),
    11: ("join_group", "JoinGroup", 0, 9, 6),
    12: ("heartbeat", "Heartbeat", 0, 4, 4),
    13: ("leave_group", "LeaveGroup", 0, 5, 4),
    14: ("sync_group", "SyncGroup", 0, 5, 4),
    15: ("describe_groups", "DescribeGroups", 0, 6, 5),
    16: ("list_groups", "ListGroups", 0, 5, 3),
    17: ("sasl_handshake", "SaslHandshake", 0, 1, None),
    18: ("api_versions", "ApiVersions", 0, 4, 3),
    19: ("create_topics", "CreateTopics", 2, 7, 5),
    20: ("delete_topics", "DeleteTopics", 1, 6, 4),
    21: ("delete_records", "DeleteRecords", 0, 2, 2),
    22: ("init_producer_id", "InitProducerId", 0, 5, 2),
    23: ("offset_for_leader_epoch", "OffsetForLeaderEpoch", 2, 4, 4),
    24: ("add_partitions_to_txn", "AddPartitionsToTxn", 0, 5, 3),
    25: ("add_offsets_to_txn", "AddOffsetsToTxn", 0, 4, 3),
    26: ("end_txn", "EndTxn", 0, 5, 3),
    27: ("write_txn_markers", "WriteTxnMarkers", 1, 2, 1),
    28: ("txn_offset_commit", "TxnOffsetCommit", 0, 5, 3),
    29: ("describe_acls", "DescribeAcls", 1, 3, 2),
    30: ("create_acls", "CreateAcls", 1, 3, 2),
    31: ("delete_acls", "DeleteAcls", 1, 3, 2),
    32: ("describe_configs", "DescribeConfigs", 1, 4, 4),
    33: ("alter_configs", "AlterConfigs", 0, 2, 2),
    34: ("alter_replica_log_dirs", "AlterReplicaLogDirs", 1, 2, 2),
    35: ("describe_log_dirs", "DescribeLogDirs", 1, 5, 2),
    36: ("sasl_authenticate", "SaslAuthenticate", 0, 2, 2),
    37: ("create_partitions", "CreatePartitions", 0, 3, 2),
    38: ("create_delegation_token", "CreateDelegationToken", 1, 3, 2),
    39: ("renew_delegation_token", "RenewDelegationToken", 1, 2, 2),
    40: ("expire_delegation_token", "ExpireDelegationToken", 1, 2, 2),
    41: ("describe_delegation_token", "DescribeDelegationToken", 1, 3, 2),
    42: ("delete_groups", "DeleteGroups", 0, 2, 2),
    43: ("elect_leaders", "ElectLeaders", 0, 2, 2),
    44: ("incremental_alter_configs", "IncrementalAlterConfigs", 0, 1, 1),
    45: ("alter_partition_reassignments", "AlterPartitionReassignments", 0, 1, 0),
    46: ("list_partition_reassignments", "ListPartitionReassignments", 0, 0, 0),
    47: ("offset_delete", "OffsetDelete", 0, 0, None),
    48: ("describe_client_quotas", "DescribeClientQuotas", 0, 1, 1),
    49: ("alter_client_quotas", "AlterClientQuotas", 0, 1, 1),
    50: ("describe_user_scram_credentials", "DescribeUserScramCredentials", 0, 0, 0),
    51: ("alter_user_scram_credentials", "AlterUserScramCredentials", 0, 0, 0),
    52: ("vote", "Vote", 0, 2, 0),
    53: ("begin_quorum_epoch", "BeginQuorumEpoch", 0, 1, 1),
    54: ("end_quorum_epoch", "EndQuorumEpoch", 0, 1, 1),
    55: ("describe_quorum", "DescribeQuorum", 0, 2, 0),
    56: ("alter_partition", "AlterPartition", 2, 3, 0),
    57: ("update_features", "UpdateFeatures", 0, 2, 0),
    58: ("envelope", "Envelope", 0, 0, 0),
    59: ("fetch_snapshot", "FetchSnapshot", 0, 1, 0),
    60: ("describe_cluster", "DescribeCluster", 0, 2, 0),
    61: ("describe_producers", "DescribeProducers", 0, 0, 0),
    62: ("broker_registration", "BrokerRegistration", 0, 4, 0),
    63: ("broker_heartbeat", "BrokerHeartbeat", 0, 2, 0),
    64: ("unregister_broker", "UnregisterBroker", 0, 0, 0),
    65: ("describe_transactions", "DescribeTransactions", 0, 0, 0),
    66: ("list_transactions", "ListTransactions", 0, 2, 0),
    67: ("allocate_producer_ids", "AllocateProducerIds", 0, 0, 0),
    68: ("consumer_group_heartbeat", "ConsumerGroupHeartbeat", 0, 1, 0),
    69: ("consumer_group_describe", "ConsumerGroupDescribe", 0, 1, 0),
    70: ("controller_registration", "ControllerRegistration", 0, 0, 0),
    71: ("get_telemetry_subscriptions", "GetTelemetrySubscriptions", 0, 0, 0),
    72: ("push_telemetry", "PushTelemetry", 0, 0, 0),
    73: ("assign_replicas_to_dirs", "AssignReplicasToDirs", 0, 0, 0),
    74: ("list_config_resources", "ListConfigResources", 0, 1, 0),
    75: ("describe_topic_partitions", "DescribeTopicPartitions", 0, 0, 0),
    76: ("share_group_heartbeat", "ShareGroupHeartbeat", 1, 1, 0),
    77: ("share_group_describe", "ShareGroupDescribe", 1, 1, 0),
    78: ("share_fetch", "ShareFetch", 1, 2, 0),
    79: ("share_acknowledge", "ShareAcknowledge", 1, 2, 0),
    80: ("add_raft_voter", "AddRaftVoter", 0, 1, 0),
    81: ("remove_raft_voter", "RemoveRaftVoter", 0, 0, 0),
    82: ("update_raft_voter", "UpdateRaftVoter", 0, 0, 0),
    83: ("initialize_share_group_state", "InitializeShareGroupState", 0, 0, 0),
    84: ("read_share_group_state", "ReadShareGroupState", 0, 0, 0),
    85: ("write_share_group_state", "WriteShareGroupState", 0, 1, 0),
    86: ("delete_share_group_state", "DeleteShareGroupState", 0, 0, 0),
    87: ("read_share_group_state_summary", "ReadShareGroupStateSummary", 0, 1, 0),
    88: ("streams_group_heartbeat", "StreamsGroupHeartbeat", 0, 0, 0),
    89: ("streams_group_describe", "StreamsGroupDescribe", 0, 0, 0),
    90: ("describe_share_group_offsets", "DescribeShareGroupOffsets", 0, 1, 0),
    91: ("alter_share_group_offsets", "AlterShareGroupOffsets", 0, 0, 0),
    92: ("delete_share_group_offsets", "DeleteShareGroupOffsets", 0, 0, 0),
}
