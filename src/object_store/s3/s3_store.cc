#include "object_store/s3/s3_store.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/crc32c.h"
#include "object_store/s3/s3_answers.h"
#include "object_store/s3/sigv4.h"

namespace varve::object_store {

using runtime::Task;
using runtime::http::ClientErrc;
using runtime::http::ClientRequest;
using runtime::http::Message;

namespace {

constexpr size_t kKeysMax = 1000;
// Beside an object: for the document of an error.
constexpr uint64_t kDocumentBytesMax = uint64_t{64} << 10;
// A page of 1,000 keys of 1,024 bytes, each encoded as three letters, and what stands around them.
constexpr uint64_t kListBytesMax = uint64_t{8} << 20;

std::string base64(ByteView bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                             static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

std::string base64_crc(const std::vector<Slice>& body) {
  uint32_t crc = 0;
  for (const Slice& slice : body) crc = crc32c_extend(crc, slice.view());
  std::array<uint8_t, 4> bytes;
  store_be(bytes.data(), crc);
  return base64(bytes);
}

// What DeleteObjects has to bear, by all stores' rules.
std::string base64_md5(ByteView bytes) {
  std::array<uint8_t, 16> digest;
  unsigned size = 0;
  int done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr);
  CHECK(done == 1 && size == digest.size(), "OpenSSL has no MD5");
  return base64(digest);
}

// Of an HTTP range, both ends included. Some stores keep ends in 64 bits with a sign.
std::string range_text(ByteRange range) {
  bool has_end = range.size != 0 && range.size <= INT64_MAX && range.offset <= INT64_MAX - range.size;
  if (!has_end) return fmt::format("bytes={}-", range.offset);
  return fmt::format("bytes={}-{}", range.offset, range.offset + range.size - 1);
}

StoreError error_of(runtime::http::ClientError error, std::string_view what) {
  std::string message = fmt::format("{}: {}", what, error.message);
  switch (error.code) {
    case ClientErrc::kStopped:
      return {StoreErrc::kTimeout, std::move(message)};
    case ClientErrc::kBadAnswer:
      return {StoreErrc::kCorrupt, std::move(message)};
    case ClientErrc::kUnreachable:
    case ClientErrc::kLost:
      break;
  }
  return {StoreErrc::kUnavailable, std::move(message)};
}

}  // namespace

struct S3Store::Request {
  std::string method;
  std::string key{};  // "": of the bucket itself
  s3::NameValues query{};
  s3::NameValues headers{};  // beside those of every request; names in lower case
  std::string payload = std::string(s3::kUnsignedPayload);
  std::vector<Slice> body{};
  uint64_t answer_bytes_max = kDocumentBytesMax;

  std::string what() const {
    std::string name = method;
    if (!key.empty()) name += ' ' + key;
    return name;
  }
};

S3Store::S3Store(runtime::Runtime& runtime, s3::S3Options options, Connect connect)
    : runtime_(runtime),
      options_(std::move(options)),
      host_(s3::Endpoint{options_.endpoint.is_tls, host_name(options_), options_.endpoint.port}.authority()),
      path_prefix_(options_.path_style ? '/' + s3::uri_encoded(options_.bucket, false) + '/' : "/"),
      client_(runtime, {.connect = std::move(connect)}) {}

S3Store::~S3Store() = default;

std::string S3Store::host_name(const s3::S3Options& options) {
  return options.path_style ? options.endpoint.host : options.bucket + '.' + options.endpoint.host;
}

Task<> S3Store::close() { return client_.close(); }

ClientRequest S3Store::signed_request(Request request) const {
  std::string date = s3::amz_date(runtime_.wall_now());
  s3::Signable signable;
  signable.method = request.method;
  signable.path = path_prefix_ + s3::uri_encoded(request.key, true);
  signable.query = std::move(request.query);
  signable.headers = std::move(request.headers);
  signable.headers.emplace_back("host", host_);
  signable.headers.emplace_back("x-amz-content-sha256", request.payload);
  signable.headers.emplace_back("x-amz-date", date);
  const s3::Credentials& credentials = options_.credentials;
  if (!credentials.session_token.empty()) {
    signable.headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  signable.payload = std::move(request.payload);

  ClientRequest ready;
  ready.method = std::move(request.method);
  std::string query = s3::encoded_query(signable.query);
  ready.target = query.empty() ? signable.path : signable.path + '?' + query;
  for (const auto& [name, value] : signable.headers) ready.headers.push_back({name, value});
  ready.headers.push_back({"authorization", authorization(signable, credentials, options_.region, date)});
  ready.body = std::move(request.body);
  ready.answer_bytes_max = request.answer_bytes_max;
  return ready;
}

Task<S3Store::Answer> S3Store::send(Request request) {
  runtime::TaskContext& context = co_await runtime::this_context();
  std::string what = request.what();
  if (context.stop.stop_requested()) co_return fail(StoreErrc::kTimeout, what + ": asked to stop");
  auto answer = co_await client_.send(signed_request(std::move(request)));
  if (!answer) co_return std::unexpected(error_of(std::move(answer.error()), what));
  if (answer->status != 200 && answer->status != 204 && answer->status != 206) {
    co_return std::unexpected(s3::error_of(*answer, what, s3::amz_date(runtime_.wall_now())));
  }
  co_return std::move(*answer);
}

Task<StoreResult<void>> S3Store::put(std::string key, std::vector<Slice> body) {
  return write(std::move(key), std::move(body), false);
}

Task<StoreResult<void>> S3Store::put_if_absent(std::string key, std::vector<Slice> body) {
  return write(std::move(key), std::move(body), true);
}

Task<StoreResult<void>> S3Store::write(std::string key, std::vector<Slice> body, bool only_if_absent) {
  if (auto problem = key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  Request request{.method = "PUT", .key = std::move(key)};
  request.headers.emplace_back("x-amz-checksum-crc32c", base64_crc(body));
  if (only_if_absent) request.headers.emplace_back("if-none-match", "*");
  if (!options_.kms_key.empty()) {
    request.headers.emplace_back("x-amz-server-side-encryption", "aws:kms");
    request.headers.emplace_back("x-amz-server-side-encryption-aws-kms-key-id", options_.kms_key);
  }
  request.body = std::move(body);
  auto answer = co_await send(std::move(request));
  if (!answer) co_return pass_error(answer);
  co_return StoreResult<void>{};
}

Task<StoreResult<Slice>> S3Store::get(std::string key, std::optional<ByteRange> range) {
  if (auto problem = key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  Request request{.method = "GET", .key = std::move(key)};
  bool is_bounded = range && range->size != 0;
  uint64_t bytes_max =
      is_bounded ? std::min(range->size, options_.object_bytes_max) : options_.object_bytes_max;
  request.answer_bytes_max = std::max(bytes_max, kDocumentBytesMax);
  if (range) request.headers.emplace_back("range", range_text(*range));
  std::string what = request.what();
  auto answer = co_await send(std::move(request));
  if (!answer) co_return pass_error(answer);
  Slice body = std::move(answer->body);
  if (!range) co_return body;
  if (answer->status == 206) {
    if (is_bounded && body.size() > range->size) {
      co_return fail(StoreErrc::kCorrupt,
                     fmt::format("{}: {} bytes of a range of {}", what, body.size(), range->size));
    }
    co_return body;
  }
  // The whole object, which a server may give; of an empty one there is no range.
  if (range->offset >= body.size()) co_return fail(StoreErrc::kInvalidRange, what + ": at or past the end");
  uint64_t left = body.size() - range->offset;
  co_return body.sub(range->offset, is_bounded ? std::min(range->size, left) : left);
}

Task<StoreResult<ObjectInfo>> S3Store::head(std::string key) {
  if (auto problem = key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  auto answer = co_await send({.method = "HEAD", .key = key});
  if (!answer) co_return pass_error(answer);
  std::string_view text = find_header(answer->headers, "content-length").value_or("");
  uint64_t size = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    co_return fail(StoreErrc::kCorrupt, fmt::format("HEAD {}: the answer has no size", key));
  }
  co_return ObjectInfo{std::move(key), size};
}

Task<StoreResult<ListPage>> S3Store::list(std::string prefix, std::string start_after, size_t max_keys) {
  if (max_keys < 1 || max_keys > kKeysMax)
    co_return fail(StoreErrc::kBadRequest, "max_keys must be 1 to 1,000");
  Request request{.method = "GET", .answer_bytes_max = kListBytesMax};
  request.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", std::to_string(max_keys)}};
  if (!prefix.empty()) request.query.emplace_back("prefix", prefix);
  if (!start_after.empty()) request.query.emplace_back("start-after", start_after);
  auto answer = co_await send(std::move(request));
  if (!answer) co_return pass_error(answer);
  std::optional<ListPage> page = s3::parse_list(answer->body.view());
  if (!page) co_return fail(StoreErrc::kCorrupt, "the answer to a listing is no ListBucketResult");
  if (page->is_truncated && page->objects.empty()) {
    co_return fail(StoreErrc::kCorrupt, "a listing goes on, but names no key");
  }
  co_return std::move(*page);
}

Task<StoreResult<std::vector<std::string>>> S3Store::delete_many(std::vector<std::string> keys) {
  using Kept = StoreResult<std::vector<std::string>>;
  if (keys.size() > kKeysMax) co_return fail(StoreErrc::kBadRequest, "more than 1,000 keys");
  if (keys.empty()) co_return Kept(std::vector<std::string>());
  std::optional<std::string> body = s3::delete_body(keys);
  if (!body) {
    for (std::string& key : keys) {
      auto deleted = co_await delete_one(std::move(key));
      if (!deleted) co_return pass_error(deleted);
    }
    co_return Kept(std::vector<std::string>());
  }
  Request request{.method = "POST", .query = {{"delete", ""}}, .answer_bytes_max = kListBytesMax};
  Slice bytes = Slice::copy_of(as_bytes(*body));
  request.payload = s3::sha256_hex(bytes.view());
  request.headers = {{"content-md5", base64_md5(bytes.view())}, {"content-type", "application/xml"}};
  request.body = {std::move(bytes)};
  auto answer = co_await send(std::move(request));
  if (!answer) co_return pass_error(answer);
  auto kept = s3::parse_delete(answer->body.view());
  if (!kept) co_return fail(StoreErrc::kCorrupt, "the answer to a deletion is no DeleteResult");
  co_return Kept(std::move(*kept));
}

Task<StoreResult<void>> S3Store::delete_one(std::string key) {
  if (auto problem = key_problem(key)) co_return fail(StoreErrc::kBadRequest, *problem);
  auto answer = co_await send({.method = "DELETE", .key = std::move(key)});
  if (!answer && answer.error().code != StoreErrc::kNotFound) co_return pass_error(answer);
  co_return StoreResult<void>{};
}

}  // namespace varve::object_store
