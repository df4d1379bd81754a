// The agents of several nodes that one process has started, until they have come.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/fleet/node_starter.h"
#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"

namespace ddl::launcher {

class Crew {
 public:
  /// on_over: the process has ended, on the loop's thread, once; the failure is for those that have not come.
  Crew(EventLoop& loop, StartedCrew started, std::function<void(StartFailure)> on_over);

  const std::vector<std::size_t>& nodes() const { return started_.nodes; }
  /// Why the agent of this node gave up, if it has said so; else "".
  std::string said_by(const std::string& node) const;
  /// Tells all of them whom to join. Once.
  void tell(const message::Join& join);
  /// on_over is not called from here on.
  void close();
  void clean_up(Deadline deadline) { started_.process->clean_up(deadline); }

 private:
  void on_errors();
  void on_out();

  StartedCrew started_;
  std::function<void(StartFailure)> on_over_;
  std::string noise_;
  std::string errors_text_;
  EventLoop::FdWatch out_watch_;
  EventLoop::FdWatch errors_watch_;
};

}  // namespace ddl::launcher
