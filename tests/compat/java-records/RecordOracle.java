// Kafka's own reader and writer of record batches, one JSON object per line.
//
// "write": batches of every codec and kind, each with the records that Kafka reads back from it.
// "read": for each line of standard input, the base64 of batches, the records that Kafka reads
// from it, or {"error": the exception}.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.CloseableIterator;

public class RecordOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final long T = 1_700_000_000_000L;
    static final Random RANDOM = new Random(42);

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) {
            write();
        } else {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                ObjectNode result = JSON.createObjectNode();
                try {
                    result.set("batches", read(ByteBuffer.wrap(Base64.getDecoder().decode(line))));
                } catch (Throwable e) {  // snappy throws Errors, and memory runs out by a damaged length
                    result.put("error", e.toString());
                }
                OUT.println(result);
            }
        }
        OUT.flush();
    }

    static void write() {
        for (CompressionType type : CompressionType.values()) {
            Compression codec = Compression.of(type).build();
            String name = type.name;
            emit(name + ": mixed", mixed(builder(codec, TimestampType.CREATE_TIME, 100, -1, -1, -1, false), 60));
            emit(name + ": one record", mixed(builder(codec, TimestampType.CREATE_TIME, 0, -1, -1, -1, false), 1));
            emit(name + ": log append time", mixed(builder(codec, TimestampType.LOG_APPEND_TIME, 7, -1, -1, -1, false), 20));
            emit(name + ": idempotent", mixed(builder(codec, TimestampType.CREATE_TIME, 1L << 40, 4711, 3, 2_147_483_640, false), 20));
            emit(name + ": transactional", mixed(builder(codec, TimestampType.CREATE_TIME, 5, 4711, 0, 0, true), 20));
            MemoryRecordsBuilder gaps = builder(codec, TimestampType.CREATE_TIME, 1000, -1, -1, -1, false);
            for (int offset = 1003; offset < 1400; offset += 1 + RANDOM.nextInt(40))
                gaps.appendWithOffset(offset, T - offset, bytes(3), bytes(9));
            emit(name + ": gaps", gaps.build());
            MemoryRecordsBuilder large = builder(codec, TimestampType.CREATE_TIME, 0, -1, -1, -1, false);
            for (int i = 0; i < 300; i++)
                large.append(T + i, null, ("value " + i + " ").repeat(60).getBytes(StandardCharsets.UTF_8));
            emit(name + ": several blocks", large.build());
            MemoryRecordsBuilder dense = builder(codec, TimestampType.CREATE_TIME, 0, -1, -1, -1, false);
            dense.append(T, null, new byte[900_000]);
            emit(name + ": dense", dense.build());
            MemoryRecordsBuilder horizon = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024), RecordBatch.MAGIC_VALUE_V2, codec, TimestampType.CREATE_TIME,
                50, RecordBatch.NO_TIMESTAMP, -1, (short) -1, -1, false, false, 0, 1 << 20, T + 999);
            emit(name + ": delete horizon", mixed(horizon, 5));
        }
        for (ControlRecordType type : new ControlRecordType[] {ControlRecordType.ABORT, ControlRecordType.COMMIT})
            emit("control: " + type, MemoryRecords.withEndTransactionMarker(
                9, T, 2, 4711, (short) 1, new EndTransactionMarker(type, 17)));
        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.MAGIC_VALUE_V2, 4711, (short) 1, 5, 30, 39, 2,
            TimestampType.CREATE_TIME, T, false, false);
        empty.flip();
        emit("empty after compaction", MemoryRecords.readableRecords(empty));
    }

    static MemoryRecordsBuilder builder(Compression codec, TimestampType type, long baseOffset, long producerId,
                                        int producerEpoch, int sequence, boolean transactional) {
        return MemoryRecords.builder(ByteBuffer.allocate(1024), RecordBatch.MAGIC_VALUE_V2, codec, type, baseOffset,
            T + 123, producerId, (short) producerEpoch, sequence, transactional, 6);
    }

    static MemoryRecords mixed(MemoryRecordsBuilder builder, int count) {
        for (int i = 0; i < count; i++) {
            Header[] headers = new Header[i % 4];
            for (int h = 0; h < headers.length; h++)
                headers[h] = new RecordHeader("h\u00e9ader-" + h, h == 2 ? null : bytes(h * 5));
            builder.append(T + RANDOM.nextInt(2000) - 1000, i % 3 == 0 ? null : bytes(i % 5),
                i % 7 == 3 ? null : bytes(RANDOM.nextInt(200)), headers);
        }
        return builder.build();
    }

    static byte[] bytes(int size) {
        byte[] out = new byte[size];
        RANDOM.nextBytes(out);
        return out;
    }

    static void emit(String name, MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] raw = new byte[buffer.remaining()];
        buffer.duplicate().get(raw);
        ObjectNode line = JSON.createObjectNode();
        line.put("name", name);
        line.put("raw", Base64.getEncoder().encodeToString(raw));
        line.set("batches", read(ByteBuffer.wrap(raw)));
        OUT.println(line);
    }

    static ArrayNode read(ByteBuffer buffer) {
        ArrayNode batches = JSON.createArrayNode();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(buffer).batches()) {
            batch.ensureValid();
            ObjectNode out = batches.addObject();
            out.put("base_offset", batch.baseOffset());
            out.put("last_offset", batch.lastOffset());
            out.put("max_timestamp", batch.maxTimestamp());
            out.put("producer_id", batch.producerId());
            out.put("producer_epoch", batch.producerEpoch());
            out.put("base_sequence", batch.baseSequence());
            out.put("transactional", batch.isTransactional());
            out.put("control", batch.isControlBatch());
            out.put("leader_epoch", batch.partitionLeaderEpoch());
            out.put("log_append_time", batch.timestampType() == TimestampType.LOG_APPEND_TIME);
            out.put("codec", batch.compressionType().id);
            ArrayNode records = out.putArray("records");
            try (CloseableIterator<Record> iterator = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (iterator.hasNext())
                    add(records.addObject(), iterator.next());
            }
            batch.offsetOfMaxTimestamp().ifPresent(offset -> out.put("offset_of_max_timestamp", offset));
        }
        return batches;
    }

    static void add(ObjectNode out, Record record) {
        out.put("offset", record.offset());
        out.put("timestamp", record.timestamp());
        put(out, "key", record.key());
        put(out, "value", record.value());
        ArrayNode headers = out.putArray("headers");
        for (Header header : record.headers()) {
            ArrayNode pair = headers.addArray();
            pair.add(header.key());
            if (header.value() == null) pair.addNull();
            else pair.add(Base64.getEncoder().encodeToString(header.value()));
        }
    }

    static void put(ObjectNode out, String name, ByteBuffer value) {
        if (value == null) {
            out.putNull(name);
            return;
        }
        byte[] bytes = new byte[value.remaining()];
        value.duplicate().get(bytes);
        out.put(name, Base64.getEncoder().encodeToString(bytes));
    }
}
