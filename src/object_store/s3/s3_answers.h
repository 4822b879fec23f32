// What S3 answers: XML documents, and errors told by status and code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object_store/object_store.h"
#include "runtime/http/message_reader.h"

namespace varve::object_store::s3 {

// Of ListObjectsV2, asked for with encoding-type=url; nullopt: not that document.
std::optional<ListPage> parse_list(ByteView xml);

// Of DeleteObjects: the keys that are still there; nullopt: not that document.
std::optional<std::vector<std::string>> parse_delete(ByteView xml);

// The body of DeleteObjects; nullopt: XML 1.0 cannot say one of the keys (a control character).
std::optional<std::string> delete_body(const std::vector<std::string>& keys);

// The error that an answer with a status of 300 or more is. `what` names the request ("put a/b"); `now` is the date
// here, told beside the store's where they are too far apart.
StoreError error_of(const runtime::http::Message& answer, std::string_view what, std::string_view now);

}  // namespace varve::object_store::s3
