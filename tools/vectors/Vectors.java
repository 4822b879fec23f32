import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * The Java client's codec as a filter, for vectors.py.
 *
 *   versions           writes lines "key lowest highest", one for each API
 *   write COUNT SEED   reads lines "key version", writes COUNT lines for each request and response of that version:
 *                      "key kind version hex [hex with unknown tagged fields]"
 *   check              reads such lines; decodes and encodes each hex, and stops at the first that comes out different
 */
public final class Vectors {
  private static final HexFormat HEX = HexFormat.of();

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
    if (args[0].equals("versions")) {
      for (ApiMessageType type : ApiMessageType.values()) {
        out.println(type.apiKey() + " " + type.lowestSupportedVersion() + " " + type.highestSupportedVersion(false));
      }
      out.flush();
      return;
    }
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    long checked = 0;
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      if (args[0].equals("write")) {
        write(out, words, Integer.parseInt(args[1]), Long.parseLong(args[2]));
      } else {
        for (int i = 3; i < words.length; i++) {
          String again = reencode(message(words[0], words[1]), Short.parseShort(words[2]), bytes(words[i]));
          if (!again.equals(words[i])) {
            throw new IllegalStateException("written " + words[i] + "\nby Java " + again + "\nin " + line);
          }
          checked++;
        }
      }
    }
    if (args[0].equals("check")) out.println(checked);
    out.flush();
  }

  private static byte[] bytes(String hex) {
    return hex.equals("-") ? new byte[0] : HEX.parseHex(hex);
  }

  private static ApiMessage message(String key, String kind) {
    ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(key));
    return kind.equals("request") ? type.newRequest() : type.newResponse();
  }

  private static void write(PrintStream out, String[] words, int count, long seed) {
    short version = Short.parseShort(words[1]);
    ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(words[0]));
    for (String kind : new String[] {"request", "response"}) {
      Schema schema = (kind.equals("request") ? type.requestSchemas() : type.responseSchemas())[version];
      for (int i = 0; i < count; i++) {
        long own = Arrays.hashCode(new long[] {seed, type.apiKey(), version, kind.length(), i});
        String plain = random(schema, own, kind, words[0], version, false);
        // Every other one, if the version has tagged fields at all.
        String tagged = i % 2 == 0 ? plain : random(schema, own, kind, words[0], version, true);
        out.println(words[0] + " " + kind + " " + version + " " + plain + (tagged.equals(plain) ? "" : " " + tagged));
      }
    }
  }

  private static String random(Schema schema, long seed, String kind, String key, short version, boolean unknownTags) {
    Values values = new Values(new Random(seed), unknownTags ? new Random(seed + 1) : null);
    Object struct = values.of(schema);
    ByteBuffer buffer = ByteBuffer.allocate(schema.sizeOf(struct));
    schema.write(buffer, struct);
    return reencode(message(key, kind), version, buffer.array());
  }

  private static String reencode(ApiMessage message, short version, byte[] bytes) {
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    message.read(new ByteBufferAccessor(buffer), version);
    if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes left");
    ObjectSerializationCache cache = new ObjectSerializationCache();
    ByteBuffer again = ByteBuffer.allocate(message.size(cache, version));
    message.write(new ByteBufferAccessor(again), cache, version);
    return again.capacity() == 0 ? "-" : HEX.formatHex(again.array());
  }

  /** Random values of the client's own description of each version. */
  private static final class Values {
    private final Random random;
    private final Random tags;

    Values(Random random, Random tags) {
      this.random = random;
      this.tags = tags;
    }

    Object of(Type type) {
      if (type instanceof TaggedFields) return taggedFields((TaggedFields) type);
      if (type.isNullable() && random.nextInt(4) == 0) return null;
      if (type instanceof Schema) return struct((Schema) type);
      if (type.isArray()) {
        List<Object> items = new ArrayList<>();
        for (int left = random.nextInt(3); left > 0; left--) items.add(of(type.arrayElementType().get()));
        return items.toArray();
      }
      String name = type.toString();
      switch (name) {
        case "BOOLEAN": return random.nextBoolean();
        case "INT8": return (byte) number();
        case "INT16": return (short) number();
        case "UINT16": return (int) (number() & 0xffff);
        case "INT32": return (int) number();
        case "UINT32": return number() & 0xffffffffL;
        case "INT64": return number();
        case "FLOAT64": return random.nextInt(1000) / 8.0;
        case "UUID": return random.nextInt(3) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
        default: break;
      }
      if (name.endsWith("STRING")) return new String(bytes(), StandardCharsets.ISO_8859_1);
      if (name.endsWith("BYTES")) return ByteBuffer.wrap(bytes());
      if (name.endsWith("RECORDS")) return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes()));
      throw new IllegalStateException("no random values for " + name);
    }

    private Struct struct(Schema schema) {
      Struct struct = new Struct(schema);
      for (BoundField field : schema.fields()) struct.set(field, of(field.def.type));
      return struct;
    }

    private Object taggedFields(TaggedFields type) {
      TreeMap<Integer, Object> fields = new TreeMap<>();
      for (Map.Entry<Integer, Field> field : new TreeMap<>(type.fields()).entrySet()) {
        if (random.nextBoolean()) fields.put(field.getKey(), of(field.getValue().type));
      }
      if (tags != null) {
        for (int left = tags.nextInt(3); left > 0; left--) {
          int tag = 50 + tags.nextInt(300);
          byte[] value = new byte[tags.nextInt(tags.nextInt(10) == 0 ? 200 : 5)];
          tags.nextBytes(value);
          fields.put(tag, new RawTaggedField(tag, value));
        }
      }
      return fields;
    }

    private long number() {
      switch (random.nextInt(4)) {
        case 0: return random.nextInt(3) - 1;
        case 1: return random.nextBoolean() ? Long.MAX_VALUE : Long.MIN_VALUE;
        case 2: return random.nextLong();
        default: return random.nextInt(1000);
      }
    }

    private byte[] bytes() {
      int size = random.nextInt(20) == 0 ? 120 + random.nextInt(20) : random.nextInt(10);
      byte[] bytes = new byte[size];
      for (int i = 0; i < size; i++) bytes[i] = (byte) random.nextInt(256);
      return bytes;
    }
  }
}
