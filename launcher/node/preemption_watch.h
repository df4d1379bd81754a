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
  struct Handlers {
    std::function<void()> on_preemption;  ///< it has ended with 0
    /// It has ended otherwise, and is not started again. how: a sentence.
    std::function<void(const std::string& how)> on_failure;
  };
  PreemptionWatch(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}

  /// command: of sh, in the agent's environment and folder, without input; "": there is none. Its output is not shown,
  /// but the first line of its standard error if it fails. It ends with the agent.
  void start(const std::string& command);

 private:
  void on_end(const Result<CommandOutput>& output);

  EventLoop& loop_;
  Handlers handlers_;
  std::optional<WatchedCommand> run_;
};

}  // namespace ddl::launcher
