// `varve broker`: one broker on this machine, its objects and its metadata log in a local folder.
#pragma once

#include <string>

namespace varve::apps {

struct BrokerOptions {
  std::string config_file;
  bool print_configuration_docs = false;
};

// Returns the exit code when the broker has ended; until then it has the process for itself (signals, standard
// streams). A start that fails says why in one line on standard error.
int run_broker(const BrokerOptions& options);

}  // namespace varve::apps
