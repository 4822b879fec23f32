// Any bytes: parsing and verifying an object must end without reading outside or taking memory first. The header's,
// trailer's and directory's checksums are made right, so that the fuzzer gets past them.
#include "base/crc32c.h"
#include "storage/format/wal_object.h"

namespace varve::storage {
namespace {

void read_all(ByteView bytes) {
  auto object = parse_wal_object(bytes);
  if (object) verify_wal_batches(bytes, *object);
}

// Makes the input an object whose outer checks hold: its bytes are batches, then the directory.
void read_repaired(ByteView input) {
  if (input.size() < 2) return;
  size_t split = load_be<uint16_t>(input.data()) % input.size();
  ByteWriter out;
  out.be(kWalMagic);
  out.be(kWalVersion);
  out.raw(std::vector<uint8_t>(kWalHeaderBytes - 14));
  out.be(crc32c(out.view()));
  out.raw(input.first(split));
  uint64_t position = out.size();
  out.raw(input.subspan(split));
  out.be(position);
  out.be(static_cast<uint32_t>(input.size() - split));
  out.be(crc32c(input.subspan(split)));
  out.be(kWalTrailerMagic);
  read_all(out.view());
}

}  // namespace
}  // namespace varve::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  varve::storage::read_all({data, size});
  varve::storage::read_repaired({data, size});
  return 0;
}
