// Names of objects in the store (docs/formats/keys.md). Keys carry the log id, the uploader's nonce and the fence
// epoch, so that the log can tell its own objects from everybody else's (invariant 6).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace varve::metadata {

struct WalObjectName {
  Uuid log_id;
  Nonce nonce;
  FenceEpoch epoch;
  ObjectNumber number;

  bool operator==(const WalObjectName&) const = default;
};

// "<prefix>/_wal/<2 hex>/<epoch, 16 hex>-<log id, 32 hex>-<nonce, 16 hex>-<number, 16 hex>". The two digits spread
// the load; they are a hash of the rest, one of 256.
std::string wal_key(std::string_view prefix, const WalObjectName& name);
// nullopt: not the key of a WAL object under this prefix.
std::optional<WalObjectName> parse_wal_key(std::string_view prefix, std::string_view key);

}  // namespace varve::metadata
