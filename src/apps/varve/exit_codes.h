// Exit codes of the varve program, for scripts and supervisors.
#pragma once

namespace varve::apps {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed =
    1;  // a start that failed, a broker that had to end, a damaged thing inspected
inline constexpr int kExitUsage = 2;  // the command line or a setting is wrong

}  // namespace varve::apps
