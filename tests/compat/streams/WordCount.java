import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams counts words with exactly_once_v2. Nothing is cached, so that every word's counts
 * come out as 1, 2, 3 and so on: one that is missing, or there twice, was counted wrongly.
 */
public final class WordCount {
    private static final int LINES = 400; // in each of the parts
    private static final int PARTITIONS = 3;
    private static final String[] WORDS = {"tea", "cake", "bread", "milk", "salt", "honey", "rye"};
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final String bootstrap;
    private final String run = Long.toHexString(System.nanoTime());
    private final String application = "word-count-" + run;
    private final String lines = "lines-" + run;
    private final String counts = "counts-" + run;
    private final Map<String, Long> wanted = new HashMap<>();
    private final Random random = new Random(6);
    private final AtomicInteger failures = new AtomicInteger();
    private final Path state;

    private WordCount(String bootstrap) throws IOException {
        this.bootstrap = bootstrap;
        this.state = Files.createTempDirectory("word-count");
    }

    public static void main(String[] arguments) throws Exception {
        WordCount suite = new WordCount(arguments[0]);
        try (Admin admin = Admin.create(suite.settings())) {
            admin.createTopics(List.of(
                new NewTopic(suite.lines, PARTITIONS, (short) 1),
                new NewTopic(suite.counts, PARTITIONS, (short) 1))).all().get();
            check("one instance counts every word once", () -> suite.part("one", 0, 1));
            check("its topics: a compacted change log, a repartitioning", () -> suite.ownTopics(admin));
            check("a thread fails in the middle and is replaced", () -> suite.part("one", 1, 1));
            check("two instances restore from the change log and share", () -> suite.part("two", 0, 2));
            check("the group is left empty, its offsets at the end", () -> suite.groupIsLeft(admin));
            check("the two protocols are not mixed up", () -> suite.groupIsClassic(admin));
        }
        System.exit(0); // a closed instance may leave threads that end later
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

    /** New lines, instances that count them, and everything counted so far. */
    private void part(String name, int failing, int instances) throws Exception {
        failures.set(failing);
        List<KafkaStreams> started = new ArrayList<>();
        try {
            for (int number = 0; number < instances; number++) {
                KafkaStreams streams = new KafkaStreams(topology(), settings(name + number));
                streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
                started.add(streams);
                streams.start();
            }
            sendLines();
            requireCounted();
        } finally {
            started.forEach(streams -> streams.close(Duration.ofSeconds(20)));
        }
        require(failures.get() <= 0, "no thread has failed");
    }

    private Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        AtomicInteger seen = new AtomicInteger();
        builder.<String, String>stream(lines)
            .peek((key, line) -> {
                if (seen.incrementAndGet() == LINES / 2 && failures.getAndDecrement() > 0) {
                    throw new IllegalStateException("in the middle of a transaction");
                }
            })
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counted"))
            .toStream()
            .to(counts, Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private void sendLines() throws Exception {
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<>(settings(), text, text)) {
            for (int number = 0; number < LINES; number++) {
                List<String> words = new ArrayList<>();
                for (int word = 0; word < 5; word++) {
                    words.add(WORDS[random.nextInt(WORDS.length)]);
                }
                words.forEach(word -> wanted.merge(word, 1L, Long::sum));
                producer.send(new ProducerRecord<>(lines, "line " + number, String.join(" ", words)));
            }
        }
    }

    private void requireCounted() throws Exception {
        Properties settings = settings();
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        Map<String, Long> found = new HashMap<>();
        long total = wanted.values().stream().mapToLong(Long::longValue).sum();
        long read = 0;
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> places = new ArrayList<>();
            for (int partition = 0; partition < PARTITIONS; partition++) {
                places.add(new TopicPartition(counts, partition));
            }
            consumer.assign(places);
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (read < total) {
                require(System.nanoTime() < deadline, read + " of " + total + " counts: " + found);
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    long next = found.merge(record.key(), 1L, Long::sum);
                    require(record.value() == next, record.key() + ": " + record.value() + " follows " + (next - 1));
                    read++;
                }
            }
            require(consumer.poll(Duration.ofMillis(300)).isEmpty(), "more than was sent is counted");
        }
        require(found.equals(wanted), "wanted " + wanted + ", got " + found);
    }

    private void ownTopics(Admin admin) throws Exception {
        String changes = application + "-counted-changelog";
        String grouped = application + "-counted-repartition";
        Set<String> names = new TreeSet<>(admin.listTopics().names().get());
        names.removeIf(name -> !name.startsWith(application));
        require(names.equals(Set.of(changes, grouped)), "topics " + names);
        Map<String, String> policies = new HashMap<>();
        for (String name : names) {
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
            var config = admin.describeConfigs(List.of(topic)).all().get().get(topic);
            policies.put(name, config.get("cleanup.policy").value());
        }
        require(policies.equals(Map.of(changes, "compact", grouped, "delete")), "policies " + policies);
    }

    private void groupIsLeft(Admin admin) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!admin.describeConsumerGroups(List.of(application)).all().get().get(application).members().isEmpty()) {
            require(System.nanoTime() < deadline, "members are still there");
            Thread.sleep(100);
        }
        long committed = 0;
        var offsets = admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
        for (var row : offsets.entrySet()) {
            if (row.getKey().topic().equals(lines)) {
                committed += row.getValue().offset();
            }
        }
        require(committed == 3 * LINES, "committed " + committed + " of " + 3 * LINES);
    }

    private void groupIsClassic(Admin admin) throws Exception {
        var group = admin.describeConsumerGroups(List.of(application)).all().get().get(application);
        require(group.type().toString().equals("Classic"), "type " + group.type());
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private Properties settings(String instance) {
        Properties settings = settings();
        settings.put("application.id", application);
        settings.put("client.id", instance);
        settings.put("state.dir", state.resolve(instance).toString());
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("num.stream.threads", "2");
        settings.put("replication.factor", "1");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        return settings;
    }
}
