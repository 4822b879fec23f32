import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Streams application that counts words: BOOTSTRAP INPUT OUTPUT STATE-FOLDER.
 *
 * <p>It groups by word, so it needs a repartition topic and, for its counts, a compacted changelog topic, both of which
 * it makes itself. It ends at SIGTERM.
 */
public final class WordCount {
  public static void main(String[] arguments) throws InterruptedException {
    Properties settings = new Properties();
    settings.putAll(Map.of("application.id", "word-count", "bootstrap.servers", arguments[0],
        "state.dir", arguments[3], "commit.interval.ms", "200", "statestore.cache.max.bytes", "0",
        "consumer.session.timeout.ms", "6000", "consumer.heartbeat.interval.ms", "500",
        "consumer.auto.offset.reset", "earliest"));
    settings.put("default.key.serde", Serdes.StringSerde.class);
    settings.put("default.value.serde", Serdes.StringSerde.class);

    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream(arguments[1])
        .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(" ")))
        .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
        .count(Materialized.as("counts"))
        .toStream()
        .to(arguments[2], Produced.with(Serdes.String(), Serdes.Long()));

    CountDownLatch ended = new CountDownLatch(1);
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    streams.setStateListener((now, before) -> System.out.println("state " + now));
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      streams.close();
      ended.countDown();
    }));
    streams.start();
    ended.await();
  }
}
