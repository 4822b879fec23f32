// TlsEngine: the TLS side of one connection, between two buffers in memory. It waits for nothing and does no I/O: its
// owner brings what the network gave and takes away what the network is to get. Private to runtime/tls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "runtime/network.h"
#include "runtime/tls/openssl_handles.h"
#include "runtime/tls/tls_context.h"

namespace varve::runtime {

// Life: as long as its stream. One executor.
// OpenSSL reads the host's clock and random numbers by itself: a simulated run with TLS in it takes the same steps
// again only as far as lengths go, and certificates are held against the real date.
class TlsEngine {
 public:
  // What one TLS record holds at most.
  static constexpr size_t kRecordBytesMax = 16 * 1024;

  enum class Step : uint8_t {
    kDone,
    kNeedsInput,  // call again after add_input(); all input so far is used up
    kEnd,         // of what the other side sends, as it says itself
    kFailed,      // error() says why; for good
  };

  // For the server called `host`, a name or an IP number. kBadAddress: neither.
  static NetResult<std::unique_ptr<TlsEngine>> client(TlsContext context, const std::string& host);
  // For a client, which sentences will call `peer`.
  static NetResult<std::unique_ptr<TlsEngine>> server(TlsContext context, std::string peer);
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;

  // Until kDone, before all else. An end here is a failure.
  Step handshake();
  // Fills as much of `into` as there is; `got` is above 0 if kDone.
  Step read(MutableByteView into, size_t& got);
  // One record of 1 to kRecordBytesMax bytes. After kNeedsInput again with the same bytes. An end
  // is no matter of writing: never kEnd.
  Step write(ByteView record);
  // Tells the other side that no more will come; after a failure, or before the handshake is done, nothing.
  void end();

  // After kNeedsInput: where to put what the network gives next, and that it is there.
  MutableByteView input_room();
  void add_input(size_t size);
  // Of all its life.
  uint64_t input_bytes() const { return input_bytes_; }
  // What the network is to get. The owner takes from it as it likes.
  std::vector<uint8_t>& output() { return output_; }

  const std::string& peer() const { return peer_; }
  // Only after kFailed.
  const NetError& error() const { return error_; }

 private:
  friend class TlsContext;
  struct Transport;  // OpenSSL's calls to the buffers

  TlsEngine(TlsContext context, std::string peer) : context_(std::move(context)), peer_(std::move(peer)) {}

  // To be freed by BIO_meth_free; null: out of memory.
  static BIO_METHOD* make_transport();
  static NetResult<std::unique_ptr<TlsEngine>> make(TlsContext context, std::string peer);
  bool expect_host(const std::string& host);
  Step step_after(int result);
  Step fail_with(NetError error);
  NetError failure();

  TlsContext context_;
  std::string peer_;
  SslHandle ssl_;
  // Of input_, what OpenSSL has not taken yet.
  std::vector<uint8_t> input_;
  size_t input_begin_ = 0;
  size_t input_end_ = 0;
  uint64_t input_bytes_ = 0;
  std::vector<uint8_t> output_;
  std::string untrusted_;  // why the certificate is not trusted
  NetError error_{};
  bool is_ready_ = false;  // the handshake is done
  bool has_failed_ = false;
};

}  // namespace varve::runtime
