#include "apps/group_load/group_load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "apps/group_load/member.h"
#include "protocol/messages/create_topics.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/metadata.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/task_scope.h"

namespace varve::apps {
namespace {

using client::ClientResult;
using client::Connection;
using protocol::ErrorCode;
using runtime::Task;

constexpr std::string_view kTopic = "group-load";
constexpr int16_t kCreateVersion = 7;
constexpr int16_t kFindVersion = 4;
constexpr int16_t kMetadataVersion = 12;
constexpr Duration kCallTimeout = 60s;

// Processor time that the process has used so far; 0 if it is not there.
double cpu_seconds(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text(std::istreambuf_iterator<char>(file), {});
  // The name of the program, in brackets, may have blanks.
  size_t name_end = text.rfind(')');
  if (pid == 0 || name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user_ticks = 0;
  double system_ticks = 0;
  fields >> user_ticks >> system_ticks;
  return (user_ticks + system_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Times of the requests of one phase.
class Phase {
 public:
  Phase(std::string_view name, MonotonicTime begin, int64_t broker_pid)
      : name_(name), begin_(begin), broker_pid_(broker_pid), cpu_before_(cpu_seconds(broker_pid)) {}

  void add(Duration taken, const ClientResult<void>& result) {
    times_.push_back(taken);
    if (result) return;
    ++errors_;
    if (!first_error_) first_error_ = result.error();
  }
  // The first error, if there was one.
  ClientResult<void> report(MonotonicTime end) {
    std::ranges::sort(times_);
    double seconds = std::chrono::duration<double>(end - begin_).count();
    double cpu = cpu_seconds(broker_pid_) - cpu_before_;
    fmt::print(
        "phase=\"{}\" seconds={:.2f} requests={} errors={} per_second={:.1f} p50_ms={:.3f} p99_ms={:.3f} "
        "broker_cpu_seconds={:.2f}\n",
        name_, seconds, times_.size(), errors_, static_cast<double>(times_.size()) / seconds, at(0.5),
        at(0.99), cpu);
    std::fflush(stdout);
    if (first_error_) return std::unexpected(*first_error_);
    return {};
  }

 private:
  double at(double part) const {
    if (times_.empty()) return 0;
    size_t place = static_cast<size_t>(part * static_cast<double>(times_.size() - 1));
    return std::chrono::duration<double, std::milli>(times_[place]).count();
  }

  const std::string name_;
  const MonotonicTime begin_;
  const int64_t broker_pid_;
  const double cpu_before_;
  std::vector<Duration> times_;
  uint64_t errors_ = 0;
  std::optional<client::ClientError> first_error_;
};

// Tasks that are waited for without being asked to stop. On one executor: all are begun by one of its tasks at a stretch.
class Crowd {
 public:
  explicit Crowd(runtime::Executor& executor) : executor_(executor) {}
  void add(std::string name, Task<> task) {
    ++running_;
    scope_.spawn(executor_, std::move(name), run(std::move(task)));
  }
  Task<> wait() {
    if (running_ > 0) co_await done_.wait();
    co_await scope_.close();
  }

 private:
  Task<> run(Task<> task) {
    co_await std::move(task);
    if (--running_ == 0) done_.set(runtime::Done{});
  }

  runtime::Executor& executor_;
  size_t running_ = 0;
  runtime::Completion<runtime::Done> done_;
  runtime::TaskScope scope_;
};

using Action = Task<ClientResult<void>> (Member::*)();

// Everything runs on one executor.
class Load {
 public:
  Load(runtime::Runtime& runtime, const GroupLoadOptions& options)
      : runtime_(runtime), executor_(runtime.io(0)), options_(options) {}

  Task<ClientResult<void>> run() {
    auto result = co_await prepare();
    const std::array works = {
        Work{"join and sync, all groups at once", &Load::join_all},
        Work{"heartbeats and commits at clients' pace", &Load::pace_all},
        Work{"heartbeats without pause", &Load::heartbeat_without_pause},
        Work{"commits without pause", &Load::commit_without_pause},
    };
    for (size_t i = 0; result && i < works.size(); ++i) result = co_await measure(works[i]);
    for (const auto& connection : connections_) connection->close();
    co_await connections_scope_.close();
    co_return result;
  }

 private:
  struct Work {
    std::string_view name;
    Task<> (Load::*run)();
  };

  Task<ClientResult<std::shared_ptr<Connection>>> connect() {
    auto stream =
        co_await runtime_.network().connect({options_.host, options_.port}, executor_.now() + kCallTimeout);
    if (!stream) co_return client::failed(client::ClientErrc::kDisconnected, stream.error().message);
    co_return Connection::open(executor_, connections_scope_, std::move(*stream),
                               {.client_id = "group-load"});
  }

  Task<ClientResult<void>> prepare() {
    auto first = co_await connect();
    if (!first) co_return pass_error(first);
    auto has_topic = co_await make_topic(*first);
    if (!has_topic) co_return has_topic;
    // Apache Kafka makes its topic of groups when it is first asked for a coordinator.
    protocol::FindCoordinatorRequest find;
    find.coordinator_keys = {"group-load-0"};
    auto found = co_await Connection::ask(*first, std::move(find), kFindVersion, deadline());
    if (!found) co_return pass_error(found);
    (*first)->close();
    size_t wanted = size_t{options_.groups} * options_.members;
    for (size_t i = 0; i < wanted; ++i) {
      auto connection = co_await connect();
      // One that is not let in is closed at once.
      if (connection) {
        auto let_in = co_await Connection::negotiate(*connection, deadline());
        if (!let_in) connection = pass_error(let_in);
      }
      if (!connection) co_return not_let_in(i, wanted, connection.error());
      members_.push_back(std::make_unique<Member>(
          executor_, fmt::format("group-load-{}", i / options_.members), std::string(kTopic), *connection));
      connections_.push_back(std::move(*connection));
    }
    co_return ClientResult<void>();
  }

  // With a partition for each member of a group.
  Task<ClientResult<void>> make_topic(std::shared_ptr<Connection> connection) {
    protocol::CreateTopicsRequest create;
    auto& topic = create.topics.emplace_back();
    topic.name = kTopic;
    topic.num_partitions = static_cast<int32_t>(options_.members);
    topic.replication_factor = 1;
    auto created = co_await Connection::ask(connection, std::move(create), kCreateVersion, deadline());
    if (!created) co_return pass_error(created);
    ErrorCode code = created->topics.at(0).error_code;
    if (code == ErrorCode::kNone) co_return ClientResult<void>();
    if (code != ErrorCode::kTopicAlreadyExists) co_return client::refused(code, "CreateTopics");
    protocol::MetadataRequest look;
    look.topics.emplace();
    look.topics->emplace_back().name = kTopic;
    auto found = co_await Connection::ask(connection, std::move(look), kMetadataVersion, deadline());
    if (!found) co_return pass_error(found);
    size_t partitions = found->topics.at(0).partitions.size();
    if (partitions >= options_.members) co_return ClientResult<void>();
    client::ClientError error{client::ClientErrc::kRefused, ErrorCode::kInvalidPartitions, {}};
    error.message = fmt::format(
        "topic '{}' is there with {} partitions, and {} members of a group need one each: delete it", kTopic,
        partitions, options_.members);
    co_return std::unexpected(std::move(error));
  }

  static std::unexpected<client::ClientError> not_let_in(size_t number, size_t wanted,
                                                         client::ClientError error) {
    error.message = fmt::format("connection {} of {}: {}; {}", number + 1, wanted, error.message, kNeeds);
    return std::unexpected(std::move(error));
  }
  MonotonicTime deadline() const { return executor_.now() + kCallTimeout; }

  Task<ClientResult<void>> measure(Work work) {
    phase_.emplace(work.name, executor_.now(), options_.broker_pid);
    co_await (this->*work.run)();
    co_return phase_->report(executor_.now());
  }
  MonotonicTime phase_end() const { return executor_.now() + std::chrono::seconds(options_.seconds); }

  Task<> act(Member& member, Action action) {
    MonotonicTime begin = executor_.now();
    ClientResult<void> result = co_await (member.*action)();
    phase_->add(executor_.now() - begin, result);
  }

  Task<> join_all() {
    Crowd crowd(executor_);
    for (auto& member : members_) crowd.add("join", act(*member, &Member::join));
    co_await crowd.wait();
  }

  // The first time somewhere in the interval, so that members do not go in step.
  Task<> act_every(Member& member, Action action, Duration interval, size_t place, MonotonicTime end) {
    MonotonicTime next = executor_.now() + interval * place / members_.size();
    for (; next < end; next = next + interval) {
      co_await runtime::sleep_until(next);
      co_await act(member, action);
    }
  }
  Task<> pace_all() {
    MonotonicTime end = phase_end();
    Crowd crowd(executor_);
    for (size_t i = 0; i < members_.size(); ++i) {
      crowd.add("heartbeats", act_every(*members_[i], &Member::heartbeat,
                                        std::chrono::milliseconds(options_.heartbeat_ms), i, end));
      crowd.add("commits", act_every(*members_[i], &Member::commit,
                                     std::chrono::milliseconds(options_.commit_ms), i, end));
    }
    co_await crowd.wait();
  }

  Task<> act_in_turn(Action action, size_t first, MonotonicTime end) {
    for (size_t i = first; executor_.now() < end; i = (i + options_.in_flight) % members_.size()) {
      co_await act(*members_[i], action);
    }
  }
  Task<> act_without_pause(Action action) {
    MonotonicTime end = phase_end();
    Crowd crowd(executor_);
    for (size_t i = 0; i < options_.in_flight; ++i) {
      crowd.add("in turn", act_in_turn(action, i % members_.size(), end));
    }
    co_await crowd.wait();
  }
  Task<> heartbeat_without_pause() { return act_without_pause(&Member::heartbeat); }
  Task<> commit_without_pause() { return act_without_pause(&Member::commit); }

  runtime::Runtime& runtime_;
  runtime::Executor& executor_;
  const GroupLoadOptions options_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Member>> members_;
  std::optional<Phase> phase_;
  runtime::TaskScope connections_scope_;
};

}  // namespace

Task<ClientResult<void>> load_groups(runtime::Runtime& runtime, const GroupLoadOptions& options) {
  Load load(runtime, options);
  co_return co_await load.run();
}

int run_group_load(const GroupLoadOptions& options) {
  runtime::AsioRuntime runtime({.io_threads = 1, .disk_threads = 1});
  auto done = runtime::run_blocking(runtime.io(0), load_groups(runtime, options));
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return done ? 0 : 1;
}

}  // namespace varve::apps
