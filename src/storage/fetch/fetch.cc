#include "storage/fetch/fetch.h"

namespace varve::storage {

std::string_view fetch_error_name(FetchErrc error) {
  switch (error) {
    case FetchErrc::kNone:
      return "none";
    case FetchErrc::kUnknownPartition:
      return "unknown partition";
    case FetchErrc::kOffsetOutOfRange:
      return "offset out of range";
    case FetchErrc::kCorrupt:
      return "corrupt";
    case FetchErrc::kStorage:
      return "storage";
    case FetchErrc::kNoProgress:
      return "no progress";
  }
  return "?";
}

}  // namespace varve::storage
