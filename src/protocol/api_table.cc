#include "protocol/api_table.h"

#include <algorithm>

#include "base/check.h"

namespace varve::protocol {

namespace {
ApiVersionsResponse::ApiVersion listed(const ApiInfo& api) {
  return {.api_key = static_cast<int16_t>(api.key),
          .min_version = api.listed_from,
          .max_version = api.max_version};
}
}  // namespace

const ApiInfo* find_api(int16_t key) {
  auto rows = known_apis();
  auto row = std::ranges::lower_bound(rows, key, {},
                                      [](const ApiInfo& api) { return static_cast<int16_t>(api.key); });
  return row != rows.end() && static_cast<int16_t>(row->key) == key ? &*row : nullptr;
}

const ApiInfo& api_info(ApiKey key) {
  const ApiInfo* api = find_api(static_cast<int16_t>(key));
  CHECK(api != nullptr, "no codecs for API {}", static_cast<int16_t>(key));
  return *api;
}

ApiVersionsResponse api_versions_response() {
  ApiVersionsResponse response;
  for (const ApiInfo& api : known_apis()) {
    if (api.served) response.api_keys.push_back(listed(api));
  }
  return response;
}

ApiVersionsResponse unsupported_api_versions_response() {
  ApiVersionsResponse response;
  response.error_code = ErrorCode::kUnsupportedVersion;
  response.api_keys.push_back(listed(api_info(ApiKey::kApiVersions)));
  return response;
}

}  // namespace varve::protocol
