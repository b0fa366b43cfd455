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
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
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
    private KafkaConsumer<byte[], byte[]> consumer;

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
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
            default -> throw new IllegalArgumentException("unknown: " + request);
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
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : record.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                waiting.add(producer.send(new ProducerRecord<>(
                    partition.topic(), partition.partition(), record.get("timestamp").asLong(),
                    bytes(record.get("key")), bytes(record.get("value")), headers)));
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
                ObjectNode line = read.addObject();
                line.put("offset", record.offset()).put("timestamp", record.timestamp());
                line.set("key", text(record.key()));
                line.set("value", text(record.value()));
                ArrayNode headers = line.putArray("headers");
                for (Header header : record.headers()) {
                    headers.addArray().add(header.key()).add(text(header.value()));
                }
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

    private static byte[] bytes(JsonNode text) throws IOException {
        return text.isNull() ? null : text.binaryValue();
    }

    private static JsonNode text(byte[] value) {
        return value == null ? JSON.nullNode() : JSON.binaryNode(value);
    }
}
