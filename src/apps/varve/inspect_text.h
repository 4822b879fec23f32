// Stored things as lines of text.
#pragma once

#include <string>

#include "metadata/client/snapshot_store.h"
#include "metadata/state/entry.h"
#include "metadata/state/state.h"
#include "storage/format/wal_object.h"

namespace varve::apps {

// One line an entry and one, indented, for each of its commands.
std::string entry_text(LogPosition position, const metadata::Entry& entry);
// Header, directory, and what verify_wal_batches() found; `is_sound` tells whether that was nothing.
std::string wal_object_text(ByteView bytes, const storage::WalObject& object, bool& is_sound);
std::string manifest_text(const metadata::SnapshotManifest& manifest);
// Brokers, topics with their partitions' offsets, groups with theirs, and what waits for deletion.
std::string state_text(const metadata::State& state);

}  // namespace varve::apps
