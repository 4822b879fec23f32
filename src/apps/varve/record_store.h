// Where this process keeps records: the local folder, or the bucket that the settings name.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "broker/settings/settings.h"
#include "object_store/fs/folder_store.h"
#include "object_store/s3/s3_store.h"
#include "runtime/runtime.h"
#include "runtime/tls/tls_context.h"

namespace varve::apps {

// What the settings say of it.
struct RecordPlace {
  std::string name;  // "bucket b at http://127.0.0.1:9000", "./varve-data"
  object_store::FolderStoreOptions folder;
  std::optional<object_store::s3::S3Options> bucket;  // none: in the folder
  std::optional<runtime::TlsContext> tls;             // where the bucket's endpoint speaks it
};

// Reads the machine's certificate authorities where they are needed. The error is a sentence.
Result<RecordPlace, std::string> record_place_of(const broker::Settings& settings);

// Life: construct before the broker, open() before its start, close() after its stop, destroy.
class RecordStore {
 public:
  RecordStore(runtime::Runtime& runtime, RecordPlace place);

  object_store::ObjectStore& store();
  bool is_bucket() const { return bucket_ != nullptr; }
  const std::string& name() const { return name_; }

  // The folder is made and locked. A bucket is left alone: the broker's start is the first to ask it.
  runtime::Task<Result<void, std::string>> open();
  runtime::Task<> close();

 private:
  const std::string name_;
  std::unique_ptr<object_store::FolderStore> folder_;
  std::unique_ptr<object_store::S3Store> bucket_;
};

}  // namespace varve::apps
