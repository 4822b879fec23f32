import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
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
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * What Kafka's own classes write and say, for make_record_vectors.py.
 *
 *   corpus                 writes batches and the records in them
 *   verdicts COUNT SEED    writes damaged and odd batches and the broker's answer to producing them
 *   check                  reads batches as hex, one a line, and writes the records in them
 *
 * Formats: src/protocol/records/vectors/README.md.
 */
public final class RecordVectors {
  private static final HexFormat HEX = HexFormat.of();
  private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
  private static final long NOW = 1_700_000_000_000L;
  private static final Header[] NONE = {};

  private record Entry(long timestamp, byte[] key, byte[] value, Header... headers) {}

  private record Producer(long id, short epoch, int sequence, boolean transactional) {}

  private static final Producer PLAIN = new Producer(-1, (short) -1, -1, false);

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "corpus" -> corpus();
      case "verdicts" -> verdicts(Integer.parseInt(args[1]), Long.parseLong(args[2]));
      case "check" -> check();
      default -> throw new IllegalArgumentException(args[0]);
    }
    OUT.flush();
  }

  // The corpus.

  private static void corpus() {
    for (CompressionType type : CompressionType.values()) {
      String codec = type.name;
      Compression compression = Compression.of(type).build();
      batch(codec + "-nulls", write(compression, 0, PLAIN, entry(NOW, null, null)));
      batch(codec + "-empty-strings", write(compression, 7, PLAIN, entry(NOW, "", "")));
      batch(codec + "-three", write(compression, 0, PLAIN, entry(NOW, "a", "1"), entry(NOW + 5, "b", "2"),
          entry(NOW - 9, "c", null)));
      batch(codec + "-headers", write(compression, 0, PLAIN, new Entry(NOW, bytes("k"), bytes("v"),
          header("h", "1"), header("h", "2"), header("", ""), header("null", null), header("\u00e9\u4e16", "x"))));
      batch(codec + "-idempotent", write(compression, 0, new Producer(1234567890123L, (short) 7, 2147483646, false),
          entry(NOW, "a", "1"), entry(NOW, "b", "2"), entry(NOW, "c", "3")));
      batch(codec + "-transactional", write(compression, 99, new Producer(5, (short) 0, 0, true),
          entry(NOW, "a", "1")));
      batch(codec + "-random", write(compression, 0, PLAIN, new Entry(NOW, random(20, 1), random(3000, 2))));
    }
    large("gzip-large", Compression.gzip().level(9).build());
    large("snappy-large", Compression.snappy().build());
    large("lz4-large", Compression.lz4().level(17).build());
    large("zstd-large", Compression.zstd().level(22).build());
    batch("append-time", MemoryRecords.withRecords(RecordBatch.CURRENT_MAGIC_VALUE, 3, Compression.NONE,
        TimestampType.LOG_APPEND_TIME, new org.apache.kafka.common.record.internal.SimpleRecord(NOW, bytes("a"), null))
        .buffer());
    batch("commit", MemoryRecords.withEndTransactionMarker(77, NOW, 4, 900, (short) 3,
        new EndTransactionMarker(ControlRecordType.COMMIT, 11)).buffer());
    batch("abort", MemoryRecords.withEndTransactionMarker(78, NOW, 4, 900, (short) 3,
        new EndTransactionMarker(ControlRecordType.ABORT, 12)).buffer());
    ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
    DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.CURRENT_MAGIC_VALUE, 5, (short) 1, 9, 40, 49, 6,
        TimestampType.CREATE_TIME, NOW, false, false);
    batch("no-records", empty.flip());
  }

  /** Some 300 KiB in records of 1 to 60,000 bytes, so that records cross every window and block. */
  private static void large(String name, Compression compression) {
    List<Entry> entries = new ArrayList<>();
    for (int size = 1; size < 60_000; size = size * 5 / 3 + 1) {
      byte[] value = new byte[size];
      for (int i = 0; i < size; i++) value[i] = (byte) (i / 50 * size % 7 + 'a');
      entries.add(new Entry(NOW + size, bytes("key-" + size), value));
      entries.add(new Entry(NOW - size, null, value));
    }
    batch(name, write(compression, 1000, PLAIN, entries.toArray(new Entry[0])));
  }

  private static ByteBuffer write(Compression compression, long baseOffset, Producer producer, Entry... entries) {
    MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), RecordBatch.CURRENT_MAGIC_VALUE,
        compression, TimestampType.CREATE_TIME, baseOffset, -1L, producer.id, producer.epoch, producer.sequence,
        producer.transactional, RecordBatch.NO_PARTITION_LEADER_EPOCH);
    for (Entry entry : entries) builder.append(entry.timestamp, entry.key, entry.value, entry.headers);
    return builder.build().buffer();
  }

  private static void batch(String name, ByteBuffer bytes) {
    byte[] copy = new byte[bytes.remaining()];
    bytes.duplicate().get(copy);
    OUT.println("batch " + name + " " + HEX.formatHex(copy));
    records(copy);
  }

  private static void records(byte[] bytes) {
    for (Record record : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).records()) {
      StringBuilder line = new StringBuilder("record " + record.offset() + " " + record.timestamp() + " "
          + text(record.key()) + " " + text(record.value()));
      for (Header header : record.headers()) {
        line.append(' ').append(text(ByteBuffer.wrap(bytes(header.key())))).append('=')
            .append(text(header.value() == null ? null : ByteBuffer.wrap(header.value())));
      }
      OUT.println(line);
    }
  }

  private static void check() throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      byte[] bytes = HEX.parseHex(line);
      for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) batch.ensureValid();
      OUT.println("batch");
      records(bytes);
    }
  }

  // The verdicts.

  private static void verdicts(int count, long seed) {
    Random random = new Random(seed);
    CompressionType[] types = CompressionType.values();
    for (int i = 0; i < count; i++) {
      CompressionType type = types[random.nextInt(types.length)];
      Rules rules = new Rules(random.nextInt(4) == 0, random.nextInt(4) == 0, random.nextInt(3) == 0 ? 6 : 13,
          random.nextInt(3) == 0 ? 10_000L : Long.MAX_VALUE, random.nextInt(3) == 0 ? 10_000L : 3_600_000L,
          random.nextInt(5) == 0 ? 120 : 1_048_588);
      byte[] bytes = odd(random, type);
      OUT.println("verdict " + rules + " " + HEX.formatHex(bytes) + " " + verdict(rules, bytes.clone()));
    }
  }

  private record Rules(boolean compacted, boolean appendTime, int version, long beforeMs, long afterMs, int bytesMax) {
    @Override
    public String toString() {
      return (compacted ? 1 : 0) + " " + (appendTime ? 1 : 0) + " " + version + " " + beforeMs + " " + afterMs + " "
          + bytesMax;
    }
  }

  /** A batch, and then something done to it. */
  private static byte[] odd(Random random, CompressionType type) {
    Entry[] entries = new Entry[1 + random.nextInt(3)];
    for (int i = 0; i < entries.length; i++) {
      long time = random.nextInt(5) == 0 ? NOW + random.nextInt(8_000_000) - 4_000_000 : NOW + random.nextInt(100);
      entries[i] = new Entry(random.nextInt(20) == 0 ? -1 : time, random.nextInt(4) == 0 ? null : random(3, i),
          random.nextInt(4) == 0 ? null : random(10, i), random.nextInt(3) == 0 ? new Header[] {header("h", "v")} : NONE);
    }
    Producer producer = random.nextInt(3) == 0 ? new Producer(9, (short) 1, random.nextInt(100), random.nextBoolean())
        : PLAIN;
    ByteBuffer written = write(Compression.of(type).build(), 0, producer, entries);
    byte[] bytes = new byte[written.remaining()];
    written.get(bytes);
    ByteBuffer batch = ByteBuffer.wrap(bytes);
    int[] odd = {-2, -1, 0, 1, 2, 3, 4, 5, 100, Integer.MAX_VALUE, Integer.MIN_VALUE};
    int value = odd[random.nextInt(odd.length)];
    switch (random.nextInt(16)) {
      case 0 -> batch.putLong(0, value);                                    // base offset
      case 1 -> batch.putInt(8, random.nextBoolean() ? value : bytes.length - 12 + random.nextInt(5) - 2);
      case 2 -> batch.put(16, (byte) value);                                // magic
      case 3 -> bytes[17 + random.nextInt(bytes.length - 17)] ^= (byte) (1 << random.nextInt(8));  // CRC is wrong
      case 4 -> { batch.putShort(21, (short) (batch.getShort(21) ^ 1 << random.nextInt(8))); seal(bytes); }
      case 5 -> { batch.putInt(23, value); seal(bytes); }                   // last offset delta
      case 6 -> { batch.putLong(27, NOW + value); seal(bytes); }            // base timestamp
      case 7 -> { batch.putLong(35, value); seal(bytes); }                  // maximum timestamp
      case 8 -> { batch.putLong(43, value); batch.putInt(53, -value); seal(bytes); }  // producer id and sequence
      case 9 -> { batch.putInt(57, value); seal(bytes); }                   // record count
      case 10 -> { batch.putInt(57, value); batch.putInt(23, value - 1); seal(bytes); }
      case 11 -> {                                                          // cut or longer
        byte[] other = new byte[Math.max(0, bytes.length + random.nextInt(80) - 60)];
        System.arraycopy(bytes, 0, other, 0, Math.min(bytes.length, other.length));
        bytes = other;
      }
      case 12 -> {                                                          // twice, perhaps not whole
        byte[] other = new byte[2 * bytes.length - (random.nextBoolean() ? 0 : random.nextInt(bytes.length))];
        for (int i = 0; i < other.length; i++) other[i] = bytes[i % bytes.length];
        bytes = other;
      }
      case 13, 14 -> {                                                      // garbage, but a good CRC
        for (int i = random.nextInt(3); i >= 0; i--) {
          bytes[61 + random.nextInt(bytes.length - 61)] ^= (byte) (1 << random.nextInt(8));
        }
        seal(bytes);
      }
      default -> { }
    }
    return bytes;
  }

  private static void seal(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, 21, bytes.length - 21);
    ByteBuffer.wrap(bytes).putInt(17, (int) crc.getValue());
  }

  /** "CODE INDEX,INDEX..." or "0 HEADER", the 61 bytes that the broker would store (with its own offset 0). */
  private static String verdict(Rules rules, byte[] bytes) {
    try {
      MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
      ProduceRequest.validateRecords((short) rules.version, records);
      return "0 " + HEX.formatHex(append(rules, records), 0, DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
    } catch (RecordValidationException e) {
      StringBuilder indexes = new StringBuilder();
      for (ProduceResponse.RecordError error : e.recordErrors()) {
        indexes.append(indexes.isEmpty() ? "" : ",").append(error.batchIndex);
      }
      return Errors.forException(e.invalidException()).code() + " " + indexes;
    } catch (RuntimeException | Error e) {
      return Errors.forException(e).code() + " -";
    }
  }

  /** What UnifiedLog looks at, in its order, and then the real LogValidator. */
  private static byte[] append(Rules rules, MemoryRecords records) {
    CompressionType source = CompressionType.NONE;
    for (MutableRecordBatch batch : records.batches()) {
      if (batch.baseOffset() != 0) throw new org.apache.kafka.common.InvalidRecordException("base offset");
      if (batch.sizeInBytes() > rules.bytesMax) throw new RecordTooLargeException("size");
      if (!batch.isValid()) throw new CorruptRecordException("crc");
      source = batch.compressionType();
    }
    Time time = new Time() {
      @Override public long milliseconds() { return NOW; }
      @Override public long nanoseconds() { return 0; }
      @Override public void sleep(long ms) { }
      @Override public void waitObject(Object o, java.util.function.Supplier<Boolean> c, long deadline) { }
      @Override public org.apache.kafka.common.utils.Timer timer(long ms) { throw new UnsupportedOperationException(); }
    };
    LogValidator.MetricsRecorder unused = new LogValidator.MetricsRecorder() {
      @Override public void recordInvalidMagic() { }
      @Override public void recordInvalidOffset() { }
      @Override public void recordInvalidSequence() { }
      @Override public void recordInvalidChecksums() { }
      @Override public void recordNoKeyCompactedTopic() { }
    };
    ByteBuffer result = new LogValidator(records, new TopicPartition("t", 0), time, source,
        Compression.of(source).build(), rules.compacted, RecordBatch.CURRENT_MAGIC_VALUE,
        rules.appendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME, rules.beforeMs, rules.afterMs,
        RecordBatch.NO_PARTITION_LEADER_EPOCH, AppendOrigin.CLIENT)
        .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), unused, BufferSupplier.NO_CACHING)
        .validatedRecords().buffer();
    byte[] stored = new byte[result.remaining()];
    result.get(stored);
    return stored;
  }

  // Text.

  private static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  private static Entry entry(long timestamp, String key, String value) {
    return new Entry(timestamp, bytes(key), bytes(value));
  }

  private static Header header(String key, String value) {
    return new RecordHeader(key, bytes(value));
  }

  private static byte[] random(int size, long seed) {
    byte[] bytes = new byte[size];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  /** Hex between quotes; "null"; or of more than 64 bytes the length and the CRC-32C. */
  private static String text(ByteBuffer bytes) {
    if (bytes == null) return "null";
    byte[] copy = new byte[bytes.remaining()];
    bytes.duplicate().get(copy);
    if (copy.length <= 64) return "'" + HEX.formatHex(copy) + "'";
    CRC32C crc = new CRC32C();
    crc.update(copy);
    return copy.length + ":" + HEX.toHexDigits((int) crc.getValue());
  }
}
