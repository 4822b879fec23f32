#include "object_store/s3/s3_options.h"

#include <fmt/format.h>

#include <charconv>

namespace varve::object_store::s3 {

std::string Endpoint::authority() const {
  std::string name = host.find(':') == std::string::npos ? host : '[' + host + ']';
  return port == (is_tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

Result<Endpoint, std::string> parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  std::string_view rest = text;
  if (size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    std::string_view name = rest.substr(0, scheme);
    if (name != "http" && name != "https") return std::unexpected("the scheme is neither http nor https");
    endpoint.is_tls = name == "https";
    rest.remove_prefix(scheme + 3);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  endpoint.port = endpoint.is_tls ? 443 : 80;
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) {
    return std::unexpected("only a scheme, a host and a port can be said");
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    size_t end = rest.find(']');
    if (end == std::string_view::npos) return std::unexpected("'[' has no ']'");
    endpoint.host = std::string(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return std::unexpected("']' is followed by no port");
    if (!rest.empty()) port = rest.substr(1);
    if (!rest.empty() && port.empty()) return std::unexpected("the port is no number from 1 to 65535");
  } else {
    size_t colon = rest.find(':');
    endpoint.host = std::string(rest.substr(0, colon));
    if (colon != std::string_view::npos) {
      port = rest.substr(colon + 1);
      if (port.empty()) return std::unexpected("the port is no number from 1 to 65535");
    }
  }
  if (endpoint.host.empty()) return std::unexpected("it names no host");
  if (!port.empty()) {
    auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (error != std::errc() || end != port.data() + port.size() || endpoint.port == 0) {
      return std::unexpected("the port is no number from 1 to 65535");
    }
  }
  return endpoint;
}

Endpoint aws_endpoint(std::string_view region) {
  // China's regions are a world of their own.
  std::string_view domain = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return {.is_tls = true, .host = fmt::format("s3.{}.{}", region, domain), .port = 443};
}

}  // namespace varve::object_store::s3
