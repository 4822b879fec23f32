#include "sim/workload/cluster_options.h"

#include <utility>

namespace varve::sim {

client::ClusterOptions cluster_options(const WorkloadContext& context, std::string client_id,
                                       Duration request_timeout, Random& random) {
  client::ClusterOptions options;
  for (const std::string& host : context.hosts) options.bootstrap.push_back({host, kKafkaPort});
  options.client_id = std::move(client_id);
  options.connect_timeout = 2s;
  options.request_timeout = request_timeout;
  options.metadata_age_max = 10s;
  options.choose_version = [&random](protocol::ApiKey, client::VersionRange range) {
    return static_cast<int16_t>(random.between(range.low, range.high));
  };
  return options;
}

}  // namespace varve::sim
