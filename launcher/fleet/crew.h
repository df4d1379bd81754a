// The agents of several nodes that one process has started, until they have come.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"

namespace ddl::launcher {

class Crew {
 public:
  /// on_over: the process has ended, on the loop's thread, once; the failure is for those that have not come.
  Crew(EventLoop& loop, StartedCrew started, std::function<void(StartFailure)> on_over);

  /// Why the agent of this node gave up, if it has said so; else "".
  std::string said_by(const std::string& node) const;
  /// Tells all of them whom to join. Once.
  void tell(const message::Join& join);
  /// on_over is not called from here on.
  void close();
  void clean_up(Deadline deadline) { process_->clean_up(deadline); }

 private:
  UniqueFd in_;
  StreamTail out_;
  StreamTail errors_;
  std::unique_ptr<AgentProcess> process_;
};

}  // namespace ddl::launcher
