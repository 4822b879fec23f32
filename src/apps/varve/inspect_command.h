// `varve inspect`: what is stored, as text for people.
#pragma once

#include <cstdint>
#include <string>

namespace varve::apps {

struct InspectOptions {
  enum class What : uint8_t { kObject, kSnapshot, kLog };
  What what = What::kObject;
  std::string file;
  std::string data_folder = "./varve-data";
  std::string key_namespace = "default";
  std::string admin;
  uint64_t after = 0;
  uint64_t limit = 100;
};

// Returns the exit code: kExitFailed if the thing cannot be read or is damaged, which is then said.
int run_inspect(const InspectOptions& options);

}  // namespace varve::apps
