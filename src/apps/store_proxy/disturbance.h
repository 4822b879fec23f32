// What the proxy does to requests: how long they take, and which go wrong.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "runtime/http/message_reader.h"

namespace varve::apps {

enum class RequestKind : uint8_t { kPut, kGet, kHead, kList, kDelete };
inline constexpr RequestKind kRequestKinds[] = {RequestKind::kPut, RequestKind::kGet, RequestKind::kHead,
                                                RequestKind::kList, RequestKind::kDelete};
std::string_view request_kind_name(RequestKind kind);
RequestKind kind_of(const runtime::http::Message& request);

// Lognormal: half of the draws lie below p50, one in a hundred above p99. Zero: no time at all.
struct Latency {
  Duration p50{0};
  Duration p99{0};

  Duration draw(Random& random) const;
};

// What becomes of one request, besides the time that it takes.
enum class Fate : uint8_t {
  kServed,
  kThrottled,   // 503 SlowDown: the store hears nothing
  kFailed,      // 500: the store hears nothing
  kSkewed,      // 403 RequestTimeTooSkewed, as to a broker whose clock is off: the store hears nothing
  kReplyLost,   // the store does it, and the connection closes in place of the answer
  kErrorAfter,  // the store does it, and 500 is answered
  kStalled,     // the store does it, and nothing is answered for `stall`
  kCut,         // half of the answer, and the connection closes
  kCorrupted,   // a byte in the middle of the answer's body is another
};

struct Disturbance {
  Latency put;
  Latency get;  // of all that is no PUT
  // Per mille of the requests.
  std::map<Fate, uint32_t> per_mille;
  Duration stall = std::chrono::seconds(60);

  Fate draw_fate(Random& random) const;
  const Latency& latency_of(RequestKind kind) const { return kind == RequestKind::kPut ? put : get; }

  // Sets one value: put-p50-ms, put-p99-ms, get-p50-ms, get-p99-ms, stall-ms, or the per mille of a fate by its name:
  // throttled, failed, skewed, reply-lost, error-after, stalled, cut, corrupted. The error says what is wrong.
  std::optional<std::string> set(std::string_view name, std::string_view value);
  // Fates that are drawn have at most 1,000 per mille together, and p99 is not below p50.
  std::optional<std::string> problem() const;
};

}  // namespace varve::apps
