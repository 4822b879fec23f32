// What is known of each Kafka API besides its fields. The rows are generated from the schemas and served_apis.txt.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/messages/api_key.h"
#include "protocol/messages/api_versions.h"
#include "protocol/messages/error_code.h"

namespace varve::protocol {

// One API that this build has codecs for.
struct ApiInfo {
  ApiKey key;
  std::string_view name;  // as in "Produce"
  int16_t min_version;
  int16_t max_version;
  // First version in the ApiVersions answer; below min_version for one that clients want to see there but that is
  // refused (Produce, KAFKA-18659).
  int16_t listed_from;
  // First versions with the newer header, 32767 if there are none (KIP-482; ApiVersions never: KIP-511).
  int16_t request_flexible_from;
  int16_t response_flexible_from;
  // The broker has a handler for it. The others are for clients.
  bool served;

  bool supports(int16_t version) const { return version >= min_version && version <= max_version; }
  // Versions of RequestHeader and ResponseHeader that go with a version of the API, supported or not.
  int16_t request_header_version(int16_t version) const { return version >= request_flexible_from ? 2 : 1; }
  int16_t response_header_version(int16_t version) const { return version >= response_flexible_from ? 1 : 0; }
};

// By rising key.
std::span<const ApiInfo> known_apis();
// By the key of a request; null if there are no codecs for it.
const ApiInfo* find_api(int16_t key);
// CHECKs that it exists: for keys that this program names.
const ApiInfo& api_info(ApiKey key);

// The list of the served APIs, without features: what an ApiVersions response starts from.
ApiVersionsResponse api_versions_response();
// The answer to an ApiVersions request of an unknown version, to be sent in version 0: error 35 and the versions of
// ApiVersions itself (KIP-511, case C001).
ApiVersionsResponse unsupported_api_versions_response();

}  // namespace varve::protocol
