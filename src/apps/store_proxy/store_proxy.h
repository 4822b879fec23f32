// StoreProxy: stands between a broker and its object store, counts what is asked, and makes it slow or wrong. For tests
// and measurements: what it does to a request is drawn at random, with latencies as S3 has them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "apps/store_proxy/disturbance.h"
#include "runtime/http/http_client.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::apps {

struct StoreProxyOptions {
  runtime::Address listen;
  runtime::Address store;  // plain HTTP
  Disturbance disturbance{};
  uint64_t seed = 1;
};

// Requests are read whole, and handed on with their heads as they are, so that signatures hold; a body lies in memory
// once. Of two targets the proxy is the server itself:
//   GET  /_proxy/counts           {"put": 3, "get": 1, ..., "bytes_put": 12345, "bytes_got": 99}
//   POST /_proxy/set?name=value   what Disturbance::set() takes; 400 says what is wrong
// Life: construct, start() on io(0), stop() from a task, destroy. The runtime outlives it.
class StoreProxy {
 public:
  StoreProxy(runtime::Runtime& runtime, StoreProxyOptions options);
  ~StoreProxy();

  runtime::NetResult<void> start();
  const runtime::Address& local() const { return listener_->local(); }
  runtime::Task<> stop();

 private:
  using Message = runtime::http::Message;

  runtime::Task<> accept();
  runtime::Task<> serve(std::unique_ptr<runtime::Stream> stream);
  // False: the connection ends.
  runtime::Task<bool> answer(runtime::Stream& stream, Message request);
  // Of the proxy's own targets.
  std::string own_answer(const Message& request);
  // Of the store; 502 where it gives none.
  runtime::Task<Message> forward(Message request);
  void count(RequestKind kind, uint64_t bytes_put, uint64_t bytes_got);

  runtime::Runtime& runtime_;
  const StoreProxyOptions options_;
  std::unique_ptr<runtime::Listener> listener_;
  runtime::http::Client client_;
  size_t next_executor_ = 0;

  std::mutex mutex_;
  Disturbance disturbance_;
  Random random_;
  std::map<RequestKind, uint64_t> counts_;
  uint64_t bytes_put_ = 0;
  uint64_t bytes_got_ = 0;

  runtime::TaskScope scope_;
};

}  // namespace varve::apps
