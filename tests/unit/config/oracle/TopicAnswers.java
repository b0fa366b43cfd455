// Prints what Kafka 4.3.1 says to topic configurations and topic names, as JSON lines.
// Run: java -cp <class path of tests/compat/kafka/pom.xml> TopicAnswers.java > topic_answers.jsonl
import java.util.*;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.storage.internals.log.LogConfig;

public class TopicAnswers {
    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c < 32 || c > 126 || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
        return out.append('"').toString();
    }

    interface Check { void run() throws Exception; }

    static void answer(String kind, String name, String value, Check check) {
        String error = "null";
        try {
            check.run();
        } catch (Exception e) {
            error = quote(String.valueOf(e.getMessage()));
        }
        System.out.printf("[\"%s\",%s,%s,%s]%n", kind, quote(name), quote(value), error);
    }

    public static void main(String[] args) {
        String[] values = {
            "", " ", "0", "1", "-1", "-2", "-3", "2", "9", "10", "17", "18", "22", "23", "100", " 5 ", "+5", "5.0", "0x10",
            "1048575", "1048576", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
            "-131072", "-131073", "0.5", "1.5", "1e-3", "true", "TRUE", "False", "yes", "delete", "compact", "compact,delete",
            " compact , delete ", "delete,delete", "compact,", "Delete", "producer", "zstd", "gzip", "uncompressed", "none",
            "CreateTime", "createtime", "LogAppendTime", "*", "1:2", "1:2,3:4", "1:x", "1:2:3", "one"};
        for (String name : new TreeSet<>(LogConfig.nonInternalConfigNames()))
            for (String value : values)
                answer("config", name, value, () -> LogConfig.validate(Map.of(name, value)));
        String[] topics = {
            "", ".", "..", "...", "a", "a.b", "a_b", "a-b", "a b", "a/b", "a:b", "\u00e4", "A9._-", "a\n", "__consumer_offsets",
            "x".repeat(249), "x".repeat(250), "x".repeat(300)};
        for (String topic : topics)
            answer("topic", topic, "", () -> Topic.validate(topic));
        for (String[] pair : new String[][] {{"a.b", "a_b"}, {"a.b", "a.c"}, {"a_b_c", "a.b_c"}, {"ab", "a_b"}})
            answer("collision", pair[0], pair[1], () -> {
                if (Topic.hasCollision(pair[0], pair[1])) throw new Exception("collides");
            });
    }
}
