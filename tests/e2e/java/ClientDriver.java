import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Drives kafka-clients with its defaults. Files and steps are described in clients/record_lines.py. */
public final class ClientDriver {
  private static final long PATIENCE_SECONDS = 60;

  private final String bootstrap;
  private KafkaConsumer<byte[], byte[]> consumer;

  private ClientDriver(String bootstrap) {
    this.bootstrap = bootstrap;
  }

  public static void main(String[] arguments) throws Exception {
    ClientDriver driver = new ClientDriver(arguments[0]);
    for (String line : Files.readAllLines(Path.of(arguments[1]))) {
      String[] step = line.split("\t");
      switch (step[0]) {
        case "create" -> driver.create(step[1], Integer.parseInt(step[2]));
        case "produce" -> RecordLine.write(step[4], driver.produce(step[1], step[2], RecordLine.read(step[3])));
        case "consume" -> RecordLine.write(step[3], driver.consume(step[1], Integer.parseInt(step[2])));
        case "seek" -> RecordLine.write(step[3], driver.seek(step[1], Files.readAllLines(Path.of(step[2]))));
        case "member" -> Member.run(driver.bootstrap, step);
        case "delete" -> driver.delete(step[1]);
        case "reset" -> RecordLine.write(step[4], driver.reset(step[1], Long.parseLong(step[2]), step[3]));
        default -> throw new IllegalArgumentException("unknown step " + step[0]);
      }
    }
    if (driver.consumer != null) {
      driver.consumer.close();
    }
  }

  private void create(String topic, int partitions) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
      admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all()
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }
  }

  private void delete(String topic) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
      admin.deleteTopics(List.of(topic)).all().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }
  }

  private List<RecordLine> produce(String topic, String codec, List<RecordLine> lines) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "compression.type", codec,
        "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class);
    List<RecordLine> results = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (RecordLine line : lines) {
        sent.add(producer.send(new ProducerRecord<>(topic, line.partition(), line.timestamp(), line.key(),
            line.value(), line.headers())));
      }
      for (int i = 0; i < sent.size(); i++) {
        RecordMetadata metadata = sent.get(i).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        results.add(lines.get(i).at(metadata.offset()));
      }
    }
    return results;
  }

  private List<RecordLine> consume(String topic, int partitions) {
    KafkaConsumer<byte[], byte[]> reader = consumer();
    List<RecordLine> lines = new ArrayList<>();
    for (int partition = 0; partition < partitions; partition++) {
      TopicPartition target = new TopicPartition(topic, partition);
      reader.assign(List.of(target));
      long end = reader.endOffsets(List.of(target)).get(target);
      reader.seek(target, 0);
      while (reader.position(target) < end) {
        lines.addAll(poll(reader));
      }
    }
    return lines;
  }

  private List<RecordLine> seek(String topic, List<String> points) {
    KafkaConsumer<byte[], byte[]> reader = consumer();
    List<RecordLine> found = new ArrayList<>();
    for (String point : points) {
      String[] fields = point.split("\t");
      TopicPartition target = new TopicPartition(topic, Integer.parseInt(fields[0]));
      Long offset = Long.parseLong(fields[2]);
      if (fields[1].equals("time")) {
        var answer = reader.offsetsForTimes(Map.of(target, offset)).get(target);
        offset = answer == null ? null : answer.offset();
      }
      if (offset == null) {
        found.add(null);
        continue;
      }
      reader.assign(List.of(target));
      reader.seek(target, offset);
      found.add(poll(reader).get(0));
    }
    return found;
  }

  private List<RecordLine> reset(String topic, long offset, String policy) {
    TopicPartition target = new TopicPartition(topic, 0);
    try (KafkaConsumer<byte[], byte[]> reader = open(policy)) {
      reader.assign(List.of(target));
      reader.seek(target, offset);
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
      while (System.nanoTime() < deadline) {
        for (ConsumerRecord<byte[], byte[]> record : reader.poll(Duration.ofMillis(200))) {
          return position(record.offset());
        }
        if (reader.position(target) != offset) {
          return position(reader.position(target));
        }
      }
    } catch (OffsetOutOfRangeException expected) {
      return Collections.singletonList(null);
    }
    throw new IllegalStateException("the position stays");
  }

  private static List<RecordLine> position(long offset) {
    return List.of(new RecordLine(0, offset, 0, null, null, List.of()));
  }

  private KafkaConsumer<byte[], byte[]> consumer() {
    if (consumer == null) {
      consumer = open("none");
    }
    return consumer;
  }

  private KafkaConsumer<byte[], byte[]> open(String policy) {
    return new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", policy,
        "enable.auto.commit", "false", "fetch.max.wait.ms", "100",
        "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class));
  }

  private static List<RecordLine> poll(KafkaConsumer<byte[], byte[]> reader) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
    while (System.nanoTime() < deadline) {
      List<RecordLine> lines = new ArrayList<>();
      for (ConsumerRecord<byte[], byte[]> record : reader.poll(Duration.ofMillis(500))) {
        lines.add(RecordLine.of(record));
      }
      if (!lines.isEmpty()) {
        return lines;
      }
    }
    throw new IllegalStateException("no record came");
  }
}
