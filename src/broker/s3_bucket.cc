#include "broker/s3_bucket.h"

namespace varve::broker {

using object_store::s3::S3Options;

Result<S3Options, SettingsError> s3_options_of(const Settings& settings) {
  const S3Settings& given = settings.s3;
  S3Options options;
  options.bucket = given.bucket;
  options.region = given.region;
  options.endpoint = object_store::s3::aws_endpoint(given.region);
  if (!given.endpoint.empty()) {
    auto endpoint = object_store::s3::parse_endpoint(given.endpoint);
    if (!endpoint) {
      return std::unexpected(
          SettingsError{"KAFSCALE_S3_ENDPOINT", given.endpoint, std::move(endpoint.error())});
    }
    options.endpoint = std::move(*endpoint);
  }
  options.path_style = given.path_style.value_or(!given.endpoint.empty());
  bool has_own = !given.access_key.empty();
  options.credentials =
      has_own ? object_store::s3::Credentials{given.access_key, given.secret_key, given.session_token}
              : object_store::s3::Credentials{given.aws_access_key, given.aws_secret_key,
                                              given.aws_session_token};
  if (options.credentials.access_key.empty()) {
    return std::unexpected(SettingsError{
        "KAFSCALE_S3_ACCESS_KEY", "", "a bucket is set, but no key for it; set this or AWS_ACCESS_KEY_ID"});
  }
  if (options.credentials.secret_key.empty()) {
    return std::unexpected(SettingsError{has_own ? "KAFSCALE_S3_SECRET_KEY" : "AWS_SECRET_ACCESS_KEY", "",
                                         "it is not set, but the access key is"});
  }
  options.kms_key = given.kms_key;
  return options;
}

}  // namespace varve::broker
