import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A Connect sink that appends the values of its topics to a file, a line each. */
public final class FileSink extends SinkConnector {
  private Map<String, String> settings;

  @Override
  public void start(Map<String, String> given) {
    settings = given;
  }

  @Override
  public Class<? extends Task> taskClass() {
    return FileTask.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int maxTasks) {
    return List.of(settings);
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef().define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where they go");
  }

  @Override
  public String version() {
    return "1";
  }

  /** Writes what it is handed before it returns, so that nothing is left to flush. */
  public static final class FileTask extends SinkTask {
    private Path file;

    @Override
    public void start(Map<String, String> settings) {
      file = Path.of(settings.get("file"));
    }

    @Override
    public void put(Collection<SinkRecord> records) {
      StringBuilder lines = new StringBuilder();
      for (SinkRecord record : records) {
        lines.append(record.value()).append('\n');
      }
      try {
        Files.writeString(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      } catch (IOException failed) {
        throw new ConnectException(failed);
      }
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
      return "1";
    }
  }
}
