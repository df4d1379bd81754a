// A command of the user's that knows when this host is about to be taken away.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/watched_command.h"

namespace ddl::launcher {

/// Runs it once, beside the ranks. On the loop's thread.
class PreemptionWatch {
 public:
  /// on_end: it has ended, and is not started again. failure: a sentence; "": with 0.
  PreemptionWatch(EventLoop& loop, std::function<void(const std::string& failure)> on_end)
      : loop_(loop), on_end_(std::move(on_end)) {}

  /// command: of sh, in the agent's environment and folder, without input; "": there is none. Its output is not shown,
  /// but the first line of its standard error if it fails. It ends with the agent.
  void start(const std::string& command);

 private:
  EventLoop& loop_;
  std::function<void(const std::string&)> on_end_;
  std::optional<WatchedCommand> run_;
};

}  // namespace ddl::launcher
