#include "broker/group/group_messages.h"

namespace varve::broker {

GroupErrc error_of(metadata::CommandVerdict verdict) {
  using metadata::CommandVerdict;
  switch (verdict) {
    case CommandVerdict::kDone:
      return GroupErrc::kNone;
    case CommandVerdict::kNotCoordinator:
      return GroupErrc::kNotCoordinator;
    case CommandVerdict::kStaleGroup:
    case CommandVerdict::kOverLimit:
      return GroupErrc::kCoordinatorNotAvailable;
    case CommandVerdict::kUnknownGroup:
      return GroupErrc::kGroupIdNotFound;
    case CommandVerdict::kUnknownMember:
      return GroupErrc::kUnknownMember;
    case CommandVerdict::kIllegalGeneration:
      return GroupErrc::kIllegalGeneration;
    case CommandVerdict::kFencedInstance:
      return GroupErrc::kFencedInstance;
    case CommandVerdict::kRebalanceInProgress:
      return GroupErrc::kRebalanceInProgress;
    case CommandVerdict::kNonEmptyGroup:
      return GroupErrc::kNonEmptyGroup;
    default:
      return GroupErrc::kUnknownServerError;
  }
}

}  // namespace varve::broker
