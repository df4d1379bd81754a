// The script that says which hosts an elastic job may use.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_output.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/watched_command.h"

namespace ddl::launcher {

/// The hosts that a script has printed, one a line as in a hostfile: "node1", "node1:4", "node1 slots=4". No hosts are no
/// error. Pure. script: its name for messages. Error: a line that is none, or a host that is there twice, with the
/// number of the line.
Result<std::vector<AllocatedNode>> parse_discovered_hosts(std::string_view text, const std::string& script);

/// Runs the script, again and again: a second after it has ended. Lives on the loop's thread.
class DiscoveryScript {
 public:
  struct Handlers {
    std::function<void(const std::vector<AllocatedNode>&)> on_hosts;  ///< as often as it has run
    /// It cannot be started, exits with an error, runs for more than 10 s, or prints what parse_discovered_hosts()
    /// refuses, or more than a megabyte. One sentence.
    std::function<void(const Error&)> on_failure;
  };
  /// Starts it at once. path: absolute. The destructor kills it.
  DiscoveryScript(EventLoop& loop, std::string path, Handlers handlers);
  DiscoveryScript(const DiscoveryScript&) = delete;
  DiscoveryScript& operator=(const DiscoveryScript&) = delete;

 private:
  void start();
  void on_end(const Result<CommandOutput>& output);

  EventLoop& loop_;
  std::string path_;
  Handlers handlers_;
  std::optional<WatchedCommand> run_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
