import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The member step of clients/record_lines.py: a consumer of a group that notes all that happens to it. */
final class Member implements ConsumerRebalanceListener {
  private static final Map<String, Class<?>> ASSIGNORS = Map.of("range", RangeAssignor.class,
      "sticky", StickyAssignor.class, "cooperative", CooperativeStickyAssignor.class);

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Path log;

  private Member(KafkaConsumer<byte[], byte[]> consumer, Path log) {
    this.consumer = consumer;
    this.log = log;
  }

  /** step: member, group, topics, options, result file. */
  static void run(String bootstrap, String[] step) {
    Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", step[1],
        "enable.auto.commit", "false", "auto.offset.reset", "earliest", "session.timeout.ms", "6000",
        "heartbeat.interval.ms", "500", "fetch.max.wait.ms", "100", "max.poll.records", "100"));
    settings.put("key.deserializer", ByteArrayDeserializer.class);
    settings.put("value.deserializer", ByteArrayDeserializer.class);
    // Else one that finds no broker for a moment forgets what it knows of it, and joins again of its own accord.
    settings.put("metadata.recovery.strategy", "none");
    for (String option : step[3].isEmpty() ? new String[0] : step[3].split(",")) {
      String value = option.substring(option.indexOf('=') + 1);
      switch (option.substring(0, option.indexOf('='))) {
        case "assignor" -> settings.put("partition.assignment.strategy", List.of(ASSIGNORS.get(value)));
        case "instance" -> settings.put("group.instance.id", value);
        case "session" -> settings.put("session.timeout.ms", value);
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
    new Member(consumer, Path.of(step[4])).consume(List.of(step[2].split(",")), Path.of(step[4] + ".stop"));
  }

  private void consume(List<String> topics, Path stop) {
    consumer.subscribe(topics, this);
    while (!Files.exists(stop)) {
      ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
      StringBuilder lines = new StringBuilder();
      Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
      for (ConsumerRecord<byte[], byte[]> record : records) {
        lines.append(line("record", record.topic(), RecordLine.of(record).toString()));
        offsets.put(new TopicPartition(record.topic(), record.partition()),
            new OffsetAndMetadata(record.offset() + 1));
      }
      append(lines.toString());
      if (!offsets.isEmpty()) {
        commit(offsets);
      }
    }
    consumer.close();
    note("left");
  }

  private void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
    try {
      consumer.commitSync(offsets);
      List<String> places = new ArrayList<>();
      offsets.forEach((place, offset) -> places.add(text(place) + ":" + offset.offset()));
      note("committed", String.join(",", new TreeSet<>(places)));
    } catch (KafkaException refused) {
      note("refused", refused.toString().replaceAll("\\s+", " "));
    }
  }

  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> added) {
    var group = consumer.groupMetadata();
    note("assigned", Integer.toString(group.generationId()), group.memberId(), texts(consumer.assignment()));
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> gone) {
    note("revoked", texts(gone));
  }

  private static String texts(Collection<TopicPartition> places) {
    return String.join(",", new TreeSet<>(places.stream().map(Member::text).toList()));
  }

  private static String text(TopicPartition place) {
    return place.topic() + ":" + place.partition();
  }

  private void note(String... fields) {
    append(line(fields));
  }

  private static String line(String... fields) {
    return System.currentTimeMillis() + "\t" + String.join("\t", fields) + "\n";
  }

  private void append(String text) {
    try {
      Files.writeString(log, text, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }
}
