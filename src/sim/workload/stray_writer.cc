#include "sim/workload/stray_writer.h"

namespace varve::sim {

using metadata::Entry;
using metadata::EntryKey;
using metadata::LogErrc;
using runtime::Task;

namespace {

constexpr Duration kPauseMax = 500ms;
// Keys of entries that do not count stay clear of those that do.
constexpr uint64_t kOddKeysFrom = 1'000'000;

}  // namespace

StrayWriter::StrayWriter(World& world, SimMetadataLog& log, LogAudit& audit)
    : world_(world),
      audit_(audit),
      node_(world, {.host = "stray", .io_count = 1}),
      random_(world.random().fork()),
      log_(log.client(node_.process())) {}

StrayWriter::~StrayWriter() {
  if (node_.is_up()) node_.crash(CrashKind::kKilled);
}

void StrayWriter::start(size_t entries) { scope_.spawn(node_.process().io(0), "stray writer", run(entries)); }

Task<> StrayWriter::run(size_t entries) {
  while (!co_await log_->open(random_.uuid())) co_await runtime::sleep_for(kPauseMax);
  bool has_session = false;
  for (size_t i = 0; i < entries; ++i) {
    co_await runtime::sleep_for(Duration(random_.between(0, kPauseMax.count())));
    if (!has_session) {
      has_session = co_await register_as(Nonce(random_.next()));
      continue;
    }
    if (random_.chance(1, 12)) {
      has_session = co_await write_as_fenced();
      continue;
    }
    bool counts = false;
    std::vector<uint8_t> bytes = draw_bytes(counts);
    EntryKey key{nonce_, counts ? last_.plus(1) : EntrySequence(kOddKeysFrom + ++keys_)};
    if (counts) ++last_;
    has_session = co_await append(key, Slice::take(std::move(bytes)));
  }
  // As long as one lives, perhaps of a registration that got no answer, the cluster takes it for a broker, which leads partitions and owns groups.
  for (Nonce nonce : sessions_) {
    while (!co_await log_->end_session(nonce)) co_await runtime::sleep_for(kPauseMax);
  }
}

Task<bool> StrayWriter::register_as(Nonce nonce) {
  sessions_.push_back(nonce);
  auto session = co_await log_->begin_session(nonce);
  if (!session) co_return false;
  audit_.excuse(nonce);
  Entry entry;
  entry.nonce = nonce;
  entry.sequence = EntrySequence(1);
  entry.time = node_.wall_now();
  metadata::RegisterBroker command;
  command.broker = kStrayBroker;
  command.highest_level = metadata::kHighestFeatureLevel;
  entry.commands.push_back(std::move(command));
  auto appended =
      co_await log_->append({nonce, entry.sequence}, LogPosition(), Slice::take(encode_entry(entry)));
  if (!appended) co_return false;
  nonce_ = nonce;
  incarnation_ = Incarnation(appended->value());
  last_ = EntrySequence(1);
  co_return true;
}

// The next registration fences this incarnation, whose session lives on for a while.
Task<bool> StrayWriter::write_as_fenced() {
  Entry entry = next_entry();
  entry.commands.emplace_back(metadata::Beat{});
  if (!co_await register_as(Nonce(random_.next()))) co_return false;
  co_await append({entry.nonce, entry.sequence}, Slice::take(encode_entry(entry)));
  co_return true;
}

Task<bool> StrayWriter::append(EntryKey key, Slice bytes) {
  for (;;) {
    auto appended = co_await log_->append(key, LogPosition(), bytes);
    if (appended) co_return true;
    if (appended.error().code != LogErrc::kUnknown) co_return false;
    co_await runtime::sleep_for(50ms);
  }
}

Entry StrayWriter::next_entry() const {
  Entry entry;
  entry.nonce = nonce_;
  entry.incarnation = incarnation_;
  entry.sequence = last_.plus(1);
  entry.time = node_.wall_now();
  return entry;
}

std::vector<uint8_t> StrayWriter::draw_bytes(bool& counts) {
  counts = random_.chance(2, 3);
  if (!counts) return draw_bad_entry();
  audit_.catch_up();
  Entry entry = next_entry();
  size_t commands = 1 + random_.below(4);
  for (size_t i = 0; i < commands; ++i) {
    entry.commands.push_back(draw_refused_command(audit_.state(), incarnation_, random_));
  }
  return encode_entry(entry);
}

std::vector<uint8_t> StrayWriter::draw_bad_entry() {
  Entry entry = next_entry();
  entry.commands.emplace_back(metadata::Beat{});
  switch (random_.below(6)) {
    case 0: {
      std::vector<uint8_t> bytes = encode_entry(entry);
      bytes[random_.below(bytes.size())] ^= 1;
      return bytes;
    }
    case 1:
      entry.level = metadata::kHighestFeatureLevel.plus(1);
      break;
    case 2:
      entry.incarnation = incarnation_.plus(random_.below(1'000) + 1);
      break;
    case 3:
      entry.sequence = last_.plus(1 + random_.below(5) + 1);
      break;
    case 4:
      entry.sequence = last_;
      break;
    default:
      // A registration of nobody, or of a nonce that is taken.
      entry.incarnation = Incarnation(0);
      entry.sequence = EntrySequence(1);
      break;
  }
  return encode_entry(entry);
}

}  // namespace varve::sim
