// How a rank that ran has ended.
#pragma once

#include "launcher/message/message.h"

namespace ddl::launcher {

/// What the agent had done to end the ranks when the news came.
struct EndingSoFar {
  int asked_signal = 0;  ///< 0: none was sent yet
  bool killed = false;
};

/// Pure. The outcome without host, kill_explanation and stderr_tail. A signal that we sent is ours, not a failure's.
RankOutcome rank_end(const message::ChildEnded& ended, std::int64_t pid, const EndingSoFar& ending);

}  // namespace ddl::launcher
