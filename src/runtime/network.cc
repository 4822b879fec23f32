#include "runtime/network.h"

namespace varve::runtime {

std::string Address::to_string() const {
  bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace varve::runtime
