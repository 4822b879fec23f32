// A whole broker on the real runtime, used from many threads at once: what ThreadSanitizer looks at. The simulator
// explores schedules, but on one thread.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "broker/broker.h"
#include "broker/data_folder.h"
#include "broker/server/test_socket.h"
#include "metadata/log/sqlite/sqlite_log.h"
#include "object_store/fs/folder_store.h"
#include "protocol/frame.h"
#include "protocol/message_codec.h"
#include "protocol/records/record_iterator.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/temporary_folder_testing.h"
#include "sim/requests.h"

namespace varve::apps {
namespace {

using broker::TestSocket;
using protocol::ErrorCode;

constexpr int32_t kPartitions = 4;
constexpr size_t kProducers = 4;
constexpr size_t kRequestsPerProducer = 150;
constexpr size_t kRequestsInFlight = 5;

// A Kafka connection of one thread.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(port) { EXPECT_TRUE(socket_.is_connected()); }

  template <class Request>
  int32_t post(Request request, int16_t version) {
    EXPECT_TRUE(socket_.send(protocol::request_frame(request, version, ++last_id_, "threads")));
    return last_id_;
  }
  template <class Request>
  typename Request::Response expect(int32_t id, int16_t version) {
    auto frame = socket_.receive_frame();
    EXPECT_TRUE(frame) << "the connection was closed";
    if (!frame) return {};
    auto body = protocol::parse_response(Slice::take(std::move(*frame)), protocol::api_info(Request::kApiKey),
                                         version, id);
    EXPECT_TRUE(body);
    auto response = protocol::decode_message<typename Request::Response>(*body, version);
    EXPECT_TRUE(response);
    return std::move(*response);
  }
  template <class Request>
  typename Request::Response ask(Request request, int16_t version) {
    return expect<Request>(post(std::move(request), version), version);
  }

 private:
  TestSocket socket_;
  int32_t last_id_ = 0;
};

class BrokerThreads : public ::testing::Test {
 protected:
  BrokerThreads() {
    settings_.broker_id = BrokerId(1);
    settings_.advertised = {"127.0.0.1", 0};
    settings_.kafka_address = {"127.0.0.1", 0};
    settings_.http_address = {"127.0.0.1", 0};
    settings_.allow_admin_apis = true;
    settings_.limits.cache_bytes_max = 256 * kKiB;  // so small that readers need the store too
    settings_.snapshot_after_bytes = 20'000;
    store_.emplace(runtime_, broker::store_options_in(folder_.path(), settings_.key_namespace));
    log_.emplace(runtime_, broker::log_options_in(folder_.path()));
    // Snapshots and fences often, so that maintenance runs beside the clients.
    broker_.emplace(broker::BrokerWorld{.runtime = runtime_,
                                        .store = *store_,
                                        .log = *log_,
                                        .commit_interval = 5ms,
                                        .fence_interval = 300ms,
                                        .snapshot_after_time = 1s},
                    settings_, Logger(), metrics_);
    run(start());
  }
  ~BrokerThreads() override {
    run(stop());
    runtime_.stop();
    broker_.reset();
    log_.reset();
    store_.reset();
  }

  void run(runtime::Task<> task) { runtime::run_blocking(runtime_.io(0), std::move(task)); }
  runtime::Task<> start() {
    auto opened = co_await store_->open();
    CHECK(opened, "{}", opened.error().message);
    auto started = co_await broker_->start();
    CHECK(started, "{}", started.error().message);
  }
  runtime::Task<> stop() {
    co_await broker_->stop();
    co_await log_->close();
  }
  uint16_t port() const { return broker_->kafka_address().port; }

  void create(const std::string& topic) {
    Client client(port());
    auto reply = client.ask(sim::create_request(topic, kPartitions), 7);
    ASSERT_EQ(reply.topics.at(0).error_code, ErrorCode::kNone);
  }
  // Plain batches of one record, some in flight; partition p has this producer's values in the order sent.
  void produce(size_t number) {
    Client client(port());
    std::vector<int32_t> sent;
    for (size_t i = 0; i < kRequestsPerProducer + kRequestsInFlight; ++i) {
      if (i < kRequestsPerProducer) {
        auto partition = static_cast<int32_t>(i % kPartitions);
        std::string value = fmt::format("{} {}", number, i);
        value.resize(value.size() + 2'000, '.');
        sent.push_back(client.post(sim::produce_request("shared", {{partition, sim::make_batch(value)}}), 9));
      }
      if (i < kRequestsInFlight) continue;
      auto reply = client.expect<protocol::ProduceRequest>(sent[i - kRequestsInFlight], 9);
      EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    }
  }
  // Reads the partition from its start until it has `wanted` records; checks the order of each producer's.
  void consume(int32_t partition, size_t wanted) {
    Client client(port());
    std::array<int64_t, kProducers> last;
    last.fill(-1);
    int64_t offset = 0;
    while (static_cast<size_t>(offset) < wanted && !HasFailure()) {
      sim::FetchSpec spec;
      spec.partitions = {{partition, offset}};
      spec.max_wait_ms = 200;
      spec.partition_bytes = 20'000;
      auto reply = client.ask(sim::fetch_request("shared", Uuid{}, spec), 11);
      const auto& row = reply.responses.at(0).partitions.at(0);
      ASSERT_EQ(row.error_code, ErrorCode::kNone);
      if (!row.records) continue;
      offset = check_records(row.records->joined(), offset, last);
    }
  }
  // Gives the offset after the last record.
  static int64_t check_records(const Slice& bytes, int64_t offset, std::array<int64_t, kProducers>& last) {
    protocol::records::DecodeScratch scratch;
    for (ByteView rest = bytes.view(); !rest.empty();) {
      auto batch = protocol::records::BatchView::first_of(rest);
      if (!batch) break;  // cut off at the limit
      EXPECT_TRUE(batch->checksum_matches());
      EXPECT_EQ(batch->header().base_offset.value(), offset++);
      auto record = protocol::records::RecordIterator(*batch, scratch, 1 * kMiB).next();
      EXPECT_TRUE(record && *record);
      if (!record || !*record) break;
      std::string value(as_text(*(*record)->value));
      size_t producer = std::stoul(value);
      int64_t number = std::stoll(value.substr(value.find(' ')));
      EXPECT_LT(last.at(producer), number);
      last[producer] = number;
      rest = rest.subspan(batch->bytes().size());
    }
    return offset;
  }
  // Topics that come and go, and with them dead objects.
  void churn(size_t rounds) {
    Client client(port());
    for (size_t i = 0; i < rounds; ++i) {
      std::string topic = fmt::format("short-lived-{}", i % 3);
      auto made = client.ask(sim::create_request(topic, kPartitions), 7);
      EXPECT_EQ(made.topics.at(0).error_code, ErrorCode::kNone);
      auto written =
          client.ask(sim::produce_request(topic, {{0, sim::make_batch("v")}, {3, sim::make_batch("v")}}), 9);
      EXPECT_EQ(written.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
      auto deleted = client.ask(sim::delete_request(topic), 5);
      EXPECT_EQ(deleted.responses.at(0).error_code, ErrorCode::kNone);
    }
  }
  // Everything that counts, as a monitoring system reads it.
  void scrape(const std::atomic<bool>& is_over) {
    while (!is_over) {
      TestSocket socket(broker_->http_address().port);
      socket.send(as_bytes("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
      EXPECT_EQ(socket.receive(12),
                std::vector<uint8_t>({'H', 'T', 'T', 'P', '/', '1', '.', '1', ' ', '2', '0', '0'}));
      std::this_thread::sleep_for(20ms);
    }
  }

  runtime::TemporaryFolder folder_;
  runtime::AsioRuntime runtime_{{.io_threads = 3, .disk_threads = 2}};
  broker::Settings settings_ = broker::default_settings();
  MetricRegistry metrics_;
  std::optional<object_store::FolderStore> store_;
  std::optional<metadata::SqliteLog> log_;
  std::optional<broker::Broker> broker_;
};

TEST_F(BrokerThreads, ProducersConsumersTopicsAndScrapesGoOnSideBySide) {
  create("shared");
  std::atomic<bool> is_over = false;
  std::jthread scraper([&] { scrape(is_over); });
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kProducers; ++i) threads.emplace_back([this, i] { produce(i); });
    // Partition p gets every kPartitions-th record of each producer.
    for (int32_t p = 0; p < kPartitions; ++p) {
      size_t of_each = (kRequestsPerProducer - static_cast<size_t>(p) + kPartitions - 1) / kPartitions;
      threads.emplace_back([this, p, of_each] { consume(p, kProducers * of_each); });
    }
    threads.emplace_back([this] { churn(20); });
  }
  is_over = true;
}

}  // namespace
}  // namespace varve::apps
