#include <cstdlib>
#include <string>

#include "object_store/s3/settings_real_store_testing.h"

namespace varve::object_store::s3 {
namespace {

std::string value_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

std::optional<S3Options> real_store_wanted() {
  std::string endpoint = value_of("VARVE_S3_ENDPOINT");
  if (endpoint.empty()) return std::nullopt;
  S3Options options;
  options.endpoint = parse_endpoint(endpoint).value();
  options.bucket = "conformance";
  options.path_style = true;
  options.credentials = {value_of("AWS_ACCESS_KEY_ID"), value_of("AWS_SECRET_ACCESS_KEY"), ""};
  return options;
}

}  // namespace varve::object_store::s3
