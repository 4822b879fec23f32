// Names and priorities of the runtime's threads.
#pragma once

#include <string>

namespace varve::runtime {

// Shown by ps, top and debuggers; the system keeps 15 characters.
void name_this_thread(const std::string& name);

// Lets other threads go first, on the processor and on the disk. Best effort: a refusal changes nothing.
void lower_this_threads_priority();

}  // namespace varve::runtime
