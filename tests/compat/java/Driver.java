import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * kafka-clients as a driver: a line of JSON in, a call, a line of JSON out; see {@code driver.py}.
 *
 * <p>The same source runs on the newest client and on one of the 3.x line.
 */
public class Driver {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final String bootstrap;
    private final Admin admin;
    private final Groups groups;
    private KafkaConsumer<byte[], byte[]> consumer;

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
        this.groups = new Groups(admin, this::settings);
    }

    public static void main(String[] arguments) throws IOException {
        Driver driver = new Driver(arguments[0]);
        say(JSON.objectNode().put("version", AppInfoParser.getVersion()).set("lacks", JSON.arrayNode()));
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                say(JSON.objectNode().set("ok", driver.answer(MAPPER.readTree(line))));
            } catch (Exception error) {
                say(JSON.objectNode().put("error", error.toString()));
            }
        }
        System.exit(0);
    }

    private static void say(JsonNode answer) {
        System.out.println(answer);
        System.out.flush();
    }

    private JsonNode answer(JsonNode request) throws Exception {
        String topic = request.path("topic").asText();
        TopicPartition partition = new TopicPartition(topic, request.path("partition").asInt());
        switch (request.get("do").asText()) {
            case "create" -> create(topic, request);
            case "describe" -> {
                return describe(topic);
            }
            case "alter" -> alter(topic, request.get("config"));
            case "partitions" -> {
                return JSON.numberNode(partitions(topic));
            }
            case "produce" -> {
                return produce(partition, request);
            }
            case "open" -> open(partition, request.get("start").asText(), request.get("at").asLong());
            case "take" -> {
                return take(request.get("count").asInt(), request.get("timeout_ms").asLong());
            }
            case "close" -> consumer.close();
            case "delete_records" -> {
                var before = RecordsToDelete.beforeOffset(request.get("before").asLong());
                admin.deleteRecords(Map.of(partition, before)).all().get();
            }
            case "add_partitions" -> {
                var total = NewPartitions.increaseTo(request.get("total").asInt());
                admin.createPartitions(Map.of(topic, total)).all().get();
            }
            case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
            default -> {
                return groups.answer(request);
            }
        }
        return JSON.nullNode();
    }

    private void create(String topic, JsonNode request) throws Exception {
        Map<String, String> config = MAPPER.convertValue(request.get("config"), Map.class);
        NewTopic created = new NewTopic(topic, request.get("partitions").asInt(), (short) 1);
        admin.createTopics(List.of(created.configs(config))).all().get();
    }

    private JsonNode describe(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ObjectNode found = JSON.objectNode();
        var described = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        described.entries().forEach(entry -> found.put(entry.name(), entry.value()));
        return found;
    }

    private void alter(String topic, JsonNode config) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        config.fields().forEachRemaining(field -> {
            ConfigEntry entry = new ConfigEntry(field.getKey(), field.getValue().asText());
            changes.add(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
        });
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private int partitions(String topic) throws Exception {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return 0;
            }
            throw error;
        }
    }

    private JsonNode produce(TopicPartition partition, JsonNode request) throws Exception {
        Properties settings = settings();
        settings.remove("default.api.timeout.ms");
        settings.put("delivery.timeout.ms", "15000");
        settings.put("max.block.ms", "15000");
        settings.put("max.request.size", "2000000");
        settings.put("compression.type", request.get("codec").asText());
        var bytes = new ByteArraySerializer();
        ArrayNode offsets = JSON.arrayNode();
        try (var producer = new KafkaProducer<byte[], byte[]>(settings, bytes, bytes)) {
            List<Future<RecordMetadata>> waiting = new ArrayList<>();
            for (JsonNode record : request.get("records")) {
                waiting.add(producer.send(Lines.record(partition, record)));
            }
            for (Future<RecordMetadata> place : waiting) {
                offsets.add(place.get().offset());
            }
        }
        return offsets;
    }

    private void open(TopicPartition partition, String start, long at) {
        Properties settings = settings();
        settings.put("auto.offset.reset", "none");
        var bytes = new ByteArrayDeserializer();
        consumer = new KafkaConsumer<>(settings, bytes, bytes);
        consumer.assign(List.of(partition));
        switch (start) {
            case "earliest" -> consumer.seekToBeginning(List.of(partition));
            case "latest" -> consumer.seekToEnd(List.of(partition));
            case "offset" -> consumer.seek(partition, at);
            default -> consumer.seek(
                partition, consumer.offsetsForTimes(Map.of(partition, at)).get(partition).offset());
        }
    }

    private JsonNode take(int count, long timeoutMs) {
        ArrayNode read = JSON.arrayNode();
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        while (read.size() < count && System.nanoTime() < deadline) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                Lines.add(record, read.addObject());
            }
        }
        return read;
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "10000");
        settings.put("default.api.timeout.ms", "15000");
        return settings;
    }
}

/** Records as lines of JSON; bytes are in base64. */
final class Lines {
    private Lines() {}

    static ProducerRecord<byte[], byte[]> record(TopicPartition place, JsonNode line) throws IOException {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : line.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        return new ProducerRecord<>(
            place.topic(), place.partition(), line.get("timestamp").asLong(),
            bytes(line.get("key")), bytes(line.get("value")), headers);
    }

    static void add(ConsumerRecord<byte[], byte[]> record, ObjectNode line) {
        line.put("partition", record.partition()).put("offset", record.offset());
        line.put("timestamp", record.timestamp());
        line.set("key", text(record.key()));
        line.set("value", text(record.value()));
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
    }

    private static byte[] bytes(JsonNode text) throws IOException {
        return text.isNull() ? null : text.binaryValue();
    }

    private static JsonNode text(byte[] value) {
        return value == null ? JsonNodeFactory.instance.nullNode() : JsonNodeFactory.instance.binaryNode(value);
    }
}

/** Members of groups, transactions, and the administration of both; see {@code group_calls.py}. */
final class Groups {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final Duration PATIENCE = Duration.ofSeconds(40);
    private static final byte[] COPIED = "copy of ".getBytes(StandardCharsets.UTF_8);

    private final Admin admin;
    private final Supplier<Properties> settings;
    private final Map<String, KafkaConsumer<byte[], byte[]>> members = new HashMap<>();

    Groups(Admin admin, Supplier<Properties> settings) {
        this.admin = admin;
        this.settings = settings;
    }

    JsonNode answer(JsonNode request) throws Exception {
        String member = request.path("member").asText();
        String group = request.path("group").asText();
        String topic = request.path("topic").asText();
        TopicPartition place = new TopicPartition(topic, request.path("partition").asInt());
        switch (request.get("do").asText()) {
            case "join" -> members.put(member, joined(group, topic, request.get("protocol").asText()));
            case "poll" -> {
                ArrayNode read = JSON.arrayNode();
                Duration timeout = Duration.ofMillis(request.get("timeout_ms").asLong());
                members.get(member).poll(timeout).forEach(record -> Lines.add(record, read.addObject()));
                return read;
            }
            case "assigned" -> {
                ArrayNode partitions = JSON.arrayNode();
                members.get(member).assignment().forEach(owned -> partitions.add(owned.partition()));
                return partitions;
            }
            case "commit" -> members.get(member).commitSync();
            case "leave" -> members.remove(member).close();
            case "commit_offset" -> {
                long offset = request.get("offset").asLong();
                var committed = new OffsetAndMetadata(offset, request.get("metadata").asText());
                admin.alterConsumerGroupOffsets(group, Map.of(place, committed)).all().get();
            }
            case "committed" -> {
                return committed(group, place);
            }
            case "list_groups" -> {
                ArrayNode names = JSON.arrayNode();
                admin.listConsumerGroups().all().get().forEach(listed -> names.add(listed.groupId()));
                return names;
            }
            case "describe_group" -> {
                var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                return JSON.objectNode()
                    .put("state", described.state().toString().toLowerCase())
                    .put("members", described.members().size());
            }
            case "delete_group" -> admin.deleteConsumerGroups(List.of(group)).all().get();
            case "transaction" -> transaction(topic, request);
            case "copy" -> copy(group, topic, request);
            default -> throw new IllegalArgumentException("unknown: " + request);
        }
        return JSON.nullNode();
    }

    private KafkaConsumer<byte[], byte[]> joined(String group, String topic, String protocol) {
        Properties mine = settings.get();
        mine.put("group.id", group);
        mine.put("group.protocol", protocol);
        mine.put("enable.auto.commit", "false");
        mine.put("auto.offset.reset", "earliest");
        mine.put("isolation.level", "read_committed");
        var bytes = new ByteArrayDeserializer();
        var consumer = new KafkaConsumer<byte[], byte[]>(mine, bytes, bytes);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private JsonNode committed(String group, TopicPartition place) throws Exception {
        var spec = new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(place));
        var found = admin.listConsumerGroupOffsets(Map.of(group, spec))
            .partitionsToOffsetAndMetadata(group).get().get(place);
        if (found == null) {
            return JSON.nullNode();
        }
        return JSON.objectNode().put("offset", found.offset()).put("metadata", found.metadata());
    }

    private KafkaProducer<byte[], byte[]> transactional(JsonNode request) {
        Properties mine = settings.get();
        mine.remove("default.api.timeout.ms");
        mine.put("delivery.timeout.ms", "15000");
        mine.put("max.block.ms", "15000");
        mine.put("transactional.id", request.get("transactional_id").asText());
        var bytes = new ByteArraySerializer();
        var producer = new KafkaProducer<byte[], byte[]>(mine, bytes, bytes);
        producer.initTransactions();
        return producer;
    }

    private void transaction(String topic, JsonNode request) throws Exception {
        try (var producer = transactional(request)) {
            producer.beginTransaction();
            int index = 0;
            for (JsonNode line : request.get("records")) {
                producer.send(Lines.record(new TopicPartition(topic, index++ % 2), line));
            }
            end(producer, request);
        }
    }

    private void copy(String group, String topic, JsonNode request) {
        String target = request.get("target").asText();
        int left = request.get("count").asInt();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        try (var producer = transactional(request); var consumer = joined(group, topic, "classic")) {
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            while (left > 0) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(left + " records not read");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    if (left-- <= 0) {
                        break; // what is beyond the count is left to the next copy
                    }
                    byte[] value = Arrays.copyOf(COPIED, COPIED.length + record.value().length);
                    System.arraycopy(record.value(), 0, value, COPIED.length, record.value().length);
                    producer.send(new ProducerRecord<>(
                        target, record.partition(), record.timestamp(), record.key(), value, record.headers()));
                    next.put(
                        new TopicPartition(topic, record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
            }
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            end(producer, request);
        }
    }

    private static void end(KafkaProducer<byte[], byte[]> producer, JsonNode request) {
        if (request.get("commit").asBoolean()) {
            producer.commitTransaction();
        } else {
            producer.flush(); // so that the log has what is aborted
            producer.abortTransaction();
        }
    }
}
