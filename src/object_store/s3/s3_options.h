// Which bucket, and how to ask for it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "object_store/s3/sigv4.h"

namespace varve::object_store::s3 {

// Where requests go: "https://host:port", "http://10.0.0.1:9000".
struct Endpoint {
  bool is_tls = true;
  std::string host;
  uint16_t port = 443;

  // As the header Host has it: the port only where it is not the scheme's own.
  std::string authority() const;
  bool operator==(const Endpoint&) const = default;
};

// What is wrong, as a sentence. A text without a scheme means https.
Result<Endpoint, std::string> parse_endpoint(std::string_view text);
// AWS's own of a region.
Endpoint aws_endpoint(std::string_view region);

struct S3Options {
  Endpoint endpoint;
  std::string bucket;
  std::string region = "us-east-1";
  // The bucket is the first part of the path; otherwise of the host's name.
  bool path_style = false;
  Credentials credentials;
  // Server-side encryption with this key of KMS; "": the bucket's default.
  std::string kms_key;
  // A longer object is not read.
  uint64_t object_bytes_max = uint64_t{1} << 30;
};

}  // namespace varve::object_store::s3
