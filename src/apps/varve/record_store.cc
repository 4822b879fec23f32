#include "apps/varve/record_store.h"

#include <fmt/format.h>

#include <utility>

#include "broker/data_folder.h"
#include "broker/s3_bucket.h"
#include "runtime/tls/tls_stream.h"

namespace varve::apps {
namespace {

using object_store::S3Store;
using runtime::NetResult;
using runtime::Stream;
using runtime::Task;

Task<NetResult<std::unique_ptr<Stream>>> connect_with_tls(runtime::Runtime* runtime, runtime::Address address,
                                                          runtime::TlsContext context, std::string host,
                                                          MonotonicTime deadline) {
  auto plain = co_await runtime->network().connect(std::move(address), deadline);
  if (!plain) co_return plain;
  co_return co_await runtime::tls_connect(std::move(context), std::move(*plain), std::move(host), deadline);
}

S3Store::Connect connect_to(runtime::Runtime& runtime, const RecordPlace& place) {
  std::string host = S3Store::host_name(*place.bucket);
  runtime::Address address{host, place.bucket->endpoint.port};
  if (!place.tls) {
    return
        [&runtime, address](MonotonicTime deadline) { return runtime.network().connect(address, deadline); };
  }
  return [&runtime, address, context = *place.tls, host](MonotonicTime deadline) {
    return connect_with_tls(&runtime, address, context, host, deadline);
  };
}

}  // namespace

Result<RecordPlace, std::string> record_place_of(const broker::Settings& settings) {
  RecordPlace place;
  place.name = settings.data_folder;
  place.folder = broker::store_options_in(settings.data_folder, settings.key_namespace);
  if (settings.s3.bucket.empty()) return place;
  auto options = broker::s3_options_of(settings);
  if (!options) return std::unexpected(options.error().to_string());
  if (options->endpoint.is_tls) {
    auto context = runtime::TlsContext::client_of_system();
    if (!context) return std::unexpected(std::move(context.error().message));
    place.tls = std::move(*context);
  }
  place.name = fmt::format("bucket {} at {}://{}", options->bucket,
                           options->endpoint.is_tls ? "https" : "http", options->endpoint.authority());
  place.bucket = std::move(*options);
  return place;
}

RecordStore::RecordStore(runtime::Runtime& runtime, RecordPlace place) : name_(place.name) {
  if (place.bucket) {
    S3Store::Connect connect = connect_to(runtime, place);
    bucket_ = std::make_unique<S3Store>(runtime, std::move(*place.bucket), std::move(connect));
  } else {
    folder_ = std::make_unique<object_store::FolderStore>(runtime, std::move(place.folder));
  }
}

object_store::ObjectStore& RecordStore::store() {
  if (bucket_) return *bucket_;
  return *folder_;
}

Task<Result<void, std::string>> RecordStore::open() {
  using Opened = Result<void, std::string>;
  if (!folder_) co_return Opened();
  auto opened = co_await folder_->open();
  if (!opened) co_return Opened(std::unexpected(std::move(opened.error().message)));
  co_return Opened();
}

Task<> RecordStore::close() {
  if (bucket_) co_await bucket_->close();
}

}  // namespace varve::apps
