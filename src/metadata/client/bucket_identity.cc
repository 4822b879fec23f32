#include "metadata/client/bucket_identity.h"

namespace varve::metadata {

using object_store::StoreErrc;

std::string identity_key(std::string_view prefix) { return fmt::format("{}/_log/identity", prefix); }

std::string identity_text(const LogIdentity& identity) {
  return fmt::format("varve log identity 1\n{}\n{}\n", to_hex(identity.id.bytes), identity.generation);
}

namespace {

// A store that refuses can still look as if it had written: a decorator that tries again takes the refusal of a try
// whose answer was lost for its own success. So it is accused after this many, each of which would need such a loss.
constexpr int kSuccessesThatAccuse = 5;
constexpr int kClaimAttemptsMax = 20;

enum class Holder : uint8_t { kNobody, kThisLog, kAnotherLog };

// Who holds the namespace. It is accused of being another's only when two reads agree.
runtime::Task<Result<Holder, StartError>> find_holder(object_store::ObjectStore& store, std::string key,
                                                      std::string text) {
  std::string before;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto found = co_await store.get(key, std::nullopt);
    if (!found && found.error().code == StoreErrc::kNotFound) co_return Holder::kNobody;
    if (!found)
      co_return fail(StartErrc::kStore, fmt::format("cannot read {}: {}", key, found.error().message));
    std::string stored(as_text(found->view()));
    if (stored == text) co_return Holder::kThisLog;
    if (attempt > 0 && stored == before) co_return Holder::kAnotherLog;
    before = std::move(stored);
  }
  co_return fail(StartErrc::kStore, fmt::format("two reads of {} differ", key));
}

// An empty log beside objects: they are somebody else's, unless another broker of this log has claimed the namespace
// since we looked.
runtime::Task<Result<void, StartError>> check_unclaimed(object_store::ObjectStore& store, std::string prefix,
                                                        std::string key, std::string text) {
  auto page = co_await store.list(prefix + "/", "", 1);
  if (!page)
    co_return fail(StartErrc::kStore, fmt::format("cannot list '{}/': {}", prefix, page.error().message));
  if (page->objects.empty()) co_return Result<void, StartError>{};
  auto holder = co_await find_holder(store, key, text);
  if (!holder) co_return pass_error(holder);
  if (*holder == Holder::kThisLog) co_return Result<void, StartError>{};
  co_return fail(
      StartErrc::kForeignBucket,
      fmt::format("the metadata log is empty but the namespace '{}' holds objects (the first is {}). "
                  "Use another namespace. Neither taking over a KafScale bucket ('varve adopt') nor "
                  "rebuilding a lost log from varve's own ('varve restore') is in this version yet",
                  prefix, page->objects.front().key));
}

}  // namespace

runtime::Task<Result<void, StartError>> claim_namespace(object_store::ObjectStore& store, std::string prefix,
                                                        LogIdentity identity, bool log_is_new) {
  std::string key = identity_key(prefix);
  std::string text = identity_text(identity);
  auto holder = co_await find_holder(store, key, text);
  if (!holder) co_return pass_error(holder);
  if (*holder == Holder::kAnotherLog) {
    co_return fail(
        StartErrc::kForeignBucket,
        fmt::format("the namespace '{}' belongs to another metadata log ({} is not this log's). Point "
                    "the broker at that log or at another namespace; rebuilding a lost log from its "
                    "bucket ('varve restore') is not in this version yet",
                    prefix, key));
  }
  if (*holder == Holder::kNobody && log_is_new) {
    auto checked = co_await check_unclaimed(store, prefix, key, text);
    if (!checked) co_return checked;
  }
  int successes = 0;
  for (int attempt = 0; attempt < kClaimAttemptsMax && successes < kSuccessesThatAccuse; ++attempt) {
    auto put = co_await store.put_if_absent(key, {Slice::take({text.begin(), text.end()})});
    if (put) {
      ++successes;
    } else if (put.error().code == StoreErrc::kPreconditionFailed) {
      auto winner = co_await find_holder(store, key, text);
      if (!winner) co_return pass_error(winner);
      if (*winner == Holder::kThisLog) co_return Result<void, StartError>{};
      co_return fail(StartErrc::kForeignBucket,
                     fmt::format("another metadata log claimed the namespace '{}' just now", prefix));
    } else if (put.error().code != StoreErrc::kConflict) {
      co_return fail(StartErrc::kStore, fmt::format("cannot write {}: {}", key, put.error().message));
    }
  }
  if (successes < kSuccessesThatAccuse) {
    co_return fail(StartErrc::kStore,
                   fmt::format("cannot write {}: others kept writing it {} times; start again", key,
                               kClaimAttemptsMax - successes));
  }
  co_return fail(
      StartErrc::kStore,
      fmt::format("the object store ignores conditional puts (If-None-Match): {} was written again "
                  "although it was there. varve needs a store that refuses it",
                  key));
}

}  // namespace varve::metadata
