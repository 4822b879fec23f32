#include "broker/handlers/errors.h"

namespace varve::broker {

using protocol::ErrorCode;

ErrorCode error_of(protocol::records::RecordErrc cause) {
  using protocol::records::RecordErrc;
  switch (cause) {
    case RecordErrc::kNoBatch:
    case RecordErrc::kMoreThanOneBatch:
    case RecordErrc::kOldFormat:
    case RecordErrc::kBaseOffset:
    case RecordErrc::kRecordCount:
    case RecordErrc::kControlBatch:
    case RecordErrc::kSequence:
    case RecordErrc::kCorruptCompression:
    case RecordErrc::kCorruptRecord:
    case RecordErrc::kOffsetDelta:
    case RecordErrc::kMissingKey:
      return ErrorCode::kInvalidRecord;
    case RecordErrc::kCorruptFrame:
    case RecordErrc::kCorruptChecksum:
      return ErrorCode::kCorruptMessage;
    case RecordErrc::kBatchTooLarge:
    case RecordErrc::kDecompressedTooLarge:
      return ErrorCode::kMessageTooLarge;
    case RecordErrc::kCodec:
      return ErrorCode::kUnsupportedCompressionType;
    case RecordErrc::kTimestamp:
      return ErrorCode::kInvalidTimestamp;
    case RecordErrc::kInternal:
      return ErrorCode::kKafkaStorageError;
  }
  return ErrorCode::kUnknownServerError;
}

ErrorCode error_of(storage::AppendVerdict verdict, bool by_id) {
  using storage::AppendVerdict;
  switch (verdict) {
    case AppendVerdict::kAccepted:
    case AppendVerdict::kDuplicate:
    case AppendVerdict::kBuffered:
      return ErrorCode::kNone;
    case AppendVerdict::kUnknownPartition:
      return by_id ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition;
    case AppendVerdict::kOutOfOrder:
      return ErrorCode::kOutOfOrderSequenceNumber;
    case AppendVerdict::kStaleEpoch:
      return ErrorCode::kInvalidProducerEpoch;
    case AppendVerdict::kInvalidTxnState:
      return ErrorCode::kInvalidTxnState;
    // Not stored, and trying again may help. Clients look for another broker after this code.
    case AppendVerdict::kStoreFailed:
    case AppendVerdict::kStoreFull:
      return ErrorCode::kKafkaStorageError;
    // Not stored; the same broker may take it in a moment.
    case AppendVerdict::kNotStored:
    case AppendVerdict::kLogFull:
    case AppendVerdict::kPredecessorFailed:
    case AppendVerdict::kTooManyWaiting:
      return ErrorCode::kNotEnoughReplicas;
    // The one code that leaves open whether the batch is stored.
    case AppendVerdict::kUnknownFate:
      return ErrorCode::kRequestTimedOut;
    case AppendVerdict::kStopping:
      return ErrorCode::kNotLeaderOrFollower;
    case AppendVerdict::kRefused:
      return ErrorCode::kUnknownServerError;
  }
  return ErrorCode::kUnknownServerError;
}

ErrorCode fetch_error_of(storage::FetchErrc cause, int16_t version, bool by_id) {
  using storage::FetchErrc;
  switch (cause) {
    case FetchErrc::kNone:
      return ErrorCode::kNone;
    case FetchErrc::kUnknownPartition:
      return by_id ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition;
    case FetchErrc::kOffsetOutOfRange:
      return ErrorCode::kOffsetOutOfRange;
    case FetchErrc::kCorrupt:
      return ErrorCode::kCorruptMessage;
    // Clients of Fetch 5 and below do not know the storage error.
    case FetchErrc::kStorage:
      return version > 5 ? ErrorCode::kKafkaStorageError : ErrorCode::kNotLeaderOrFollower;
    case FetchErrc::kNoProgress:
      return kCannotTellPartition;
  }
  return ErrorCode::kUnknownServerError;
}

ErrorCode list_offsets_error_of(storage::FetchErrc cause) {
  using storage::FetchErrc;
  switch (cause) {
    case FetchErrc::kNone:
      return ErrorCode::kNone;
    case FetchErrc::kUnknownPartition:
      return ErrorCode::kUnknownTopicOrPartition;
    case FetchErrc::kOffsetOutOfRange:
      return ErrorCode::kOffsetOutOfRange;
    case FetchErrc::kCorrupt:
      return ErrorCode::kCorruptMessage;
    case FetchErrc::kStorage:
      return ErrorCode::kKafkaStorageError;
    case FetchErrc::kNoProgress:
      return kCannotTellPartition;
  }
  return ErrorCode::kUnknownServerError;
}

ErrorCode error_of(metadata::ProposeErrc cause) {
  switch (cause) {
    case metadata::ProposeErrc::kUnknown:
      return ErrorCode::kRequestTimedOut;
    case metadata::ProposeErrc::kRejected:
      return ErrorCode::kNotController;
    case metadata::ProposeErrc::kFull:
      return ErrorCode::kThrottlingQuotaExceeded;
    case metadata::ProposeErrc::kStopping:
      return ErrorCode::kNotController;
  }
  return ErrorCode::kUnknownServerError;
}

ErrorCode error_of(GroupErrc cause) {
  switch (cause) {
    case GroupErrc::kNone:
      return ErrorCode::kNone;
    case GroupErrc::kCoordinatorNotAvailable:
    case GroupErrc::kUncertain:
      return kCannotTellGroup;
    case GroupErrc::kNotCoordinator:
      return ErrorCode::kNotCoordinator;
    case GroupErrc::kUnknownMember:
      return ErrorCode::kUnknownMemberId;
    case GroupErrc::kIllegalGeneration:
      return ErrorCode::kIllegalGeneration;
    case GroupErrc::kFencedInstance:
      return ErrorCode::kFencedInstanceId;
    case GroupErrc::kInconsistentProtocol:
      return ErrorCode::kInconsistentGroupProtocol;
    case GroupErrc::kInvalidSessionTimeout:
      return ErrorCode::kInvalidSessionTimeout;
    case GroupErrc::kInvalidGroupId:
      return ErrorCode::kInvalidGroupId;
    case GroupErrc::kMemberIdRequired:
      return ErrorCode::kMemberIdRequired;
    case GroupErrc::kGroupMaxSizeReached:
      return ErrorCode::kGroupMaxSizeReached;
    case GroupErrc::kRebalanceInProgress:
      return ErrorCode::kRebalanceInProgress;
    case GroupErrc::kGroupIdNotFound:
      return ErrorCode::kGroupIdNotFound;
    case GroupErrc::kNonEmptyGroup:
      return ErrorCode::kNonEmptyGroup;
    case GroupErrc::kUnknownServerError:
      return ErrorCode::kUnknownServerError;
  }
  return ErrorCode::kUnknownServerError;
}

}  // namespace varve::broker
