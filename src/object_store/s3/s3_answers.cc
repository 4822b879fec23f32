#include "object_store/s3/s3_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>
#include <sstream>

namespace varve::object_store::s3 {
namespace {

struct Code {
  std::string_view name;
  StoreErrc code;
  // What to do about it; "" where the code says enough.
  std::string_view advice;
};

// S3's page "Error responses", and those of its followers.
constexpr Code kCodes[] = {
    {"NoSuchKey", StoreErrc::kNotFound, ""},
    {"NoSuchBucket", StoreErrc::kDenied, "make the bucket, or correct KAFSCALE_S3_BUCKET"},
    {"PreconditionFailed", StoreErrc::kPreconditionFailed, ""},
    {"ConditionalRequestConflict", StoreErrc::kConflict, ""},
    {"OperationAborted", StoreErrc::kConflict, ""},
    {"InvalidRange", StoreErrc::kInvalidRange, ""},
    {"SlowDown", StoreErrc::kThrottled, ""},
    {"SlowDownRead", StoreErrc::kThrottled, ""},
    {"SlowDownWrite", StoreErrc::kThrottled, ""},
    {"RequestLimitExceeded", StoreErrc::kThrottled, ""},
    {"TooManyRequests", StoreErrc::kThrottled, ""},
    {"RequestTimeout", StoreErrc::kTimeout, ""},
    {"AccessDenied", StoreErrc::kDenied, "the key may not do this in the bucket"},
    {"AllAccessDisabled", StoreErrc::kDenied, ""},
    {"AccountProblem", StoreErrc::kDenied, ""},
    {"InvalidAccessKeyId", StoreErrc::kDenied, "the store does not know KAFSCALE_S3_ACCESS_KEY"},
    {"SignatureDoesNotMatch", StoreErrc::kDenied, "KAFSCALE_S3_SECRET_KEY is not the key's"},
    {"RequestTimeTooSkewed", StoreErrc::kDenied, "set the clock of this machine"},
    {"ExpiredToken", StoreErrc::kDenied, "KAFSCALE_S3_SESSION_TOKEN has expired"},
    {"TokenRefreshRequired", StoreErrc::kDenied, "KAFSCALE_S3_SESSION_TOKEN has expired"},
    {"InvalidToken", StoreErrc::kDenied, "KAFSCALE_S3_SESSION_TOKEN is not the key's"},
    {"AuthorizationHeaderMalformed", StoreErrc::kDenied, "see KAFSCALE_S3_REGION"},
    {"PermanentRedirect", StoreErrc::kDenied,
     "the bucket lies elsewhere: see KAFSCALE_S3_REGION and _ENDPOINT"},
    {"TemporaryRedirect", StoreErrc::kUnavailable, ""},
    {"IllegalLocationConstraintException", StoreErrc::kDenied, "see KAFSCALE_S3_REGION"},
    {"QuotaExceeded", StoreErrc::kNoSpace, ""},
    {"InternalError", StoreErrc::kUnavailable, ""},
    {"ServiceUnavailable", StoreErrc::kUnavailable, ""},
    {"BadDigest", StoreErrc::kCorrupt, "the bytes were changed on their way"},
    {"IncompleteBody", StoreErrc::kCorrupt, ""},
};

// Where there is no code that is known, as in answers to HEAD.
StoreErrc code_of_status(unsigned status) {
  switch (status) {
    case 404:
      return StoreErrc::kNotFound;
    case 412:
      return StoreErrc::kPreconditionFailed;
    case 409:
      return StoreErrc::kConflict;
    case 416:
      return StoreErrc::kInvalidRange;
    case 429:
    case 503:
      return StoreErrc::kThrottled;
    case 408:
      return StoreErrc::kTimeout;
    case 301:
    case 401:
    case 403:
      return StoreErrc::kDenied;
    case 507:
      return StoreErrc::kNoSpace;
    default:
      return status >= 500 || status < 400 ? StoreErrc::kUnavailable : StoreErrc::kBadRequest;
  }
}

bool parse(ByteView xml, pugi::xml_document& document) {
  return static_cast<bool>(
      document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8));
}

std::optional<std::string> url_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
      continue;
    }
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    uint8_t byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Bounded, and without line breaks: it goes into log lines.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 300));
  std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

}  // namespace

std::optional<ListPage> parse_list(ByteView xml) {
  pugi::xml_document document;
  if (!parse(xml, document)) return std::nullopt;
  pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return std::nullopt;
  bool is_encoded = std::string_view(root.child_value("EncodingType")) == "url";
  ListPage page;
  page.is_truncated = std::string_view(root.child_value("IsTruncated")) == "true";
  for (pugi::xml_node item : root.children("Contents")) {
    std::string_view text = item.child_value("Key");
    std::optional<std::string> key = is_encoded ? url_decoded(text) : std::string(text);
    std::optional<uint64_t> size = number_of(item.child_value("Size"));
    if (!key || key->empty() || !size) return std::nullopt;
    page.objects.push_back({std::move(*key), *size});
  }
  return page;
}

std::optional<std::vector<std::string>> parse_delete(ByteView xml) {
  pugi::xml_document document;
  if (!parse(xml, document)) return std::nullopt;
  pugi::xml_node root = document.child("DeleteResult");
  if (!root) return std::nullopt;
  std::vector<std::string> kept;
  for (pugi::xml_node item : root.children("Error")) {
    if (std::string_view(item.child_value("Code")) != "NoSuchKey") kept.emplace_back(item.child_value("Key"));
  }
  return kept;
}

std::optional<std::string> delete_body(const std::vector<std::string>& keys) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("Delete");
  root.append_attribute("xmlns").set_value("http://s3.amazonaws.com/doc/2006-03-01/");
  root.append_child("Quiet").text().set("true");
  for (const std::string& key : keys) {
    bool can_be_said = std::ranges::all_of(key, [](char c) { return static_cast<unsigned char>(c) >= ' '; });
    if (!can_be_said) return std::nullopt;
    root.append_child("Object").append_child("Key").text().set(key.c_str());
  }
  std::ostringstream text;
  document.save(text, "", pugi::format_raw | pugi::format_no_declaration, pugi::encoding_utf8);
  return text.str();
}

StoreError error_of(const runtime::http::Message& answer, std::string_view what, std::string_view now) {
  pugi::xml_document document;
  pugi::xml_node root;
  if (parse(answer.body.view(), document)) root = document.child("Error");
  std::string_view name = root.child_value("Code");
  auto known = std::ranges::find(kCodes, name, &Code::name);
  StoreError error;
  error.code = known != std::end(kCodes) ? known->code : code_of_status(answer.status);
  error.message = fmt::format("{}: {}", what, answer.status);
  if (!name.empty()) error.message += ' ' + one_line(name);
  if (std::string_view text = root.child_value("Message"); !text.empty())
    error.message += ": " + one_line(text);
  if (known != std::end(kCodes) && !known->advice.empty())
    error.message += fmt::format(" ({})", known->advice);
  if (name == "RequestTimeTooSkewed") {
    auto date = runtime::http::find_header(answer.headers, "date");
    error.message += fmt::format("; here it is {}, at the store {}", now, one_line(date.value_or("unknown")));
  }
  auto region = runtime::http::find_header(answer.headers, "x-amz-bucket-region");
  std::string_view right = region.value_or(root.child_value("Region"));
  if (error.code == StoreErrc::kDenied && !right.empty()) {
    error.message += "; the bucket's region is " + one_line(right);
  }
  auto request_id = runtime::http::find_header(answer.headers, "x-amz-request-id");
  if (request_id && !request_id->empty())
    error.message += fmt::format(" [request {}]", one_line(*request_id));
  return error;
}

}  // namespace varve::object_store::s3
