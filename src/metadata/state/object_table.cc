#include "metadata/state/object_table.h"

namespace varve::metadata {

ChunkKey chunk_of(const ObjectId& id) {
  return {ChunkKind::kObjects, id.incarnation.value(), id.number.value() / kObjectsPerChunk};
}

bool Object::is_resolved(uint32_t index) const {
  if (resolved == run_count) return true;
  size_t word = index / 64;
  return word < resolved_bits.size() && (resolved_bits[word] >> (index % 64) & 1) != 0;
}

bool Object::says_the_same(const CommitObject& command) const {
  return epoch == command.epoch && bytes == command.bytes && crc == command.crc &&
         run_count == command.run_count;
}

Object* ObjectTable::find(ObjectId id) {
  auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

const Object* ObjectTable::find(ObjectId id) const {
  auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

Object& ObjectTable::find_or_add(const CommitObject& command, DereferenceMoment now) {
  if (Object* known = find(command.object)) return *known;
  touch(command.object);
  Object& object = by_id_[command.object];
  object.id = command.object;
  object.epoch = command.epoch;
  object.bytes = command.bytes;
  object.crc = command.crc;
  object.run_count = command.run_count;
  // Nobody can have planned a read of an object that no run ever named.
  make_pending(object, now, /*needs_grace=*/false);
  return object;
}

void ObjectTable::resolve(Object& object, uint32_t index) {
  touch(object.id);
  if (++object.resolved == object.run_count) {
    object.resolved_bits = {};
    return;
  }
  size_t word = index / 64;
  if (word >= object.resolved_bits.size()) object.resolved_bits.resize(word + 1);
  object.resolved_bits[word] |= uint64_t{1} << (index % 64);
}

void ObjectTable::add_reference(Object& object) {
  if (object.references != 0) {
    ++object.references;
    return;
  }
  touch(object.id);
  object.references = 1;
  pending_.erase({object.dereferenced.position, object.id});
  object.dereferenced = {};
  object.needs_grace = false;
}

void ObjectTable::remove_reference(Object& object, DereferenceMoment now, bool is_readable) {
  CHECK(object.references > 0);
  if (is_readable && !object.may_have_readers) {
    touch(object.id);
    object.may_have_readers = true;
  }
  if (object.references == 1) touch(object.id);
  if (--object.references == 0) make_pending(object, now, object.may_have_readers);
}

void ObjectTable::forget(Object& object) {
  CHECK(object.is_pending());
  touch(object.id);
  pending_.erase({object.dereferenced.position, object.id});
  by_id_.erase(ObjectId(object.id));
}

bool ObjectTable::restore(Object object) {
  ObjectId id = object.id;
  auto [at, is_new] = by_id_.try_emplace(id, std::move(object));
  return is_new;
}

bool ObjectTable::finish_restore() {
  for (auto& [id, object] : by_id_) {
    bool was_pending = object.dereferenced.position != LogPosition();
    if (was_pending != object.is_pending()) return false;
    if (was_pending) pending_.emplace(std::pair(object.dereferenced.position, id), &object);
  }
  return true;
}

void ObjectTable::make_pending(Object& object, DereferenceMoment now, bool needs_grace) {
  object.dereferenced = now;
  object.needs_grace = needs_grace;
  pending_.emplace(std::pair(now.position, object.id), &object);
}

void ObjectTable::touch(const ObjectId& id) { changes_->touch(chunk_of(id)); }

}  // namespace varve::metadata
