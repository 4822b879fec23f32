#include "base/compression.h"

#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace varve {
namespace {

// Contexts and buffers above this are given back rather than kept for the next input.
constexpr size_t kKeptBytesMax = 8u << 20;
constexpr size_t kCompressInputBytesMax = 1u << 30;

// snappy-java's stream: magic, version, oldest compatible version, all before the first block.
constexpr uint8_t kXerialMagic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
constexpr size_t kXerialHeaderBytes = 16;
constexpr size_t kXerialBlockBytes = 32 * 1024;
constexpr int32_t kXerialVersion = 1;

// LZ4 frame header: magic, then a byte of flags.
constexpr uint8_t kLz4Magic[4] = {0x04, 0x22, 0x4d, 0x18};
constexpr size_t kLz4HeaderBytesMin = 7;
constexpr uint8_t kLz4IndependentBlocks = 0x20;
constexpr uint8_t kLz4Reserved = 0x03;

using Read = Result<size_t, CompressionError>;

std::unexpected<CompressionError> corrupt(std::string message) {
  return fail(CompressionErrc::kCorrupt, std::move(message));
}
std::unexpected<CompressionError> no_memory() {
  return fail(CompressionErrc::kInternal, "no memory for a codec's context");
}
std::unexpected<CompressionError> too_large() {
  return fail(CompressionErrc::kTooLarge, "decompresses to more than is allowed");
}

bool starts_with(ByteView bytes, ByteView prefix) {
  return bytes.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

}  // namespace

class DecompressionStream {
 public:
  virtual ~DecompressionStream() = default;
  virtual void start(ByteView input, size_t output_bytes_max) = 0;
  // As Decompressor::read, but may be asked again after an error, and need not keep to the limit.
  virtual Result<size_t, CompressionError> read(MutableByteView into) = 0;
};

namespace {

class PlainStream final : public DecompressionStream {
 public:
  void start(ByteView input, size_t) override { input_ = input; }
  Read read(MutableByteView into) override {
    size_t size = std::min(into.size(), input_.size());
    std::copy_n(input_.begin(), size, into.begin());
    input_ = input_.subspan(size);
    return size;
  }

 private:
  ByteView input_;
};

class GzipStream final : public DecompressionStream {
 public:
  GzipStream() { ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~GzipStream() override {
    if (ready_) inflateEnd(&stream_);
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void start(ByteView input, size_t) override {
    input_ = input;
    in_member_ = true;
    if (ready_) inflateReset(&stream_);
  }
  Read read(MutableByteView into) override {
    if (!ready_) return no_memory();
    uInt room = static_cast<uInt>(std::min<size_t>(into.size(), std::numeric_limits<uInt>::max()));
    stream_.next_out = into.data();
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (!in_member_) {
        if (input_.empty()) return 0;
        inflateReset(&stream_);
        in_member_ = true;
      }
      uInt given = static_cast<uInt>(std::min<size_t>(input_.size(), std::numeric_limits<uInt>::max()));
      stream_.next_in = const_cast<Bytef*>(input_.data());
      stream_.avail_in = given;
      int status = inflate(&stream_, Z_NO_FLUSH);
      input_ = input_.subspan(given - stream_.avail_in);
      if (status == Z_STREAM_END) {
        in_member_ = false;
      } else if (status == Z_MEM_ERROR) {
        return no_memory();
      } else if (status == Z_BUF_ERROR) {
        return corrupt("gzip: cut short");
      } else if (status != Z_OK) {
        return corrupt(stream_.msg != nullptr ? std::string("gzip: ") + stream_.msg : "gzip: bad data");
      }
    }
    return room - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  ByteView input_;
  bool ready_;
  bool in_member_ = true;
};

class SnappyStream final : public DecompressionStream {
 public:
  void start(ByteView input, size_t output_bytes_max) override {
    input_ = input;
    output_left_ = output_bytes_max;
    xerial_ = starts_with(input, kXerialMagic);
    begun_ = false;
    pending_ = {};
    if (block_.capacity() > kKeptBytesMax) block_ = {};
  }
  Read read(MutableByteView into) override {
    while (pending_.empty()) {
      if (begun_ && input_.empty()) return 0;
      begun_ = true;
      auto next = take_block();
      if (!next) return pass_error(next);
      if (!next->has_value()) continue;
      auto direct = uncompress(**next, into);
      if (!direct || *direct > 0) return direct;
    }
    size_t size = std::min(into.size(), pending_.size());
    std::copy_n(pending_.begin(), size, into.begin());
    pending_ = pending_.subspan(size);
    return size;
  }

 private:
  // The next raw block; nullopt: it was a stream header.
  Result<std::optional<ByteView>, CompressionError> take_block() {
    if (!xerial_) return std::exchange(input_, {});
    if (starts_with(input_, kXerialMagic)) {
      if (input_.size() < kXerialHeaderBytes) return corrupt("snappy: header cut short");
      // Some writers store the versions in little endian; like snappy-java, ask only that it is not too old.
      if (load_be<int32_t>(input_.data() + 8) < kXerialVersion) return corrupt("snappy: unknown version");
      input_ = input_.subspan(kXerialHeaderBytes);
      return std::nullopt;
    }
    if (input_.size() < 4) return corrupt("snappy: block length cut short");
    uint32_t size = load_be<uint32_t>(input_.data());
    if (size > input_.size() - 4) return corrupt("snappy: block cut short");
    ByteView block = input_.subspan(4, size);
    input_ = input_.subspan(4 + size);
    return block;
  }

  // Into `into` if it fits there (the bytes written), else, or when empty, into block_ (0).
  Read uncompress(ByteView block, MutableByteView into) {
    const char* from = reinterpret_cast<const char*>(block.data());
    size_t size = 0;
    if (!snappy::GetUncompressedLength(from, block.size(), &size)) return corrupt("snappy: bad block length");
    // Three bytes give at most 64: a larger claim is a lie, told before any memory is taken.
    if (size / 22 > block.size()) return corrupt("snappy: bad block length");
    if (size > output_left_) return too_large();
    bool direct = size <= into.size();
    if (!direct) block_.resize(size);
    uint8_t* to = direct ? into.data() : block_.data();
    if (!snappy::RawUncompress(from, block.size(), reinterpret_cast<char*>(to))) {
      return corrupt("snappy: bad block");
    }
    output_left_ -= size;
    if (direct) return size;
    pending_ = block_;
    return 0;
  }

  ByteView input_;
  ByteView pending_;  // of block_, not handed out yet
  std::vector<uint8_t> block_;
  size_t output_left_ = 0;
  bool xerial_ = false;
  bool begun_ = false;
};

class Lz4Stream final : public DecompressionStream {
 public:
  Lz4Stream() { ready_ = LZ4F_isError(LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) == 0; }
  ~Lz4Stream() override {
    if (ready_) LZ4F_freeDecompressionContext(context_);
  }
  Lz4Stream(const Lz4Stream&) = delete;
  Lz4Stream& operator=(const Lz4Stream&) = delete;

  void start(ByteView input, size_t) override {
    input_ = input;
    header_checked_ = false;
    finished_ = false;
    if (ready_) LZ4F_resetDecompressionContext(context_);
  }
  Read read(MutableByteView into) override {
    if (!ready_) return no_memory();
    if (!header_checked_) {
      if (input_.size() < kLz4HeaderBytesMin || !starts_with(input_, kLz4Magic))
        return corrupt("lz4: no frame");
      uint8_t flags = input_[4];
      if ((flags & kLz4IndependentBlocks) == 0) return corrupt("lz4: linked blocks");
      if ((flags & kLz4Reserved) != 0) return corrupt("lz4: reserved flags or a dictionary");
      header_checked_ = true;
    }
    while (!finished_) {
      size_t written = into.size();
      size_t used = input_.size();
      size_t hint = LZ4F_decompress(context_, into.data(), &written, input_.data(), &used, nullptr);
      if (LZ4F_isError(hint) != 0) return corrupt(std::string("lz4: ") + LZ4F_getErrorName(hint));
      input_ = input_.subspan(used);
      finished_ = hint == 0;
      if (finished_ && !input_.empty()) return corrupt("lz4: bytes after the frame");
      if (written > 0) return written;
      if (!finished_ && used == 0) return corrupt("lz4: cut short");
    }
    return 0;
  }

 private:
  LZ4F_dctx* context_ = nullptr;
  ByteView input_;
  bool ready_;
  bool header_checked_ = false;
  bool finished_ = false;
};

class ZstdStream final : public DecompressionStream {
 public:
  ~ZstdStream() override { ZSTD_freeDCtx(context_); }
  ZstdStream() = default;
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  void start(ByteView input, size_t) override {
    input_ = input;
    in_frame_ = true;
    if (context_ != nullptr && ZSTD_sizeof_DCtx(context_) > kKeptBytesMax) {
      ZSTD_freeDCtx(context_);
      context_ = nullptr;
    }
    if (context_ == nullptr) {
      context_ = ZSTD_createDCtx();
    } else {
      ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    }
  }
  Read read(MutableByteView into) override {
    if (context_ == nullptr) return no_memory();
    while (in_frame_ || !input_.empty()) {
      ZSTD_inBuffer from{input_.data(), input_.size(), 0};
      ZSTD_outBuffer to{into.data(), into.size(), 0};
      size_t hint = ZSTD_decompressStream(context_, &to, &from);
      if (ZSTD_isError(hint) != 0) return corrupt(std::string("zstd: ") + ZSTD_getErrorName(hint));
      input_ = input_.subspan(from.pos);
      in_frame_ = hint != 0;
      if (to.pos > 0) return to.pos;
      if (in_frame_ && from.pos == 0) return corrupt("zstd: cut short");
    }
    return 0;
  }

 private:
  ZSTD_DCtx* context_ = nullptr;
  ByteView input_;
  bool in_frame_ = true;
};

std::unique_ptr<DecompressionStream> make_stream(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return std::make_unique<PlainStream>();
    case Codec::kGzip:
      return std::make_unique<GzipStream>();
    case Codec::kSnappy:
      return std::make_unique<SnappyStream>();
    case Codec::kLz4:
      return std::make_unique<Lz4Stream>();
    case Codec::kZstd:
      return std::make_unique<ZstdStream>();
  }
  check_failed(__FILE__, __LINE__, "codec", "not a codec");
}

Result<void, CompressionError> compress_gzip(ByteView input, ByteWriter& out) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return no_memory();
  }
  std::vector<uint8_t> buffer(deflateBound(&stream, input.size()));
  stream.next_in = const_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = buffer.data();
  stream.avail_out = static_cast<uInt>(buffer.size());
  int status = deflate(&stream, Z_FINISH);
  deflateEnd(&stream);
  CHECK(status == Z_STREAM_END, "deflateBound was too small");
  out.raw(ByteView(buffer).first(buffer.size() - stream.avail_out));
  return {};
}

void compress_snappy(ByteView input, ByteWriter& out) {
  out.raw(kXerialMagic);
  out.be<int32_t>(kXerialVersion);
  out.be<int32_t>(kXerialVersion);
  std::vector<char> block(snappy::MaxCompressedLength(std::min(input.size(), kXerialBlockBytes)));
  while (!input.empty()) {
    ByteView piece = input.first(std::min(input.size(), kXerialBlockBytes));
    input = input.subspan(piece.size());
    size_t size = 0;
    snappy::RawCompress(reinterpret_cast<const char*>(piece.data()), piece.size(), block.data(), &size);
    out.be<int32_t>(static_cast<int32_t>(size));
    out.raw(as_bytes({block.data(), size}));
  }
}

Result<void, CompressionError> compress_lz4(ByteView input, ByteWriter& out) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  std::vector<uint8_t> buffer(LZ4F_compressFrameBound(input.size(), &preferences));
  size_t size = LZ4F_compressFrame(buffer.data(), buffer.size(), input.data(), input.size(), &preferences);
  if (LZ4F_isError(size) != 0) return no_memory();
  out.raw(ByteView(buffer).first(size));
  return {};
}

Result<void, CompressionError> compress_zstd(ByteView input, ByteWriter& out) {
  std::vector<uint8_t> buffer(ZSTD_compressBound(input.size()));
  size_t size = ZSTD_compress(buffer.data(), buffer.size(), input.data(), input.size(), ZSTD_CLEVEL_DEFAULT);
  if (ZSTD_isError(size) != 0) return no_memory();
  out.raw(ByteView(buffer).first(size));
  return {};
}

}  // namespace

std::optional<Codec> codec_of_id(int id) {
  if (id < 0 || static_cast<size_t>(id) >= kAllCodecs.size()) return std::nullopt;
  return kAllCodecs[static_cast<size_t>(id)];
}

Decompressor::Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;
Decompressor::~Decompressor() = default;

void Decompressor::start(Codec codec, ByteView input, size_t output_bytes_max) {
  auto& stream = streams_.at(static_cast<size_t>(codec));
  if (stream == nullptr) stream = make_stream(codec);
  stream->start(input, output_bytes_max);
  current_ = stream.get();
  left_bytes_ = output_bytes_max;
  error_.reset();
}

Result<size_t, CompressionError> Decompressor::read(MutableByteView into) {
  CHECK(current_ != nullptr && !into.empty(), "read without start, or into nothing");
  if (error_.has_value()) return std::unexpected(*error_);
  // With the limit reached, one more byte tells an end from an excess.
  uint8_t excess = 0;
  MutableByteView room =
      left_bytes_ > 0 ? into.first(std::min(into.size(), left_bytes_)) : MutableByteView(&excess, 1);
  Read got = current_->read(room);
  if (got.has_value() && *got > left_bytes_) got = too_large();
  if (got.has_value()) {
    left_bytes_ -= *got;
  } else {
    error_ = got.error();
  }
  return got;
}

Result<void, CompressionError> compress(Codec codec, ByteView input, ByteWriter& out) {
  if (input.size() > kCompressInputBytesMax)
    return fail(CompressionErrc::kTooLarge, "more than 1 GiB to compress");
  switch (codec) {
    case Codec::kNone:
      out.raw(input);
      return {};
    case Codec::kGzip:
      return compress_gzip(input, out);
    case Codec::kSnappy:
      compress_snappy(input, out);
      return {};
    case Codec::kLz4:
      return compress_lz4(input, out);
    case Codec::kZstd:
      return compress_zstd(input, out);
  }
  check_failed(__FILE__, __LINE__, "codec", "not a codec");
}

}  // namespace varve
