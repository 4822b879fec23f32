import java.io.BufferedReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** One record as a line of a file, as clients/record_lines.py describes. */
record RecordLine(int partition, long offset, long timestamp, byte[] key, byte[] value, List<Header> headers) {
  static RecordLine parse(String text) {
    String[] fields = text.split("\t", -1);
    List<Header> headers = new ArrayList<>();
    for (String pair : fields[5].isEmpty() ? new String[0] : fields[5].split(",")) {
      String[] parts = pair.split(":", -1);
      headers.add(new RecordHeader(new String(bytes(parts[0]), StandardCharsets.UTF_8), bytes(parts[1])));
    }
    return new RecordLine(Integer.parseInt(fields[0]), Long.parseLong(fields[1]), Long.parseLong(fields[2]),
        bytes(fields[3]), bytes(fields[4]), headers);
  }

  static RecordLine of(ConsumerRecord<byte[], byte[]> record) {
    return new RecordLine(record.partition(), record.offset(), record.timestamp(), record.key(), record.value(),
        List.of(record.headers().toArray()));
  }

  RecordLine at(long newOffset) {
    return new RecordLine(partition, newOffset, timestamp, key, value, headers);
  }

  @Override
  public String toString() {
    List<String> pairs = new ArrayList<>();
    for (Header header : headers) {
      pairs.add(text(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + text(header.value()));
    }
    return String.join("\t", Integer.toString(partition), Long.toString(offset), Long.toString(timestamp),
        text(key), text(value), String.join(",", pairs));
  }

  private static byte[] bytes(String text) {
    return text.equals("-") ? null : Base64.getDecoder().decode(text);
  }

  private static String text(byte[] bytes) {
    return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
  }

  static List<RecordLine> read(String path) throws Exception {
    List<RecordLine> lines = new ArrayList<>();
    try (BufferedReader reader = Files.newBufferedReader(Path.of(path))) {
      for (String text = reader.readLine(); text != null; text = reader.readLine()) {
        lines.add(RecordLine.parse(text));
      }
    }
    return lines;
  }

  static void write(String path, List<RecordLine> lines) throws Exception {
    try (PrintWriter writer = new PrintWriter(Files.newBufferedWriter(Path.of(path)))) {
      for (RecordLine line : lines) {
        writer.print((line == null ? "-" : line.toString()) + "\n");
      }
    }
  }
}
