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
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/watched_command.h"

namespace ddl::launcher {

/// The hosts that a script has printed, one a line as in a hostfile: "node1", "node1:4", "node1 slots=4". There may be
/// none. Pure. script: its name for messages. slots: of a host without any. Error, with the number of the line: it names
/// no host, one that an earlier line names, or one without slots where slots is nullopt.
Result<std::vector<AllocatedNode>> parse_discovered_hosts(std::string_view text, const std::string& script,
                                                          std::optional<int> slots);

/// Runs the script, again and again: a second after it has ended. Lives on the loop's thread.
class DiscoveryScript {
 public:
  struct Handlers {
    std::function<void(const std::vector<AllocatedNode>&)> on_hosts;  ///< as often as it has run
    /// It cannot be started, exits with an error, runs for more than 10 s, or prints what parse_discovered_hosts()
    /// refuses, or more than a megabyte. One sentence.
    std::function<void(const Error&)> on_failure;
  };
  /// Starts JobSpec::elastic.discovery at once. The destructor kills it.
  DiscoveryScript(EventLoop& loop, const JobSpec& spec, Handlers handlers);
  DiscoveryScript(const DiscoveryScript&) = delete;
  DiscoveryScript& operator=(const DiscoveryScript&) = delete;

 private:
  void start();
  void on_end(const Result<CommandOutput>& output);

  EventLoop& loop_;
  std::string path_;
  std::optional<int> slots_;  ///< of hosts that it prints without any
  Handlers handlers_;
  std::optional<WatchedCommand> run_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
