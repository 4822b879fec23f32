// TCP. Private to runtime/asio.
#pragma once

#include "runtime/network.h"
#include "runtime/runtime.h"

namespace varve::runtime {

// Stateless but for the runtime, whose kResolve lane looks up names. Executors given must be AsioExecutors.
class AsioNetwork final : public Network {
 public:
  explicit AsioNetwork(Runtime& runtime) : runtime_(runtime) {}

  // Names are looked up in the call, which may block: listeners are made at start only.
  NetResult<std::unique_ptr<Listener>> listen(Executor& executor, const Address& address) override;
  Task<NetResult<std::unique_ptr<Stream>>> connect(Address address, MonotonicTime deadline) override;

 private:
  Runtime& runtime_;
};

}  // namespace varve::runtime
