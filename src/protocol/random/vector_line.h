// One line of a vector file: "key request|response version hex [hex]". The first hex is a message as an encoder
// writes it ("-": no bytes), the second the same message with tagged fields that we do not know.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"
#include "protocol/random/message_ops.h"

namespace varve::protocol {

struct VectorCounts {
  size_t messages = 0;
  size_t with_unknown_tags = 0;
};

// Decodes what the line holds and encodes it again; the bytes must be the same, and the unknown tags must make no
// difference. Empty if all is well, else what is wrong.
std::string check_vector_line(std::string_view line, VectorCounts& counts);

// A line with a random message.
std::string random_vector_line(const MessageOps& ops, int16_t version, Random& random);

}  // namespace varve::protocol
