// FakeS3: a store that speaks S3's protocol, for tests: on the simulator's network or on loopback. It holds its objects in
// memory, checks what a client must get right (signature, checksum, Content-MD5), and can be told to answer otherwise.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "object_store/s3/s3_options.h"
#include "runtime/http/message_reader.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::object_store::s3 {

class FakeS3 {
 public:
  using Message = runtime::http::Message;
  // The whole answer, as bytes, to a request that is not to be served; "" closes the connection without one. nullopt:
  // serve it.
  using Script = std::function<std::optional<std::string>(const Message& request)>;

  FakeS3(runtime::Runtime& runtime, std::string bucket, Credentials credentials)
      : runtime_(runtime), bucket_(std::move(bucket)), credentials_(std::move(credentials)) {}

  // On io(0).
  void start(const runtime::Address& address) {
    auto listener = runtime_.network().listen(runtime_.io(0), address);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    scope_.spawn(runtime_.io(0), "fake s3", accept());
  }
  uint16_t port() const { return listener_->local().port; }
  runtime::Task<> stop() {
    listener_->close();
    co_await scope_.close();
  }

  Script script;
  // Of the requests served or scripted.
  std::vector<Message> requests;
  size_t connections = 0;
  bool closes_after_answer = false;

  static std::string answer(unsigned status, std::string_view headers, std::string_view body) {
    return fmt::format("HTTP/1.1 {} X\r\n{}Content-Length: {}\r\n\r\n{}", status, headers, body.size(), body);
  }
  static std::string error(unsigned status, std::string_view code, std::string_view message = "") {
    return answer(status, "x-amz-request-id: R1\r\n",
                  fmt::format("<?xml version=\"1.0\"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>",
                              code, message));
  }

 private:
  runtime::Task<> accept() {
    for (;;) {
      auto stream = co_await listener_->accept(runtime_.io(0));
      if (!stream) co_return;
      ++connections;
      scope_.spawn(runtime_.io(0), "fake s3 connection", serve(std::move(*stream)));
    }
  }

  runtime::Task<> serve(std::unique_ptr<runtime::Stream> stream) {
    runtime::http::MessageReader reader(*stream, runtime::http::MessageKind::kRequest);
    for (;;) {
      auto request = co_await reader.read({});
      if (!request) co_return;
      requests.push_back(*request);
      std::optional<std::string> scripted = script ? script(*request) : std::nullopt;
      std::string text = scripted ? *scripted : reply(*request);
      if (text.empty()) co_return;
      if (request->method == "HEAD") text.resize(text.find("\r\n\r\n") + 4);
      ByteView bytes = as_bytes(text);
      auto written = co_await stream->write(std::span(&bytes, 1));
      if (!written || closes_after_answer) co_return;
    }
  }

  static std::string header(const Message& request, std::string_view name) {
    return std::string(find_header(request.headers, name).value_or(""));
  }

  static std::string decoded(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%') {
        result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        result += text[i];
      }
    }
    return result;
  }

  // nullopt: it is signed with the right keys.
  std::optional<std::string> signature_problem(const Message& request, const NameValues& query) const {
    std::string given = header(request, "authorization");
    std::string_view names = given;
    names = names.substr(std::min(names.size(), names.find("SignedHeaders=") + 14));
    names = names.substr(0, names.find(','));
    Signable signable;
    signable.method = request.method;
    signable.path = request.target.substr(0, request.target.find('?'));
    signable.query = query;
    signable.payload = header(request, "x-amz-content-sha256");
    while (!names.empty()) {
      size_t end = std::min(names.find(';'), names.size());
      std::string name(names.substr(0, end));
      signable.headers.emplace_back(name, header(request, name));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    if (signable.payload != kUnsignedPayload && signable.payload != sha256_hex(request.body.view())) {
      return error(400, "XAmzContentSHA256Mismatch");
    }
    std::string right = authorization(signable, credentials_, "us-east-1", header(request, "x-amz-date"));
    if (given != right) return error(403, "SignatureDoesNotMatch");
    return std::nullopt;
  }

  std::string reply(const Message& request) {
    std::string_view target = request.target;
    size_t question = target.find('?');
    std::string path = decoded(target.substr(0, question));
    NameValues query;
    std::string_view rest = question == std::string_view::npos ? "" : target.substr(question + 1);
    while (!rest.empty()) {
      std::string_view pair = rest.substr(0, rest.find('&'));
      query.emplace_back(decoded(pair.substr(0, pair.find('='))), decoded(pair.substr(pair.find('=') + 1)));
      rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    }
    if (auto problem = signature_problem(request, query)) return *problem;
    std::string prefix = '/' + bucket_ + '/';
    if (!path.starts_with(prefix)) return error(404, "NoSuchBucket", "The specified bucket does not exist");
    std::string key = path.substr(prefix.size());
    if (request.method == "PUT") return put(request, key);
    if (request.method == "DELETE") {
      objects_.erase(key);
      return answer(204, "", "");
    }
    if (request.method == "POST") return delete_many(request);
    return key.empty() ? list(query) : get(request, key);
  }

  std::string put(const Message& request, const std::string& key) {
    if (header(request, "if-none-match") == "*" && objects_.contains(key))
      return error(412, "PreconditionFailed");
    objects_[key] = std::string(as_text(request.body.view()));
    return answer(200, "ETag: \"x\"\r\n", "");
  }

  std::string get(const Message& request, const std::string& key) const {
    auto found = objects_.find(key);
    if (found == objects_.end()) return error(404, "NoSuchKey");
    const std::string& body = found->second;
    std::string range = header(request, "range");
    if (range.empty()) return answer(200, "", body);
    uint64_t first = 0;
    uint64_t last = UINT64_MAX;
    std::sscanf(range.c_str(), "bytes=%lu-%lu", &first, &last);
    if (first >= body.size()) return error(416, "InvalidRange");
    return answer(206, "",
                  std::string_view(body).substr(first, last - first == UINT64_MAX ? last : last - first + 1));
  }

  std::string list(const NameValues& query) const {
    std::map<std::string, std::string> asked(query.begin(), query.end());
    size_t keys_max = std::stoul(asked["max-keys"]);
    std::string items;
    size_t count = 0;
    bool is_truncated = false;
    for (const auto& [key, body] : objects_) {
      if (!key.starts_with(asked["prefix"]) || key <= asked["start-after"]) continue;
      if (count++ == keys_max) {
        is_truncated = true;
        break;
      }
      items += fmt::format("<Contents><Key>{}</Key><Size>{}</Size></Contents>", uri_encoded(key, true),
                           body.size());
    }
    return answer(
        200, "",
        fmt::format("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{}</IsTruncated>{}"
                    "</ListBucketResult>",
                    is_truncated, items));
  }

  std::string delete_many(const Message& request) {
    if (header(request, "content-md5").empty()) return error(400, "MissingContentMD5");
    std::string_view rest = as_text(request.body.view());
    for (size_t at = rest.find("<Key>"); at != std::string_view::npos; at = rest.find("<Key>")) {
      rest.remove_prefix(at + 5);
      std::string key(rest.substr(0, rest.find("</Key>")));
      for (auto [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}}) {
        for (size_t i = key.find(from); i != std::string::npos; i = key.find(from, i + 1)) {
          key.replace(i, std::strlen(from), to);
        }
      }
      objects_.erase(key);
    }
    return answer(200, "", "<DeleteResult></DeleteResult>");
  }

  runtime::Runtime& runtime_;
  const std::string bucket_;
  const Credentials credentials_;
  std::unique_ptr<runtime::Listener> listener_;
  std::map<std::string, std::string> objects_;
  runtime::TaskScope scope_;
};

}  // namespace varve::object_store::s3
