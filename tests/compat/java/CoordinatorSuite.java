import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * kafka-clients with both coordinators: its admin client about groups and transactions, static
 * members, zombies, and a group whose members change protocol. Prints a line per check.
 */
public final class CoordinatorSuite {
    private final String bootstrap;
    private final String run = Long.toHexString(System.nanoTime());
    private final Admin admin;

    private CoordinatorSuite(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
    }

    public static void main(String[] arguments) {
        CoordinatorSuite suite = new CoordinatorSuite(arguments[0]);
        check("listGroups by type, state and protocol", suite::listsGroups);
        for (String protocol : List.of("classic", "consumer")) {
            check("describeConsumerGroups: " + protocol, () -> suite.describesGroup(protocol));
            check("offsets of several groups, deleted and refused: " + protocol, () -> suite.deletesOffsets(protocol));
            check("a static member comes back to its partitions: " + protocol, () -> suite.keepsStaticMember(protocol));
            check("removeMembersFromConsumerGroup: " + protocol, () -> suite.removesMembers(protocol));
            check("deleteConsumerGroups: " + protocol, () -> suite.deletesGroup(protocol));
        }
        check("describeClassicGroups of a group that is none", suite::describesClassic);
        check("subscription by regular expression on the broker", suite::subscribesByPattern);
        check("a bad regular expression is refused", suite::refusesPattern);
        check("a live group goes from classic to consumer and back", suite::changesProtocol);
        check("listTransactions, describeTransactions, describeProducers", suite::describesTransactions);
        check("a second producer fences the first", suite::fencesZombie);
        check("fenceProducers", suite::fencesByAdmin);
        check("forceTerminateTransaction", suite::terminates);
        check("abortTransaction", suite::aborts);
        check("offsets of a member that was left out are refused", suite::refusesStaleOffsets);
        check("a transaction that takes too long is aborted", suite::timesOut);
        suite.admin.close(Duration.ofSeconds(2));
        System.exit(0);
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void check(String what, Body body) {
        try {
            body.run();
            System.out.println("pass\t" + what);
        } catch (Exception | AssertionError error) {
            System.out.println("fail\t" + what + "\t" + error.toString().replaceAll("\\s+", " "));
        }
    }

    private static void require(boolean holds, String why) {
        if (!holds) {
            throw new AssertionError(why);
        }
    }

    private static void requireEqual(Object wanted, Object got, String what) {
        require(wanted.equals(got), what + ": wanted " + wanted + ", got " + got);
    }

    private static void requireSoon(String why, Callable<Boolean> holds) throws Exception {
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!holds.call()) {
            require(System.nanoTime() < deadline, why);
            Thread.sleep(20);
        }
    }

    private static void requireFails(Class<? extends Throwable> wanted, Future<?> future) throws Exception {
        try {
            future.get();
        } catch (ExecutionException error) {
            require(wanted.isInstance(error.getCause()), "wanted " + wanted + ", got " + error.getCause());
            return;
        }
        throw new AssertionError("wanted " + wanted + ", got no error");
    }

    private static void requireThrows(Class<? extends Throwable> wanted, Body body) throws Exception {
        try {
            body.run();
        } catch (KafkaException error) {
            boolean fits = wanted.isInstance(error) || wanted.isInstance(error.getCause());
            require(fits, "wanted " + wanted + ", got " + error + " of " + error.getCause());
            return;
        }
        throw new AssertionError("wanted " + wanted + ", got no error");
    }

    private void listsGroups() throws Exception {
        String topic = topic("listed", 1);
        try (var classic = joined("listed-classic", topic, "classic", Map.of());
             var consumer = joined("listed-consumer", topic, "consumer", Map.of())) {
            requireSoon("not both stable", () -> names(ListGroupsOptions.forConsumerGroups()
                .inGroupStates(Set.of(GroupState.STABLE))).size() == 2);
            requireEqual(Set.of(name("listed-classic")),
                names(ListGroupsOptions.forConsumerGroups().withTypes(Set.of(GroupType.CLASSIC))), "classic ones");
            requireEqual(Set.of(name("listed-consumer")),
                names(ListGroupsOptions.forConsumerGroups().withTypes(Set.of(GroupType.CONSUMER))), "consumer ones");
            requireEqual(Set.of(),
                names(ListGroupsOptions.forConsumerGroups().inGroupStates(Set.of(GroupState.EMPTY))), "empty ones");
            requireEqual(Set.of(), names(ListGroupsOptions.forShareGroups()), "share groups");
            requireEqual(2, names(new ListGroupsOptions().withProtocolTypes(Set.of("consumer"))).size(), "by protocol");
        }
    }

    /** Of this run alone: other suites leave groups behind. */
    private Set<String> names(ListGroupsOptions options) throws Exception {
        Collection<GroupListing> found = admin.listGroups(options).all().get();
        return found.stream().map(GroupListing::groupId).filter(id -> id.contains("listed-") && id.endsWith(run))
            .collect(Collectors.toCollection(TreeSet::new));
    }

    private void describesGroup(String protocol) throws Exception {
        String topic = topic("described-" + protocol, 3);
        String group = name("described-" + protocol);
        try (var member = joined("described-" + protocol, topic, protocol, Map.of("client.id", "the-member"))) {
            ConsumerGroupDescription found = describe(group);
            requireEqual(GroupState.STABLE, found.groupState(), "state");
            requireEqual(protocol, found.type().toString().toLowerCase(), "type");
            requireEqual(protocol.equals("classic") ? "range" : "uniform", found.partitionAssignor(), "assignor");
            requireEqual(1, found.members().size(), "members");
            var only = found.members().iterator().next();
            requireEqual("the-member", only.clientId(), "client id");
            requireEqual("/127.0.0.1", only.host(), "host");
            requireEqual(member.assignment(), only.assignment().topicPartitions(), "assignment");
            require(only.groupInstanceId().isEmpty(), "no static member");
            if (protocol.equals("consumer")) {
                requireEqual(found.groupEpoch(), found.targetAssignmentEpoch(), "epochs");
                requireEqual(found.groupEpoch(), only.memberEpoch(), "the member's epoch");
            }
        }
        requireSoon("still not empty", () -> describe(group).groupState() == GroupState.EMPTY);
        requireFails(GroupIdNotFoundException.class, admin.describeConsumerGroups(List.of(name("absent"))).all());
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    private void deletesOffsets(String protocol) throws Exception {
        String topic = topic("offsets-" + protocol, 2);
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        String group = name("offsets-" + protocol);
        String other = name("offsets-other-" + protocol);
        admin.alterConsumerGroupOffsets(other, Map.of(one, new OffsetAndMetadata(9, "by admin"))).all().get();
        try (var member = joined("offsets-" + protocol, topic, protocol, Map.of())) {
            member.commitSync(Map.of(
                zero, new OffsetAndMetadata(3, Optional.of(0), "mine"), one, new OffsetAndMetadata(4)));
            var asked = new ListConsumerGroupOffsetsSpec();
            var found = admin.listConsumerGroupOffsets(Map.of(group, asked, other, asked)).all().get();
            requireEqual(Map.of(zero, new OffsetAndMetadata(3, Optional.of(0), "mine"),
                one, new OffsetAndMetadata(4)), found.get(group), "of one group");
            requireEqual(Map.of(one, new OffsetAndMetadata(9, "by admin")), found.get(other), "of the other");
            requireFails(GroupSubscribedToTopicException.class,
                admin.deleteConsumerGroupOffsets(group, Set.of(zero)).partitionResult(zero));
            requireFails(UnknownMemberIdException.class,
                admin.alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(1))).all());
        }
        requireSoon("not empty", () -> describe(group).members().isEmpty());
        admin.deleteConsumerGroupOffsets(group, Set.of(zero)).all().get();
        requireEqual(Map.of(one, new OffsetAndMetadata(4)),
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(), "what is left");
    }

    private void keepsStaticMember(String protocol) throws Exception {
        String topic = topic("static-" + protocol, 2);
        String group = "static-" + protocol;
        Map<String, String> mine = Map.of("group.instance.id", "cell-one");
        Set<TopicPartition> owned;
        try (var other = joined(group, topic, protocol, Map.of("group.instance.id", "cell-two"))) {
            try (var member = joining(group, topic, protocol, mine)) {
                requireSoon("not shared", () -> {
                    other.poll(Duration.ofMillis(50));
                    member.poll(Duration.ofMillis(50));
                    return member.assignment().size() == 1 && other.assignment().size() == 1;
                });
                owned = Set.copyOf(member.assignment());
            }
            other.poll(Duration.ofMillis(300));
            requireEqual(2, describe(name(group)).members().size(), "members while it is away");
            try (var again = joining(group, topic, protocol, mine)) {
                requireSoon("not back", () -> {
                    other.poll(Duration.ofMillis(50));
                    again.poll(Duration.ofMillis(50));
                    return owned.equals(again.assignment());
                });
                Set<String> instances = describe(name(group)).members().stream()
                    .map(found -> found.groupInstanceId().orElse("none")).collect(Collectors.toSet());
                requireEqual(Set.of("cell-one", "cell-two"), instances, "instances");
            }
        }
    }

    private void removesMembers(String protocol) throws Exception {
        String topic = topic("removed-" + protocol, 1);
        String group = "removed-" + protocol;
        try (var member = joined(group, topic, protocol, Map.of("group.instance.id", "gone"))) {
            var gone = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("gone")));
            admin.removeMembersFromConsumerGroup(name(group), gone).all().get();
            requireEqual(0, describe(name(group)).members().size(), "members");
            var absent = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("never-there")));
            requireFails(UnknownMemberIdException.class,
                admin.removeMembersFromConsumerGroup(name(group), absent).all());
        }
    }

    private void deletesGroup(String protocol) throws Exception {
        String topic = topic("deleted-" + protocol, 1);
        String group = name("deleted-" + protocol);
        try (var member = joined("deleted-" + protocol, topic, protocol, Map.of())) {
            member.commitSync(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(0)));
            requireFails(GroupNotEmptyException.class, admin.deleteConsumerGroups(List.of(group)).all());
        }
        requireSoon("not empty", () -> describe(group).members().isEmpty());
        admin.deleteConsumerGroups(List.of(group)).all().get();
        requireFails(GroupIdNotFoundException.class, admin.deleteConsumerGroups(List.of(group)).all());
        requireEqual(Map.of(), admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(), "offsets");
    }

    private void describesClassic() throws Exception {
        String topic = topic("kind", 1);
        try (var member = joined("kind", topic, "consumer", Map.of())) {
            requireFails(GroupIdNotFoundException.class, admin.describeClassicGroups(List.of(name("kind"))).all());
        }
        try (var member = joined("kind-classic", topic, "classic", Map.of())) {
            var found = admin.describeClassicGroups(List.of(name("kind-classic"))).all().get().get(name("kind-classic"));
            requireEqual("range", found.protocolData(), "protocol");
            requireEqual(1, found.members().size(), "members");
        }
    }

    private void subscribesByPattern() throws Exception {
        String first = topic("pattern-a", 1);
        Properties mine = consumerSettings("pattern", "consumer");
        mine.put("metadata.max.age.ms", "500");
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(mine, bytes, bytes)) {
            var pattern = new SubscriptionPattern("pattern-[a-c]-" + run);
            consumer.subscribe(pattern);
            requireSoon("the first topic is not assigned", () -> {
                consumer.poll(Duration.ofMillis(50));
                return consumer.assignment().equals(Set.of(new TopicPartition(first, 0)));
            });
            topic("pattern-d", 1);
            String second = topic("pattern-b", 1);
            requireSoon("a new topic is not assigned", () -> {
                consumer.poll(Duration.ofMillis(50));
                return consumer.assignment().equals(
                    Set.of(new TopicPartition(first, 0), new TopicPartition(second, 0)));
            });
        }
    }

    private void refusesPattern() throws Exception {
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(consumerSettings("bad-pattern", "consumer"), bytes, bytes)) {
            consumer.subscribe(new SubscriptionPattern("(unclosed"));
            requireThrows(InvalidRegularExpression.class, () -> {
                for (int turn = 0; turn < 50; turn++) {
                    consumer.poll(Duration.ofMillis(100));
                }
            });
        }
    }

    private void changesProtocol() throws Exception {
        String topic = topic("moves", 4);
        String group = name("moves");
        var assignor = Map.of(
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        try (var classic = joined("moves", topic, "classic", assignor)) {
            classic.commitSync(Map.of(new TopicPartition(topic, 1), new OffsetAndMetadata(0, "kept")));
            try (var consumer = joining("moves", topic, "consumer", Map.of())) {
                requireSoon("not shared", () -> {
                    classic.poll(Duration.ofMillis(50));
                    consumer.poll(Duration.ofMillis(50));
                    return classic.assignment().size() == 2 && consumer.assignment().size() == 2;
                });
                requireEqual(GroupType.CONSUMER, describe(group).type(), "type while both are there");
                Set<TopicPartition> all = new HashSet<>(classic.assignment());
                all.addAll(consumer.assignment());
                requireEqual(4, all.size(), "partitions owned");
            }
            requireSoon("not all of them again", () -> {
                classic.poll(Duration.ofMillis(50));
                return classic.assignment().size() == 4;
            });
            requireSoon("not classic again", () -> {
                classic.poll(Duration.ofMillis(50));
                return describe(group).type() == GroupType.CLASSIC;
            });
        }
        requireEqual(Map.of(new TopicPartition(topic, 1), new OffsetAndMetadata(0, "kept")),
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(), "offsets");
    }

    private void describesTransactions() throws Exception {
        String topic = topic("transactions", 2);
        TopicPartition place = new TopicPartition(topic, 1);
        String id = name("described");
        try (var producer = producer("described", Map.of("transaction.timeout.ms", "45000"))) {
            producer.initTransactions();
            requireEqual(TransactionState.EMPTY, transaction(id).state(), "state before");
            producer.beginTransaction();
            producer.send(record(place)).get();
            TransactionDescription found = transaction(id);
            requireEqual(TransactionState.ONGOING, found.state(), "state");
            requireEqual(Set.of(place), found.topicPartitions(), "partitions");
            requireEqual(45_000L, found.transactionTimeoutMs(), "timeout");
            require(found.transactionStartTimeMs().isPresent(), "no start time");
            requireEqual(Set.of(id), listed(id, new ListTransactionsOptions()
                .filterStates(Set.of(TransactionState.ONGOING))), "ongoing ones");
            requireEqual(Set.of(id), listed(id, new ListTransactionsOptions()
                .filterProducerIds(Set.of(found.producerId()))), "by producer");
            requireEqual(Set.of(), listed(id, new ListTransactionsOptions().filterOnDuration(3_600_000)), "by age");
            var active = admin.describeProducers(List.of(place)).all().get().get(place).activeProducers();
            requireEqual(1, active.size(), "producers");
            requireEqual(found.producerId(), active.get(0).producerId(), "producer id");
            requireEqual(0L, active.get(0).currentTransactionStartOffset().getAsLong(), "start offset");
            producer.commitTransaction();
            requireSoon("not complete", () -> transaction(id).state() == TransactionState.COMPLETE_COMMIT);
            var ended = admin.describeProducers(List.of(place)).all().get().get(place).activeProducers();
            require(ended.get(0).currentTransactionStartOffset().isEmpty(), "still in a transaction");
        }
        requireFails(TransactionalIdNotFoundException.class,
            admin.describeTransactions(List.of(name("absent"))).all());
    }

    private TransactionDescription transaction(String id) throws Exception {
        return admin.describeTransactions(List.of(id)).all().get().get(id);
    }

    private Set<String> listed(String id, ListTransactionsOptions options) throws Exception {
        return admin.listTransactions(options).all().get().stream().map(found -> found.transactionalId())
            .filter(id::equals).collect(Collectors.toSet());
    }

    private void fencesZombie() throws Exception {
        TopicPartition place = new TopicPartition(topic("zombie", 1), 0);
        try (var first = producer("zombie", Map.of()); var second = producer("zombie", Map.of())) {
            first.initTransactions();
            first.beginTransaction();
            first.send(record(place)).get();
            second.initTransactions();
            requireThrows(ProducerFencedException.class, first::commitTransaction);
            second.beginTransaction();
            second.send(record(place)).get();
            second.commitTransaction();
        }
        requireEqual(List.of(2L), committedOffsets(place), "offsets read");
    }

    private void fencesByAdmin() throws Exception {
        TopicPartition place = new TopicPartition(topic("fenced", 1), 0);
        try (var producer = producer("fenced", Map.of())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(record(place)).get();
            var fenced = admin.fenceProducers(List.of(name("fenced")));
            fenced.all().get();
            require(fenced.epochId(name("fenced")).get() > 0, "no new epoch");
            requireThrows(ProducerFencedException.class, producer::commitTransaction);
        }
        requireEqual(List.of(), committedOffsets(place), "offsets read");
    }

    private void terminates() throws Exception {
        TopicPartition place = new TopicPartition(topic("terminated", 1), 0);
        try (var producer = producer("terminated", Map.of())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(record(place)).get();
            admin.forceTerminateTransaction(name("terminated")).result().get();
            requireSoon("not aborted", () -> // and begun anew: it is terminated by a new epoch
                transaction(name("terminated")).state() == TransactionState.EMPTY);
            requireThrows(ProducerFencedException.class, producer::commitTransaction);
        }
        requireEqual(List.of(), committedOffsets(place), "offsets read");
    }

    private void aborts() throws Exception {
        TopicPartition place = new TopicPartition(topic("aborted", 1), 0);
        try (var producer = producer("aborted", Map.of())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(record(place)).get();
            var active = admin.describeProducers(List.of(place)).all().get().get(place).activeProducers().get(0);
            admin.abortTransaction(new AbortTransactionSpec(
                place, active.producerId(), (short) active.producerEpoch(), active.coordinatorEpoch().orElse(0)))
                .all().get();
            var after = admin.describeProducers(List.of(place)).all().get().get(place).activeProducers().get(0);
            require(after.currentTransactionStartOffset().isEmpty(), "still in a transaction");
        }
        requireEqual(List.of(), committedOffsets(place), "offsets read");
    }

    private void refusesStaleOffsets() throws Exception {
        String topic = topic("stale", 1);
        ConsumerGroupMetadata left;
        try (var member = joined("stale", topic, "classic", Map.of())) {
            left = member.groupMetadata();
        }
        try (var producer = producer("stale", Map.of())) {
            producer.initTransactions();
            producer.beginTransaction();
            var offsets = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1));
            requireThrows(CommitFailedException.class,
                () -> producer.sendOffsetsToTransaction(offsets, left));
            producer.abortTransaction();
        }
        requireEqual(Map.of(),
            admin.listConsumerGroupOffsets(name("stale")).partitionsToOffsetAndMetadata().get(), "offsets");
    }

    private void timesOut() throws Exception {
        TopicPartition place = new TopicPartition(topic("slow", 1), 0);
        try (var producer = producer("slow", Map.of("transaction.timeout.ms", "1000"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(record(place)).get();
            requireSoon("not aborted", () -> transaction(name("slow")).state() == TransactionState.COMPLETE_ABORT);
            requireThrows(KafkaException.class, producer::commitTransaction);
        }
        requireEqual(List.of(), committedOffsets(place), "offsets read");
    }

    private List<Long> committedOffsets(TopicPartition place) throws Exception {
        Properties mine = settings();
        mine.put("isolation.level", "read_committed");
        mine.put("auto.offset.reset", "earliest");
        var bytes = new ByteArrayDeserializer();
        List<Long> read = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(mine, bytes, bytes)) {
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            long deadline = System.nanoTime() + Duration.ofSeconds(10).toNanos();
            while (consumer.position(place) < end && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> read.add(record.offset()));
            }
        }
        return read;
    }

    private KafkaConsumer<byte[], byte[]> joining(
            String group, String topic, String protocol, Map<String, String> more) {
        Properties mine = consumerSettings(group, protocol);
        mine.putAll(more);
        var bytes = new ByteArrayDeserializer();
        var consumer = new KafkaConsumer<byte[], byte[]>(mine, bytes, bytes);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private KafkaConsumer<byte[], byte[]> joined(
            String group, String topic, String protocol, Map<String, String> more) throws Exception {
        var consumer = joining(group, topic, protocol, more);
        requireSoon("nothing assigned", () -> {
            consumer.poll(Duration.ofMillis(50));
            return !consumer.assignment().isEmpty();
        });
        return consumer;
    }

    private Properties consumerSettings(String group, String protocol) {
        Properties mine = settings();
        mine.put("group.id", name(group));
        mine.put("group.protocol", protocol);
        mine.put("enable.auto.commit", "false");
        mine.put("auto.offset.reset", "earliest");
        return mine;
    }

    private KafkaProducer<byte[], byte[]> producer(String id, Map<String, String> more) {
        Properties mine = settings();
        mine.remove("default.api.timeout.ms");
        mine.put("delivery.timeout.ms", "15000");
        mine.put("max.block.ms", "15000");
        mine.put("transactional.id", name(id));
        mine.putAll(more);
        var bytes = new ByteArraySerializer();
        return new KafkaProducer<>(mine, bytes, bytes);
    }

    private static ProducerRecord<byte[], byte[]> record(TopicPartition place) {
        byte[] value = "in a transaction".getBytes(StandardCharsets.UTF_8);
        return new ProducerRecord<>(place.topic(), place.partition(), null, value);
    }

    private String topic(String purpose, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name(purpose), partitions, (short) 1))).all().get();
        requireSoon("not listed", () -> admin.listTopics().names().get().contains(name(purpose)));
        return name(purpose);
    }

    private String name(String purpose) {
        return purpose + "-" + run;
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "10000");
        settings.put("default.api.timeout.ms", "15000");
        return settings;
    }
}
