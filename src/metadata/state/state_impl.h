// The inside of State, for the files that implement its methods.
#pragma once

#include "metadata/state/state_data.h"

namespace varve::metadata {

struct State::Impl : StateData {};

}  // namespace varve::metadata
