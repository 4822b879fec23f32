// AWS Signature Version 4, as S3 takes it: in the Authorization header, over a request's head. The payload is named by
// its hash, or by kUnsignedPayload, so that it need not be read to be signed. From AWS's page "Authenticating Requests:
// Using the Authorization Header (AWS Signature Version 4)".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace varve::object_store::s3 {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // "": the keys are not temporary
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

using NameValues = std::vector<std::pair<std::string, std::string>>;

// What a signature covers.
struct Signable {
  std::string method;
  std::string path;     // encoded, from the first '/'
  NameValues query;     // not encoded, in any order
  NameValues headers;   // names in lower case, with host, x-amz-date and x-amz-content-sha256
  std::string payload;  // as in x-amz-content-sha256
};

// All but A-Z a-z 0-9 - . _ ~ as %XX; with `keep_slash`, '/' too stays as it is.
std::string uri_encoded(std::string_view text, bool keep_slash);
// "a=1&b=", sorted and encoded: both for the request line and for the signature.
std::string encoded_query(NameValues query);

// As "20130524T000000Z".
std::string amz_date(WallTime time);
// Lower-case hexadecimal.
std::string sha256_hex(ByteView bytes);

// The value of the header Authorization. `date`: amz_date() of the request.
std::string authorization(const Signable& request, const Credentials& credentials, std::string_view region,
                          std::string_view date);

}  // namespace varve::object_store::s3
