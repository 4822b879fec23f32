#include "apps/store_proxy/store_proxy.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace varve::apps {
namespace {

using runtime::Stream;
using runtime::Task;
using runtime::http::ClientRequest;
using runtime::http::find_header;
using runtime::http::Header;
using runtime::http::Message;
using runtime::http::MessageReader;

constexpr std::string_view kOwnTargets = "/_proxy/";
constexpr std::string_view kSetTarget = "/_proxy/set?";
constexpr uint64_t kBodyBytesMax = uint64_t{256} << 20;

std::string head_of(unsigned status, uint64_t body_bytes, std::string_view more = "") {
  return fmt::format("HTTP/1.1 {} Proxied\r\nContent-Length: {}\r\n{}\r\n", status, body_bytes, more);
}

std::string error_document(unsigned status, std::string_view code) {
  std::string body = fmt::format("<Error><Code>{}</Code><Message>from the proxy</Message></Error>", code);
  return head_of(status, body.size(), "Content-Type: application/xml\r\n") + body;
}

// All but what belongs to one connection and to the length, which is said anew.
bool is_handed_on(const Header& header) {
  for (std::string_view own : {"connection", "content-length", "transfer-encoding", "expect", "keep-alive"}) {
    if (find_header({header}, own)) return false;
  }
  return true;
}

// What the proxy answers in the store's place; "": the store is asked.
std::string refusal(Fate fate) {
  if (fate == Fate::kThrottled) return error_document(503, "SlowDown");
  if (fate == Fate::kFailed) return error_document(500, "InternalError");
  if (fate == Fate::kSkewed) return error_document(403, "RequestTimeTooSkewed");
  return {};
}

Slice corrupted(ByteView body) {
  std::vector<uint8_t> bytes(body.begin(), body.end());
  if (!bytes.empty()) bytes[bytes.size() / 2] ^= 0x20;
  return Slice::copy_of(bytes);
}

std::string head_of(const Message& answer, bool is_head) {
  std::string more;
  for (const Header& header : answer.headers) {
    if (is_handed_on(header)) more += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  uint64_t size = answer.body.size();
  // Of an answer to HEAD the length is that of the body that it would have.
  if (auto length = find_header(answer.headers, "content-length"); is_head && length) {
    size = std::stoull(std::string(*length));
  }
  return head_of(answer.status, size, more);
}

Task<bool> write(Stream& stream, std::string_view head, ByteView body = {}) {
  std::array<ByteView, 2> parts = {as_bytes(head), body};
  auto written = co_await stream.write(std::span(parts).first(body.empty() ? 1 : 2));
  co_return written.has_value();
}

}  // namespace

StoreProxy::StoreProxy(runtime::Runtime& runtime, StoreProxyOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      client_(runtime, {.connect =
                            [this](MonotonicTime deadline) {
                              return runtime_.network().connect(options_.store, deadline);
                            }}),
      disturbance_(options_.disturbance),
      random_(options_.seed) {}

StoreProxy::~StoreProxy() = default;

runtime::NetResult<void> StoreProxy::start() {
  auto listener = runtime_.network().listen(runtime_.io(0), options_.listen);
  if (!listener) return pass_error(listener);
  listener_ = std::move(*listener);
  scope_.spawn(runtime_.io(0), "accept", accept());
  return {};
}

Task<> StoreProxy::stop() {
  listener_->close();
  co_await scope_.close();
  co_await client_.close();
}

Task<> StoreProxy::accept() {
  for (;;) {
    runtime::Executor& executor = runtime_.io(next_executor_++ % runtime_.io_count());
    auto stream = co_await listener_->accept(executor);
    if (!stream) co_return;
    scope_.spawn(executor, "connection", serve(std::move(*stream)));
  }
}

Task<> StoreProxy::serve(std::unique_ptr<Stream> stream) {
  MessageReader reader(*stream, runtime::http::MessageKind::kRequest);
  for (;;) {
    auto request = co_await reader.read({.body_bytes_max = kBodyBytesMax});
    if (!request) co_return;
    bool keep_alive = request->keep_alive;
    bool goes_on = co_await answer(*stream, std::move(*request));
    if (!goes_on || !keep_alive) co_return;
  }
}

Task<bool> StoreProxy::answer(Stream& stream, Message request) {
  if (request.target.starts_with(kOwnTargets)) {
    std::string text = own_answer(request);
    co_return co_await write(stream, text);
  }
  RequestKind kind = kind_of(request);
  bool is_head = request.method == "HEAD";
  Fate fate = Fate::kServed;
  Duration latency{0};
  Duration stall{0};
  {
    std::lock_guard lock(mutex_);
    fate = disturbance_.draw_fate(random_);
    latency = disturbance_.latency_of(kind).draw(random_);
    stall = disturbance_.stall;
  }
  uint64_t bytes_put = request.body.size();
  co_await runtime::sleep_for(latency);
  if (std::string text = refusal(fate); !text.empty()) {
    count(kind, bytes_put, 0);
    if (is_head) text.resize(text.find("\r\n\r\n") + 4);
    co_return co_await write(stream, text);
  }
  Message answered = co_await forward(std::move(request));
  count(kind, bytes_put, answered.body.size());
  if (fate == Fate::kReplyLost) co_return false;
  if (fate == Fate::kStalled) {
    co_await runtime::sleep_for(stall);
    co_return false;
  }
  if (fate == Fate::kErrorAfter && !is_head)
    co_return co_await write(stream, error_document(500, "InternalError"));
  if (fate == Fate::kCorrupted) answered.body = corrupted(answered.body.view());
  std::string head = head_of(answered, is_head);
  ByteView body = answered.body.view();
  if (fate == Fate::kCut) {
    if (!is_head && !body.empty()) co_await write(stream, head, body.first(body.size() / 2));
    co_return false;
  }
  co_return co_await write(stream, head, is_head ? ByteView() : body);
}

Task<Message> StoreProxy::forward(Message request) {
  ClientRequest handed_on;
  handed_on.method = std::move(request.method);
  handed_on.target = std::move(request.target);
  for (Header& header : request.headers) {
    if (is_handed_on(header)) handed_on.headers.push_back(std::move(header));
  }
  if (!request.body.empty()) handed_on.body = {std::move(request.body)};
  handed_on.answer_bytes_max = kBodyBytesMax;
  auto answer = co_await client_.send(std::move(handed_on));
  if (answer) co_return std::move(*answer);
  Message bad;
  bad.status = 502;
  bad.body = Slice::copy_of(as_bytes(answer.error().message));
  co_return bad;
}

std::string StoreProxy::own_answer(const Message& request) {
  std::lock_guard lock(mutex_);
  std::string body;
  unsigned status = 200;
  if (request.target == "/_proxy/counts") {
    for (RequestKind kind : kRequestKinds)
      body += fmt::format("\"{}\": {}, ", request_kind_name(kind), counts_[kind]);
    body = fmt::format("{{{}\"bytes_put\": {}, \"bytes_got\": {}}}\n", body, bytes_put_, bytes_got_);
  } else if (request.target.starts_with(kSetTarget)) {
    Disturbance changed = disturbance_;
    std::string_view rest = std::string_view(request.target).substr(kSetTarget.size());
    std::optional<std::string> problem;
    while (!rest.empty() && !problem) {
      std::string_view pair = rest.substr(0, rest.find('&'));
      rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
      size_t equals = std::min(pair.find('='), pair.size());
      problem = changed.set(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    }
    if (!problem) problem = changed.problem();
    if (problem) {
      status = 400;
      body = *problem + "\n";
    } else {
      disturbance_ = std::move(changed);
    }
  } else {
    status = 404;
  }
  return head_of(status, body.size()) + body;
}

void StoreProxy::count(RequestKind kind, uint64_t bytes_put, uint64_t bytes_got) {
  std::lock_guard lock(mutex_);
  ++counts_[kind];
  bytes_put_ += bytes_put;
  bytes_got_ += bytes_got;
}

}  // namespace varve::apps
