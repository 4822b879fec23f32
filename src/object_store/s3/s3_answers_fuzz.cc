// Any bytes as the documents that a store answers with: no crash; an error is one line of bounded length.
#include "base/check.h"
#include "object_store/s3/s3_answers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve;
  using namespace varve::object_store;
  ByteView input(data, size);
  if (auto page = s3::parse_list(input)) {
    for (const ObjectInfo& object : page->objects) CHECK(!object.key.empty());
  }
  s3::parse_delete(input);
  runtime::http::Message answer;
  answer.status = size == 0 ? 500 : 400 + data[0];
  answer.body = Slice::copy_of(input);
  StoreError error = s3::error_of(answer, "GET k", "20260101T000000Z");
  CHECK(error.message.size() < 2'000 && error.message.find('\n') == std::string::npos);
  return 0;
}
