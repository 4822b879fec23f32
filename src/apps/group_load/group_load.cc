#include "apps/group_load/group_load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "apps/group_load/member.h"
#include "protocol/messages/create_topics.h"
#include "protocol/messages/find_coordinator.h"
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
    if (first_error_.empty()) first_error_ = result.error().message;
  }
  // False: there were errors.
  bool report(MonotonicTime end) {
    std::ranges::sort(times_);
    double seconds = std::chrono::duration<double>(end - begin_).count();
    double cpu = cpu_seconds(broker_pid_) - cpu_before_;
    fmt::print(
        "phase=\"{}\" seconds={:.2f} requests={} errors={} per_second={:.1f} p50_ms={:.3f} p99_ms={:.3f} "
        "broker_cpu_seconds={:.2f}\n",
        name_, seconds, times_.size(), errors_, static_cast<double>(times_.size()) / seconds, at(0.5),
        at(0.99), cpu);
    if (errors_ > 0) fmt::print("first error: {}\n", first_error_);
    std::fflush(stdout);
    return errors_ == 0;
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
  std::string first_error_;
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

  Task<bool> run() {
    auto prepared = co_await prepare();
    if (!prepared) {
      fmt::print("cannot begin: {}\n", prepared.error().message);
      co_await close();
      co_return false;
    }
    bool is_clean = true;
    is_clean &= co_await measure("join and sync, all groups at once", &Load::join_all);
    is_clean &= co_await measure("heartbeats and commits at clients' pace", &Load::pace_all);
    is_clean &= co_await measure("heartbeats without pause", &Load::heartbeat_without_pause);
    is_clean &= co_await measure("commits without pause", &Load::commit_without_pause);
    co_await close();
    co_return is_clean;
  }

 private:
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
    protocol::CreateTopicsRequest create;
    auto& topic = create.topics.emplace_back();
    topic.name = kTopic;
    topic.num_partitions = static_cast<int32_t>(options_.members);
    topic.replication_factor = 1;
    auto created =
        co_await Connection::ask(*first, std::move(create), kCreateVersion, executor_.now() + kCallTimeout);
    if (!created) co_return pass_error(created);
    ErrorCode code = created->topics.at(0).error_code;
    if (code != ErrorCode::kNone && code != ErrorCode::kTopicAlreadyExists) {
      co_return client::refused(code, "CreateTopics");
    }
    // Apache Kafka makes its topic of groups when it is first asked for a coordinator.
    protocol::FindCoordinatorRequest find;
    find.coordinator_keys = {"group-load-0"};
    auto found =
        co_await Connection::ask(*first, std::move(find), kFindVersion, executor_.now() + kCallTimeout);
    if (!found) co_return pass_error(found);
    (*first)->close();
    for (uint32_t group = 0; group < options_.groups; ++group) {
      for (uint32_t i = 0; i < options_.members; ++i) {
        auto connection = co_await connect();
        if (!connection) co_return pass_error(connection);
        connections_.push_back(*connection);
        members_.push_back(std::make_unique<Member>(executor_, fmt::format("group-load-{}", group),
                                                    std::string(kTopic), std::move(*connection)));
      }
    }
    co_return ClientResult<void>();
  }

  Task<> close() {
    for (const auto& connection : connections_) connection->close();
    connections_scope_.request_stop();
    co_await connections_scope_.close();
  }

  Task<bool> measure(std::string_view name, Task<> (Load::*work)()) {
    phase_.emplace(name, executor_.now(), options_.broker_pid);
    co_await (this->*work)();
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

int run_group_load(const GroupLoadOptions& options) {
  runtime::AsioRuntime runtime({.io_threads = 1, .disk_threads = 1});
  Load load(runtime, options);
  return runtime::run_blocking(runtime.io(0), load.run()) ? 0 : 1;
}

}  // namespace varve::apps
