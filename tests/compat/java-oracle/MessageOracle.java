// Writes, for every message and version that Kafka's jars hold, instances as JSON and as bytes.
//
// Nothing here knows our tables: the messages are found in the jars, and what a version has is
// read from the Schema that the generated class carries for it. Kafka's own converter makes the
// JSON, which leaves out tagged fields that have their default; Kafka's own writer makes the bytes.
// The converter does not show records, only their size, so their bytes follow from the size.
//
// One line of JSON per instance: message, version, kind, value, bytes, and "tagged" (the bytes of
// the same value with unknown tagged fields in every struct) where the version is flexible.
// The kinds: "default" is a new object, "sparse" has nulls and empty arrays wherever they are
// allowed, "random" anything. The same seed gives the same lines.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.share.generated.ShareSnapshotKey;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKey;

public class MessageOracle {
    static final int RANDOM_INSTANCES = 3;
    static final String CONVERTER = "JsonConverter.class";
    static final String LETTERS = "abcXYZ019._-äß€漢🙂";
    static final ObjectMapper JSON = new ObjectMapper();

    final Random random;
    final boolean sparse;

    MessageOracle(long seed, boolean sparse) {
        this.random = new Random(seed);
        this.sparse = sparse;
    }

    public static void main(String[] args) throws Exception {
        long seed = Long.parseLong(args[0]);
        for (String name : messages()) {
            Class<?> type = Class.forName(name);
            short first = type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            short last = type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            for (short version = first; version <= last; version++) {
                emit(type, version, "default", create(type));
                for (int i = 0; i <= RANDOM_INSTANCES; i++) {
                    long own = seed * 31 + (name + version + "/" + i).hashCode();
                    MessageOracle oracle = new MessageOracle(own, i == 0);
                    Schema schema = ((Schema[]) type.getField("SCHEMAS").get(null))[version];
                    Message message = create(type);
                    oracle.fill(message, schema);
                    emit(type, version, i == 0 ? "sparse" : "random", message);
                }
            }
        }
    }

    static TreeSet<String> messages() throws Exception {
        TreeSet<String> names = new TreeSet<>();
        for (Class<?> known : List.of(ProduceRequestData.class, OffsetCommitKey.class,
                TransactionLogKey.class, ShareSnapshotKey.class)) {
            String folder = known.getPackageName().replace('.', '/') + "/";
            Path jar = Path.of(known.getProtectionDomain().getCodeSource().getLocation().toURI());
            try (JarFile file = new JarFile(jar.toFile())) {
                file.stream().map(entry -> entry.getName())
                    .filter(n -> n.startsWith(folder) && n.endsWith(CONVERTER) && !n.contains("$"))
                    .map(n -> n.substring(0, n.length() - CONVERTER.length()).replace('/', '.'))
                    .forEach(names::add);
            }
        }
        return names;
    }

    static Message create(Class<?> type) throws Exception {
        return (Message) type.getDeclaredConstructor().newInstance();
    }

    static void emit(Class<?> type, short version, String kind, Message message) throws Exception {
        ObjectNode line = new ObjectNode(JsonNodeFactory.instance);
        line.put("message", type.getSimpleName());
        line.put("version", version);
        line.put("kind", kind);
        byte[] bytes;
        try {
            bytes = bytes(message, version);
        } catch (NullPointerException e) {
            // A new FetchSnapshotResponse partition has null records, which it may not send.
            if (!kind.equals("default")) throw e;
            return;
        }
        Method convert = Class.forName(type.getName() + "JsonConverter")
            .getMethod("write", type, short.class, boolean.class);
        line.set("value", (JsonNode) convert.invoke(null, message, version, false));
        line.put("bytes", Base64.getEncoder().encodeToString(bytes));
        if (kind.equals("random") && isFlexible(type, version)) {
            addUnknownTags(message);
            byte[] tagged = bytes(message, version);
            line.put("tagged", Base64.getEncoder().encodeToString(tagged));
        }
        System.out.println(JSON.writeValueAsString(line));
    }

    static byte[] bytes(Message message, short version) throws Exception {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException(message + " is shorter");
        Message read = create(message.getClass());
        buffer.flip();
        read.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) throw new IllegalStateException(message + " is longer");
        return buffer.array();
    }

    static boolean isFlexible(Class<?> type, short version) throws Exception {
        Schema schema = ((Schema[]) type.getField("SCHEMAS").get(null))[version];
        for (BoundField field : schema.fields())
            if (field.def.type instanceof TaggedFields) return true;
        return false;
    }

    static void addUnknownTags(Object message) throws Exception {
        List<RawTaggedField> tags = ((Message) message).unknownTaggedFields();
        tags.add(new RawTaggedField(100, new byte[0]));
        tags.add(new RawTaggedField(70_000, new byte[] {1, 2, 3}));
        for (Method getter : message.getClass().getDeclaredMethods()) {
            if (getter.getParameterCount() > 0 || getter.getName().equals("duplicate")) continue;
            Class<?> type = getter.getReturnType();
            if (Message.class.isAssignableFrom(type) && type != Message.class) {
                Object inner = getter.invoke(message);
                if (inner != null && !inner.equals(create(type))) addUnknownTags(inner);
            } else if (Collection.class.isAssignableFrom(type)) {
                Collection<?> inner = (Collection<?>) getter.invoke(message);
                if (inner == null) continue;
                for (Object element : inner)
                    if (element instanceof Message) addUnknownTags(element);
            }
        }
    }

    /** Sets every field that this version has. */
    void fill(Object message, Schema schema) throws Exception {
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields) {
                for (Field tagged : ((TaggedFields) field.def.type).fields().values())
                    if (!sparse && random.nextInt(3) > 0) set(message, tagged);
            } else {
                set(message, field.def);
            }
        }
    }

    void set(Object message, Field field) throws Exception {
        String wanted = "set" + field.name.replace("_", "");
        for (Method setter : message.getClass().getMethods()) {
            if (setter.getParameterCount() == 1 && setter.getName().equalsIgnoreCase(wanted)) {
                setter.invoke(message, value(setter, field.type));
                return;
            }
        }
        throw new IllegalStateException(message.getClass() + " has no " + wanted);
    }

    @SuppressWarnings("unchecked")
    Object value(Method setter, Type type) throws Exception {
        Class<?> wanted = setter.getParameterTypes()[0];
        boolean mayBeNull = type.isNullable() && !wanted.isPrimitive()
            && !setter.getName().equals("setUnalignedRecords");
        if (mayBeNull && (sparse || random.nextInt(4) == 0)) return null;
        if (!Collection.class.isAssignableFrom(wanted)) return single(wanted, type);
        Type elementType = type.arrayElementType().get();
        Class<?> element;
        Collection<Object> items;
        if (wanted == List.class) {
            ParameterizedType list = (ParameterizedType) setter.getGenericParameterTypes()[0];
            element = (Class<?>) list.getActualTypeArguments()[0];
            items = new ArrayList<>();
        } else { // a collection with keys; its element is the class it is named after
            element = Class.forName(wanted.getName().replaceAll("Collection$", ""));
            items = (Collection<Object>) wanted.getDeclaredConstructor().newInstance();
        }
        int count = sparse ? 0 : random.nextInt(20) == 0 ? 130 : random.nextInt(4);
        if (elementType instanceof Schema) count = Math.min(count, 3);
        for (int i = 0; i < count; i++) items.add(single(element, elementType));
        return items;
    }

    Object single(Class<?> wanted, Type type) throws Exception {
        if (Message.class.isAssignableFrom(wanted)) {
            Object inner = create(wanted);
            fill(inner, (Schema) type);
            return inner;
        }
        if (wanted == String.class) return text();
        if (wanted == byte[].class) return binary();
        if (wanted == ByteBuffer.class) return ByteBuffer.wrap(binary());
        if (wanted == Uuid.class) return new Uuid(random.nextLong(), random.nextLong());
        if (wanted == boolean.class) return random.nextBoolean();
        if (wanted == double.class) return random.nextGaussian() * 1e6;
        if (wanted.getSimpleName().equals("BaseRecords")) return records(wanted);
        long bits = switch (random.nextInt(4)) {
            case 0 -> random.nextInt(3) - 1;
            case 1 -> random.nextBoolean() ? Long.MAX_VALUE : Long.MIN_VALUE;
            default -> random.nextLong();
        };
        if (type == Type.UINT16) return (int) bits & 0xFFFF;
        if (type == Type.UNSIGNED_INT32) return bits & 0xFFFFFFFFL;
        if (wanted == byte.class || wanted == Byte.class) return (byte) bits;
        if (wanted == short.class || wanted == Short.class) return (short) bits;
        if (wanted == int.class || wanted == Integer.class) return (int) bits;
        if (wanted == long.class || wanted == Long.class) return bits;
        throw new IllegalStateException("no value for " + wanted);
    }

    int size() {
        return sparse ? 0 : random.nextInt(12) == 0 ? 120 + random.nextInt(20) : random.nextInt(9);
    }

    String text() {
        int[] points = LETTERS.codePoints().toArray();
        StringBuilder made = new StringBuilder();
        for (int left = size(); left > 0; left--)
            made.appendCodePoint(points[random.nextInt(points.length)]);
        return made.toString();
    }

    byte[] binary() {
        byte[] made = new byte[size()];
        random.nextBytes(made);
        return made;
    }

    /** Found by name, since its package has moved between releases. */
    Object records(Class<?> baseRecords) throws Exception {
        byte[] made = new byte[random.nextInt(8) == 0 ? 20_000 : size()];
        for (int i = 0; i < made.length; i++) made[i] = (byte) (i * 7 + made.length);
        return Class.forName(baseRecords.getPackageName() + ".MemoryRecords")
            .getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(made));
    }
}
