// Where a broker on one machine keeps what: the parts of KAFSCALE_DATA_DIR.
#pragma once

#include <string>

#include "metadata/log/sqlite/sqlite_log_options.h"
#include "object_store/fs/folder_options.h"

namespace varve::broker {

// The local object store, in `objects`, ready for the keys of `key_namespace`.
object_store::FolderStoreOptions store_options_in(const std::string& data_folder,
                                                  const std::string& key_namespace);
// The metadata log, in `metadata`.
metadata::SqliteLogOptions log_options_in(const std::string& data_folder);

}  // namespace varve::broker
