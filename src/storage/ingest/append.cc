#include "storage/ingest/append.h"

namespace varve::storage {

bool is_success(AppendVerdict verdict) {
  return verdict == AppendVerdict::kAccepted || verdict == AppendVerdict::kDuplicate ||
         verdict == AppendVerdict::kBuffered;
}

bool is_retriable(AppendVerdict verdict) {
  switch (verdict) {
    case AppendVerdict::kStoreFailed:
    case AppendVerdict::kStoreFull:
    case AppendVerdict::kLogFull:
    case AppendVerdict::kNotStored:
    case AppendVerdict::kUnknownFate:
    case AppendVerdict::kPredecessorFailed:
    case AppendVerdict::kTooManyWaiting:
    case AppendVerdict::kStopping:
      return true;
    case AppendVerdict::kAccepted:
    case AppendVerdict::kDuplicate:
    case AppendVerdict::kBuffered:
    case AppendVerdict::kUnknownPartition:
    case AppendVerdict::kOutOfOrder:
    case AppendVerdict::kStaleEpoch:
    case AppendVerdict::kInvalidTxnState:
    case AppendVerdict::kRefused:
      return false;
  }
  return false;
}

std::string_view append_verdict_name(AppendVerdict verdict) {
  switch (verdict) {
    case AppendVerdict::kAccepted:
      return "accepted";
    case AppendVerdict::kDuplicate:
      return "duplicate";
    case AppendVerdict::kBuffered:
      return "buffered";
    case AppendVerdict::kUnknownPartition:
      return "unknown partition";
    case AppendVerdict::kOutOfOrder:
      return "out of order";
    case AppendVerdict::kStaleEpoch:
      return "stale epoch";
    case AppendVerdict::kInvalidTxnState:
      return "invalid transaction state";
    case AppendVerdict::kStoreFailed:
      return "store failed";
    case AppendVerdict::kStoreFull:
      return "store full";
    case AppendVerdict::kLogFull:
      return "log full";
    case AppendVerdict::kUnknownFate:
      return "unknown fate";
    case AppendVerdict::kNotStored:
      return "not stored";
    case AppendVerdict::kPredecessorFailed:
      return "predecessor failed";
    case AppendVerdict::kTooManyWaiting:
      return "too many waiting";
    case AppendVerdict::kStopping:
      return "stopping";
    case AppendVerdict::kRefused:
      return "refused";
  }
  return "?";
}

}  // namespace varve::storage
