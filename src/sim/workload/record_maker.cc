#include "sim/workload/record_maker.h"

#include "base/bytes.h"
#include "base/random.h"

namespace varve::sim {

client::NewRecord make_sim_record(uint64_t number, size_t value_bytes, WallTime timestamp) {
  std::string value(std::max(value_bytes, sizeof(number)), '\0');
  store_be(reinterpret_cast<uint8_t*>(value.data()), number);
  Random random(number);
  for (size_t at = sizeof(number); at < value.size(); ++at) value[at] = static_cast<char>(random.below(16));
  client::NewRecord record{.key = {}, .value = {}, .headers = {}, .timestamp = timestamp};
  if (number % 3 == 1) record.key = value.substr(0, sizeof(number));
  record.value = std::move(value);
  return record;
}

}  // namespace varve::sim
