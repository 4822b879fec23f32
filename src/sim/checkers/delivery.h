// What must hold of batches when all is read: nothing acknowledged is lost, nothing comes twice, the order is kept.
#pragma once

#include <map>
#include <string>

#include "sim/checkers/history.h"

namespace varve::sim {

// For each broker: the extent of each partition, [log start, end).
using BrokerExtents = std::map<std::string, std::map<PartitionKey, std::pair<Offset, Offset>>>;

// After every broker was read from start to end, of the topics that surely exist:
// all brokers have the same extents, which begin as far up as clients deleted records and no further; each batch follows
// the one before it directly; each acknowledged batch that was not deleted is at its offset; batches that were refused
// are not there; what may be stored once is there once (invariants 1, 9).
void check_delivery(const History& history, TopicBook& topics, const BrokerExtents& extents,
                    Findings& findings);

// Of everything that was ever read: sequences of a producer's epoch are dense and rise with the offsets; batches of
// one connection that were sent once lie in the order of sending (invariant 9).
void check_order(const History& history, Findings& findings);

}  // namespace varve::sim
