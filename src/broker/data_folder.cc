#include "broker/data_folder.h"

namespace varve::broker {

object_store::FolderStoreOptions store_options_in(const std::string& data_folder,
                                                  const std::string& key_namespace) {
  object_store::FolderStoreOptions options;
  options.root = data_folder + "/objects";
  options.make_root = true;
  options.fan_out = key_namespace + "/_wal/";
  // Snapshots are what lets the log be trimmed.
  options.reserve_exempt = key_namespace + "/_log/";
  return options;
}

metadata::SqliteLogOptions log_options_in(const std::string& data_folder) {
  metadata::SqliteLogOptions options;
  options.folder = data_folder + "/metadata";
  return options;
}

}  // namespace varve::broker
