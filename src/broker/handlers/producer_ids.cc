#include "broker/handlers/producer_ids.h"

#include <utility>

#include "broker/handlers/proposing.h"

namespace varve::broker {

runtime::Task<Result<ProducerId, metadata::ProposeError>> ProducerIds::next(MonotonicTime deadline) {
  using Next = Result<ProducerId, metadata::ProposeError>;
  while (true) {
    std::optional<runtime::Completion<runtime::Done>> turn;
    {
      std::lock_guard lock(mutex_);
      if (next_ < end_) {
        ProducerId id = next_;
        ++next_;
        co_return Next(id);
      }
      if (is_fetching_) {
        turn.emplace();
        waiters_.push_back(*turn);
      }
      is_fetching_ = true;
    }
    if (turn) {
      co_await turn->wait();
      continue;
    }
    auto result = co_await propose_one(runtime_, metadata_,
                                       metadata::AllocateProducerIds{.count = kBlockSize}, deadline);
    bool is_done = result && result->verdict == metadata::CommandVerdict::kDone;
    std::vector<runtime::Completion<runtime::Done>> waiters;
    {
      std::lock_guard lock(mutex_);
      is_fetching_ = false;
      if (is_done) {
        next_ = result->first_producer_id;
        end_ = next_.plus(kBlockSize);
      }
      waiters = std::exchange(waiters_, {});
    }
    for (const auto& waiter : waiters) waiter.set(runtime::Done{});
    if (!result) co_return pass_error(result);
    if (!is_done) co_return fail(metadata::ProposeErrc::kRejected, "the log refused a block of producer ids");
  }
}

}  // namespace varve::broker
