import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A Connect source that writes 0, 1, 2, ... to a topic and goes on where the worker's stored offset says. */
public final class NumberSource extends SourceConnector {
  private static final Map<String, String> PARTITION = Map.of("source", "numbers");

  private Map<String, String> settings;

  @Override
  public void start(Map<String, String> given) {
    settings = given;
  }

  @Override
  public Class<? extends Task> taskClass() {
    return NumberTask.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int maxTasks) {
    return List.of(settings);
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef().define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where they go");
  }

  @Override
  public String version() {
    return "1";
  }

  /** Ten numbers each tenth of a second. */
  public static final class NumberTask extends SourceTask {
    private String topic;
    private long next;

    @Override
    public void start(Map<String, String> settings) {
      topic = settings.get("topic");
      Map<String, Object> stored = context.offsetStorageReader().offset(PARTITION);
      next = stored == null ? 0 : (Long) stored.get("next");
    }

    @Override
    public List<SourceRecord> poll() throws InterruptedException {
      Thread.sleep(100);
      List<SourceRecord> records = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        String value = Long.toString(next++);
        records.add(new SourceRecord(PARTITION, Map.of("next", next), topic, Schema.STRING_SCHEMA, value));
      }
      return records;
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
      return "1";
    }
  }
}
