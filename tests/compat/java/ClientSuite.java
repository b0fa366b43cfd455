import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * kafka-clients against a broker: create, produce, read back by assignment, list and delete.
 *
 * <p>Prints one line per check, {@code pass<TAB>what} or {@code fail<TAB>what<TAB>why}. Every client
 * keeps Kafka's defaults (idempotence, acks=all) except for its timeouts, so that a broker that
 * never answers fails a check instead of stalling the suite. No consumer group is used.
 */
public class ClientSuite {
    private static final int COUNT = 2_000;
    // An hour ago: records older than the default retention could be deleted before they are read.
    private static final long FIRST_TIMESTAMP_MS = System.currentTimeMillis() - 3_600_000L;
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final String RUN = Long.toString(System.currentTimeMillis(), 36);

    private final String bootstrap;
    private final Admin admin;

    private ClientSuite(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
    }

    public static void main(String[] arguments) {
        ClientSuite suite = new ClientSuite(arguments[0]);
        check("describeCluster", suite::describesCluster);
        check("createTopics, describeTopics, listTopics", suite::createsTopics);
        check("createTopics refused: exists, bad name", suite::refusesTopics);
        for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            check("produce and read back: " + compression, () -> suite.readsBackEqual(compression));
        }
        check("null key, null and empty value, odd headers", suite::keepsNulls);
        check("acks=0 and acks=1", suite::acceptsOtherAcks);
        check("record of 900 kB", suite::carriesLargeRecord);
        check("max.message.bytes of the topic", suite::refusesTooLarge);
        check("compacted topic refuses a record without key", suite::refusesKeyless);
        check("LogAppendTime", suite::stampsAppendTime);
        check("topic made by its first use", suite::createsByUse);
        check("read_committed, seek into the middle", suite::seeks);
        check("listOffsets: earliest, latest, max timestamp, by time", suite::listsOffsets);
        check("deleteRecords", suite::deletesRecords);
        check("deleteTopics by name and by id", suite::deletesTopics);
        suite.admin.close(Duration.ofSeconds(2));
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void check(String what, Body body) {
        try {
            body.run();
            System.out.println("pass\t" + what);
        } catch (Exception | AssertionError error) {
            String why = error.toString().replaceAll("\\s+", " ");
            System.out.println("fail\t" + what + "\t" + why);
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

    /** A controller answers before every broker knows, so what metadata shows may lag behind. */
    private static void requireSoon(String why, Callable<Boolean> holds) throws Exception {
        long deadline = System.nanoTime() + Duration.ofSeconds(5).toNanos();
        while (!holds.call()) {
            require(System.nanoTime() < deadline, why);
            Thread.sleep(20);
        }
    }

    private void describesCluster() throws Exception {
        var cluster = admin.describeCluster();
        requireEqual(1, cluster.nodes().get().size(), "nodes");
        require(cluster.controller().get() != null, "no controller");
        require(!cluster.clusterId().get().isEmpty(), "no cluster id");
    }

    private void createsTopics() throws Exception {
        String name = name("created");
        var created = admin.createTopics(List.of(new NewTopic(name, 3, (short) 1)));
        Uuid id = created.topicId(name).get();
        require(!id.equals(Uuid.ZERO_UUID), "zero topic id");
        requireEqual(3, created.numPartitions(name).get(), "partitions");
        requireSoon("not listed", () -> admin.listTopics().names().get().contains(name));
        TopicDescription topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
        requireEqual(id, topic.topicId(), "topic id");
        requireEqual(3, topic.partitions().size(), "partitions described");
        topic.partitions().forEach(partition -> require(partition.leader() != null, "no leader"));
    }

    private void refusesTopics() throws Exception {
        String name = create("twice", Map.of());
        NewTopic again = new NewTopic(name, 1, (short) 1);
        requireFails(TopicExistsException.class, admin.createTopics(List.of(again)).all());
        NewTopic bad = new NewTopic("no spaces allowed", 1, (short) 1);
        requireFails(InvalidTopicException.class, admin.createTopics(List.of(bad)).all());
    }

    /** The heart: COUNT records over two partitions, each found again at the place it was acknowledged for. */
    private void readsBackEqual(String compression) throws Exception {
        String topic = create("equal-" + compression, Map.of());
        Map<String, ProducerRecord<byte[], byte[]>> sent = new HashMap<>();
        try (var producer = producer(Map.of("compression.type", compression))) {
            Map<ProducerRecord<byte[], byte[]>, Future<RecordMetadata>> waiting = new HashMap<>();
            for (int index = 0; index < COUNT; index++) {
                ProducerRecord<byte[], byte[]> record = record(topic, index);
                waiting.put(record, producer.send(record));
            }
            for (var entry : waiting.entrySet()) {
                RecordMetadata place = entry.getValue().get();
                sent.put(place.partition() + "@" + place.offset(), entry.getKey());
            }
        }
        requireEqual(COUNT, sent.size(), "places acknowledged");
        List<ConsumerRecord<byte[], byte[]>> read = readAll(topic, COUNT, Map.of());
        for (ConsumerRecord<byte[], byte[]> record : read) {
            var wanted = sent.remove(record.partition() + "@" + record.offset());
            require(wanted != null, "not sent, or read twice: " + record);
            requireSame(wanted, record);
        }
        requireEqual(0, sent.size(), "records not read");
    }

    private void keepsNulls() throws Exception {
        String topic = create("nulls", Map.of());
        List<Header> headers = List.of(
            new RecordHeader("twice", bytes("first")),
            new RecordHeader("twice", bytes("second")),
            new RecordHeader("null", null),
            new RecordHeader("", new byte[0]),
            new RecordHeader("schlüssel", bytes("wert ✓")));
        List<ProducerRecord<byte[], byte[]>> sent = List.of(
            new ProducerRecord<>(topic, 0, FIRST_TIMESTAMP_MS, null, bytes("no key"), headers),
            new ProducerRecord<>(topic, 0, FIRST_TIMESTAMP_MS + 1, bytes("no value"), null, headers),
            new ProducerRecord<>(topic, 0, FIRST_TIMESTAMP_MS + 2, new byte[0], new byte[0], List.of()),
            new ProducerRecord<>(topic, 0, FIRST_TIMESTAMP_MS - 1, null, null, List.of()));
        try (var producer = producer(Map.of())) {
            for (var record : sent) {
                producer.send(record).get();
            }
        }
        List<ConsumerRecord<byte[], byte[]>> read = readAll(topic, sent.size(), Map.of());
        for (int index = 0; index < sent.size(); index++) {
            requireSame(sent.get(index), read.get(index));
        }
    }

    private void acceptsOtherAcks() throws Exception {
        for (String acks : List.of("0", "1")) {
            String topic = create("acks-" + acks, Map.of());
            var settings = Map.of("acks", acks, "enable.idempotence", "false");
            try (var producer = producer(settings)) {
                for (int index = 0; index < 100; index++) {
                    producer.send(record(topic, index));
                }
            }
            readAll(topic, 100, Map.of());
        }
    }

    private void carriesLargeRecord() throws Exception {
        String topic = create("large", Map.of());
        byte[] value = new byte[900_000];
        Arrays.fill(value, (byte) 7);
        try (var producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, value)).get();
        }
        // A limit below the size of the first batch must not stop the reader.
        var read = readAll(topic, 1, Map.of("max.partition.fetch.bytes", "1000", "fetch.max.bytes", "1000"));
        require(Arrays.equals(value, read.get(0).value()), "value differs");
    }

    private void refusesTooLarge() throws Exception {
        String topic = create("small", Map.of("max.message.bytes", "1000"));
        try (var producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, new byte[500])).get();
            requireFails(
                RecordTooLargeException.class,
                producer.send(new ProducerRecord<>(topic, new byte[5_000])));
        }
    }

    private void refusesKeyless() throws Exception {
        String topic = create("compacted", Map.of("cleanup.policy", "compact"));
        try (var producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, bytes("key"), bytes("value"))).get();
            requireFails(
                InvalidRecordException.class, producer.send(new ProducerRecord<>(topic, bytes("value"))));
        }
    }

    private void stampsAppendTime() throws Exception {
        String topic = create("append-time", Map.of("message.timestamp.type", "LogAppendTime"));
        long before = System.currentTimeMillis();
        long acknowledged;
        try (var producer = producer(Map.of("compression.type", "lz4"))) {
            acknowledged = producer.send(record(topic, 0)).get().timestamp();
        }
        var read = readAll(topic, 1, Map.of()).get(0);
        requireEqual(TimestampType.LOG_APPEND_TIME, read.timestampType(), "timestamp type");
        requireEqual(acknowledged, read.timestamp(), "timestamp");
        require(read.timestamp() >= before - 1_000, "the client's timestamp was kept");
    }

    private void createsByUse() throws Exception {
        String topic = name("by-use");
        try (var producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, bytes("value"))).get();
        }
        readAll(topic, 1, Map.of());
    }

    private void seeks() throws Exception {
        String topic = create("seek", Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        fill(partition, 1_000);
        try (var consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(partition));
            // Most likely inside a batch: the broker sends the whole of it, the client drops its front.
            consumer.seek(partition, 567);
            List<ConsumerRecord<byte[], byte[]>> read = poll(consumer, 1_000 - 567);
            requireEqual(567L, read.get(0).offset(), "first offset");
            requireEqual(999L, read.get(read.size() - 1).offset(), "last offset");
        }
    }

    private void listsOffsets() throws Exception {
        String topic = create("offsets", Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        TopicPartition empty = new TopicPartition(topic, 1);
        fill(partition, 1_000);
        long middle = FIRST_TIMESTAMP_MS + 400;
        requireEqual(0L, offset(partition, OffsetSpec.earliest()).offset(), "earliest");
        requireEqual(1_000L, offset(partition, OffsetSpec.latest()).offset(), "latest");
        ListOffsetsResultInfo newest = offset(partition, OffsetSpec.maxTimestamp());
        requireEqual(999L, newest.offset(), "offset of the max timestamp");
        requireEqual(FIRST_TIMESTAMP_MS + 999, newest.timestamp(), "max timestamp");
        ListOffsetsResultInfo found = offset(partition, OffsetSpec.forTimestamp(middle));
        requireEqual(400L, found.offset(), "offset by time");
        requireEqual(middle, found.timestamp(), "timestamp by time");
        requireEqual(-1L, offset(partition, OffsetSpec.forTimestamp(middle * 2)).offset(), "later than all");
        requireEqual(0L, offset(partition, OffsetSpec.forTimestamp(1)).offset(), "earlier than all");
        requireEqual(-1L, offset(empty, OffsetSpec.maxTimestamp()).offset(), "max timestamp of nothing");
        requireEqual(0L, offset(partition, OffsetSpec.earliestLocal()).offset(), "earliest local");
        try (var consumer = consumer(Map.of())) {
            var both = List.of(partition, empty);
            requireEqual(Map.of(partition, 0L, empty, 0L), consumer.beginningOffsets(both), "beginning");
            requireEqual(Map.of(partition, 1_000L, empty, 0L), consumer.endOffsets(both), "end");
            Map<TopicPartition, OffsetAndTimestamp> times =
                consumer.offsetsForTimes(Map.of(partition, middle, empty, middle));
            requireEqual(400L, times.get(partition).offset(), "offsetsForTimes");
            require(times.get(empty) == null, "offsetsForTimes of nothing");
        }
    }

    private void deletesRecords() throws Exception {
        String topic = create("delete-records", Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        fill(partition, 1_000);
        var deleted = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(300)));
        requireEqual(300L, deleted.lowWatermarks().get(partition).get().lowWatermark(), "low watermark");
        requireEqual(300L, offset(partition, OffsetSpec.earliest()).offset(), "earliest");
        try (var consumer = consumer(Map.of("auto.offset.reset", "none"))) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 300);
            requireEqual(300L, poll(consumer, 700).get(0).offset(), "first offset");
            consumer.seek(partition, 299);
            boolean refused = false;
            try {
                poll(consumer, 1);
            } catch (OffsetOutOfRangeException expected) {
                refused = true;
            }
            require(refused, "a deleted offset was read");
        }
        var all = admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(-1)));
        requireEqual(1_000L, all.lowWatermarks().get(partition).get().lowWatermark(), "all deleted");
    }

    private void deletesTopics() throws Exception {
        String byName = create("by-name", Map.of());
        String byId = name("by-id");
        Uuid id = admin.createTopics(List.of(new NewTopic(byId, 1, (short) 1))).topicId(byId).get();
        admin.deleteTopics(List.of(byName)).all().get();
        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        requireSoon("still listed", () -> {
            Set<String> left = admin.listTopics().names().get();
            return !left.contains(byName) && !left.contains(byId);
        });
        requireFails(UnknownTopicOrPartitionException.class, admin.deleteTopics(List.of(byName)).all());
        // The name may be used again, and the new topic is empty and has an id of its own.
        var created = admin.createTopics(List.of(new NewTopic(byId, 1, (short) 1)));
        require(!created.topicId(byId).get().equals(id), "the topic id was used again");
        requireEqual(0L, offset(new TopicPartition(byId, 0), OffsetSpec.latest()).offset(), "latest");
    }

    private static String name(String purpose) {
        return "java-" + purpose + "-" + RUN;
    }

    private String create(String purpose, Map<String, String> configs) throws Exception {
        NewTopic topic = new NewTopic(name(purpose), 2, (short) 1).configs(configs);
        admin.createTopics(List.of(topic)).all().get();
        return topic.name();
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int index) {
        List<Header> headers = List.of(
            new RecordHeader("index", bytes(Integer.toString(index))), new RecordHeader("null", null));
        byte[] value = bytes(("value " + index + " ").repeat(1 + index % 40));
        return new ProducerRecord<>(
            topic, null, FIRST_TIMESTAMP_MS + index, bytes("key " + index), value, headers);
    }

    private void fill(TopicPartition partition, int count) throws Exception {
        try (var producer = producer(Map.of())) {
            Future<RecordMetadata> last = null;
            for (int index = 0; index < count; index++) {
                byte[] value = bytes("value " + index);
                last = producer.send(new ProducerRecord<>(
                    partition.topic(), partition.partition(), FIRST_TIMESTAMP_MS + index, null, value));
            }
            requireEqual(count - 1L, last.get().offset(), "last offset acknowledged");
        }
    }

    private ListOffsetsResultInfo offset(TopicPartition partition, OffsetSpec what) throws Exception {
        return admin.listOffsets(Map.of(partition, what)).partitionResult(partition).get();
    }

    /** Every record of both partitions from the beginning, in the order of partition and offset. */
    private List<ConsumerRecord<byte[], byte[]>> readAll(String topic, int count, Map<String, String> more) {
        try (var consumer = consumer(more)) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            return poll(consumer, count);
        }
    }

    private static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> read = new ArrayList<>();
        Map<TopicPartition, Long> next = new TreeMap<>((left, right) -> left.partition() - right.partition());
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (read.size() < count && System.nanoTime() < deadline) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                Long wanted = next.put(partition, record.offset() + 1);
                require(wanted == null || wanted == record.offset(), "a gap before " + record.offset());
                read.add(record);
            }
        }
        requireEqual(count, read.size(), "records read");
        read.sort((left, right) -> left.partition() != right.partition()
            ? left.partition() - right.partition() : Long.compare(left.offset(), right.offset()));
        return read;
    }

    private static void requireSame(ProducerRecord<byte[], byte[]> sent, ConsumerRecord<byte[], byte[]> read) {
        String where = " of " + read.topic() + "-" + read.partition() + "@" + read.offset();
        require(Arrays.equals(sent.key(), read.key()), "key" + where);
        require(Arrays.equals(sent.value(), read.value()), "value" + where);
        requireEqual(sent.timestamp(), read.timestamp(), "timestamp" + where);
        requireEqual(TimestampType.CREATE_TIME, read.timestampType(), "timestamp type" + where);
        Header[] wanted = sent.headers().toArray();
        Header[] got = read.headers().toArray();
        requireEqual(wanted.length, got.length, "headers" + where);
        for (int index = 0; index < wanted.length; index++) {
            requireEqual(wanted[index].key(), got[index].key(), "header key" + where);
            require(Arrays.equals(wanted[index].value(), got[index].value()), "header value" + where);
        }
    }

    private static void requireFails(Class<? extends Exception> wanted, Future<?> future) throws Exception {
        try {
            future.get();
        } catch (ExecutionException error) {
            require(wanted.isInstance(error.getCause()), "wanted " + wanted + ", got " + error.getCause());
            return;
        }
        throw new AssertionError("wanted " + wanted + ", got no error");
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "10000");
        settings.put("default.api.timeout.ms", "15000");
        return settings;
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, String> more) {
        Properties settings = settings();
        settings.remove("default.api.timeout.ms");
        settings.put("delivery.timeout.ms", "15000");
        settings.put("max.block.ms", "15000");
        settings.putAll(more);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, String> more) {
        Properties settings = settings();
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
