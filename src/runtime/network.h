// Byte streams between hosts. Addresses are given as numbers or names; names are looked up in Lane::kResolve.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/task.h"

namespace varve::runtime {

enum class NetErrc : uint8_t {
  kClosed,        // by close() here, or the task was asked to stop
  kReset,         // by the other side or the network
  kRefused,       // nobody listens there
  kTimeout,       // deadline passed
  kAddressInUse,  // listen() only
  kBadAddress,    // cannot be parsed or looked up
  kNoResources,   // out of descriptors or memory
  kUntrusted,     // TLS only: the other side does not prove who it is, or speaks no TLS that is safe
};
using NetError = ErrorOf<NetErrc>;
template <class T>
using NetResult = Result<T, NetError>;

struct Address {
  std::string host;  // "127.0.0.1", "::1" or a name; "" means every interface (listen only)
  uint16_t port = 0;

  auto operator<=>(const Address&) const = default;
  std::string to_string() const;
};

// One connection. Belongs to one executor: all calls, and the destructor, happen there. One read and one write
// may be under way at a time. Destroying it closes it; no operation may be pending then.
class Stream {
 public:
  virtual ~Stream() = default;

  // At least one byte, or 0 at the end of the stream.
  virtual Task<NetResult<size_t>> read_some(MutableByteView into) = 0;
  // All bytes of all slices, in order, with as few system calls as can be. The slices' bytes must stay until
  // it returns; the span is copied if it is kept.
  virtual Task<NetResult<void>> write(std::span<const ByteView> slices) = 0;
  // Ends both directions; pending operations return kClosed soon.
  virtual void close() = 0;
  virtual const Address& peer() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;

  // The next connection, to be served on `executor` (streams belong to it from the start).
  virtual Task<NetResult<std::unique_ptr<Stream>>> accept(Executor& executor) = 0;
  // Pending accept() returns kClosed soon.
  virtual void close() = 0;
  // The address bound; the port is the real one where 0 was asked for.
  virtual const Address& local() const = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  // On the executor that will call accept().
  virtual NetResult<std::unique_ptr<Listener>> listen(Executor& executor, const Address& address) = 0;
  // Connects on the calling task's executor.
  virtual Task<NetResult<std::unique_ptr<Stream>>> connect(Address address, MonotonicTime deadline) = 0;
};

}  // namespace varve::runtime
