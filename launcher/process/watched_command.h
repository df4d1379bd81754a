// Another command, run to its end for what it prints, while the event loop goes on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "base/command.h"
#include "base/command_output.h"
#include "base/error.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// base/command_output.h for the loop's thread.
class WatchedCommand {
 public:
  using OnEnd = std::function<void(const Result<CommandOutput>&)>;

  /// Starts it. Its standard input is empty, and it ends with this process. on_end is called once, later, from the loop,
  /// with the errors of command_output(); it may destroy this. patience: nullopt, for ever. max_output: of each
  /// stream, in bytes.
  WatchedCommand(EventLoop& loop, const Command& command, std::optional<std::chrono::milliseconds> patience,
                 std::size_t max_output, OnEnd on_end);
  /// Kills it with its process group.
  ~WatchedCommand();
  WatchedCommand(const WatchedCommand&) = delete;
  WatchedCommand& operator=(const WatchedCommand&) = delete;

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace ddl::launcher
