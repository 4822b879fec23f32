#include "object_store/s3/sigv4.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace varve::object_store::s3 {
namespace {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(ByteView bytes) {
  Sha256 digest;
  unsigned size = 0;
  int done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  CHECK(done == 1 && size == digest.size(), "OpenSSL has no SHA-256");
  return digest;
}

Sha256 hmac(ByteView key, std::string_view text) {
  Sha256 digest;
  unsigned size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  CHECK(done != nullptr && size == digest.size(), "OpenSSL has no HMAC of SHA-256");
  return digest;
}

// Without spaces at its ends, and with one where there are several.
std::string trimmed(std::string_view value) {
  std::string text;
  for (char c : value) {
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    text += c;
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string uri_encoded(std::string_view text, bool keep_slash) {
  std::string encoded;
  encoded.reserve(text.size());
  for (char c : text) {
    bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                    c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
    if (is_plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<uint8_t>(c));
    }
  }
  return encoded;
}

std::string encoded_query(NameValues query) {
  for (auto& [name, value] : query) {
    name = uri_encoded(name, false);
    value = uri_encoded(value, false);
  }
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text += name + '=' + value;
  }
  return text;
}

std::string amz_date(WallTime time) {
  using namespace std::chrono;
  sys_seconds at{floor<seconds>(milliseconds(time.value()))};
  sys_days day = floor<days>(at);
  year_month_day date(day);
  hh_mm_ss clock(at - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string sha256_hex(ByteView bytes) { return to_hex(sha256(bytes)); }

std::string authorization(const Signable& request, const Credentials& credentials, std::string_view region,
                          std::string_view date) {
  NameValues headers = request.headers;
  std::ranges::sort(headers);
  std::string names;
  std::string canonical = request.method + '\n' + request.path + '\n' + encoded_query(request.query) + '\n';
  for (const auto& [name, value] : headers) {
    canonical += name + ':' + trimmed(value) + '\n';
    if (!names.empty()) names += ';';
    names += name;
  }
  canonical += '\n' + names + '\n' + request.payload;

  std::string scope = fmt::format("{}/{}/s3/aws4_request", date.substr(0, 8), region);
  std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", date, scope, sha256_hex(as_bytes(canonical)));
  Sha256 key = hmac(as_bytes("AWS4" + credentials.secret_key), date.substr(0, 8));
  key = hmac(key, region);
  key = hmac(key, "s3");
  key = hmac(key, "aws4_request");
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                     credentials.access_key, scope, names, to_hex(hmac(key, to_sign)));
}

}  // namespace varve::object_store::s3
