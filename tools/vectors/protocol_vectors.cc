// protocol_vectors: our side of tools/vectors/vectors.py. Lines as in vector_line.h.
//   protocol_vectors check < LINES          checks them all, stops at the first that is wrong
//   protocol_vectors write COUNT SEED       writes COUNT random messages of every API and version
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "protocol/random/vector_line.h"

namespace varve::protocol {
namespace {

int check() {
  VectorCounts counts;
  for (std::string line; std::getline(std::cin, line);) {
    std::string wrong = check_vector_line(line, counts);
    if (!wrong.empty()) {
      fmt::print(stderr, "{}\n", wrong);
      return 1;
    }
  }
  fmt::print("{} messages come out with the same bytes, {} of them were also read with unknown tags\n",
             counts.messages, counts.with_unknown_tags);
  return 0;
}

int write(long count, uint64_t seed) {
  Random random(seed);
  for (const MessageOps* ops : all_messages()) {
    for (int16_t version = ops->min_version; version <= ops->max_version; ++version) {
      for (long i = 0; i < count; ++i) fmt::print("{}\n", random_vector_line(*ops, version, random));
    }
  }
  return 0;
}

}  // namespace
}  // namespace varve::protocol

int main(int argc, char** argv) {
  std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "check" && argc == 2) return varve::protocol::check();
  if (command == "write" && argc == 4) {
    return varve::protocol::write(std::atol(argv[2]), std::strtoull(argv[3], nullptr, 10));
  }
  fmt::print(stderr, "protocol_vectors check | protocol_vectors write COUNT SEED\n");
  return 2;
}
