// How the actors of a run set up our own client.
#pragma once

#include <string>

#include "base/random.h"
#include "client/cluster.h"
#include "sim/workload/kafka_client.h"

namespace varve::sim {

// It knows all brokers from the start, and speaks any version that both know. `random` outlives the cluster.
client::ClusterOptions cluster_options(const WorkloadContext& context, std::string client_id,
                                       Duration request_timeout, Random& random);

}  // namespace varve::sim
