// From a group in memory to the entries that store it.
#pragma once

#include "broker/group/group.h"

namespace varve::broker {

struct SaveStep {
  metadata::SaveGroup command;
  // False: the group does not fit into one entry. After this step was applied another has to follow; until then the
  // group in state is one that waits for its members, or for its leader.
  bool is_complete = true;
};

// What has to be stored so that the group in state becomes what `group` is. `stored`: the group as it is in state,
// nullptr if it is not. Names only what differs: `bytes_max` bounds the details and assignments in it, but for the
// first. Members in their first join are left out, since they do not know yet that they are members.
SaveStep next_save(const Group& group, const metadata::GroupView* stored, size_t bytes_max);

}  // namespace varve::broker
