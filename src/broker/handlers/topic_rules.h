// What a topic may be called, and what its configs (broker/settings/topic_configs.h) demand of batches.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "metadata/client/image.h"
#include "protocol/records/validate.h"

namespace varve::broker {

// Why no topic can have this name, as a sentence; nullopt if it can. Kafka's rules, and names that would be taken
// for something else in the object store.
std::optional<std::string> topic_name_problem(std::string_view name);

// Names that differ only in '.' and '_' would share Kafka's metrics, so it refuses such a pair.
bool has_collision_characters(std::string_view name);
// The same for both names of such a pair.
std::string unified_name(std::string_view name);

// Kafka's two own topics, which clients may not fill by asking for them.
bool is_internal_topic(std::string_view name);

// Whether its records go by compaction only, and not by age, size or a client's wish.
bool is_compacted_only(const metadata::TopicView& topic);

// How batches for the topic are checked (all but `now` and zstd_allowed).
protocol::records::ProduceRules produce_rules(const metadata::TopicView& topic, const Limits& limits);

}  // namespace varve::broker
