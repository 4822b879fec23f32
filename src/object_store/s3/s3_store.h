// S3Store: objects in a bucket of S3, or of a store that speaks its protocol.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "object_store/object_store.h"
#include "object_store/s3/s3_options.h"
#include "runtime/http/http_client.h"
#include "runtime/runtime.h"

namespace varve::object_store {

// One attempt a call: deadlines, retries and metering are decorators. What is asked of the store: strong consistency,
// conditional PUT (If-None-Match: *), ranged GET, ListObjectsV2, DeleteObjects.
//
// A PUT is signed over its head only (UNSIGNED-PAYLOAD), so that the payload is neither copied nor hashed; what keeps
// it whole is its CRC-32C, which the store compares (x-amz-checksum-crc32c).
//
// Life: construct, calls from tasks of any io executor, close() when they have ended, destroy; the runtime outlives it.
class S3Store final : public ObjectStore {
 public:
  // `connect` makes a connection to the endpoint, with TLS where it says so; for a bucket in the host's name,
  // host_name() is what a certificate has to be for.
  using Connect = decltype(runtime::http::ClientOptions::connect);
  S3Store(runtime::Runtime& runtime, s3::S3Options options, Connect connect);
  ~S3Store() override;

  // Of the connections to be made.
  static std::string host_name(const s3::S3Options& options);

  runtime::Task<StoreResult<void>> put(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<void>> put_if_absent(std::string key, std::vector<Slice> body) override;
  runtime::Task<StoreResult<Slice>> get(std::string key, std::optional<ByteRange> range) override;
  runtime::Task<StoreResult<ObjectInfo>> head(std::string key) override;
  runtime::Task<StoreResult<ListPage>> list(std::string prefix, std::string start_after,
                                            size_t max_keys) override;
  runtime::Task<StoreResult<std::vector<std::string>>> delete_many(std::vector<std::string> keys) override;

  runtime::Task<> close();

 private:
  // A request before it is signed.
  struct Request;
  using Answer = StoreResult<runtime::http::Message>;

  runtime::Task<StoreResult<void>> write(std::string key, std::vector<Slice> body, bool only_if_absent);
  // For a key that DeleteObjects cannot name.
  runtime::Task<StoreResult<void>> delete_one(std::string key);
  // Signs, sends, and makes an error of what is none of 200, 204 and 206.
  runtime::Task<Answer> send(Request request);
  runtime::http::ClientRequest signed_request(Request request) const;

  runtime::Runtime& runtime_;
  const s3::S3Options options_;
  // Of the requests' heads.
  const std::string host_;
  // Before a key: "/" or "/bucket/".
  const std::string path_prefix_;
  runtime::http::Client client_;
};

}  // namespace varve::object_store
