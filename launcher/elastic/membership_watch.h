// Watches, while a generation runs, whether the job gets other hosts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launcher/elastic/generation_planner.h"
#include "launcher/elastic/host_discovery.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/watched_command.h"

namespace ddl::launcher {

/// A command that asks one host, as --check-hosts does, whether the job's agent starts there. Pure. own_path: of ddlrun
/// here.
std::vector<std::string> check_command(const JobSpec& spec, const AllocatedNode& host,
                                       const std::string& own_path);

/// Lives on the loop's thread.
class MembershipWatch {
 public:
  struct Handlers {
    /// The generation is to end for this reason. False: not now.
    std::function<bool(const std::string& why)> on_change;
    std::function<void(const std::string&)> note;  ///< a sentence for the user
  };
  /// planner and spec outlive it. A host that is new, or that comes back, is asked first, so that a host which does not
  /// answer never ends a generation.
  MembershipWatch(EventLoop& loop, GenerationPlanner& planner, const JobSpec& spec, Handlers handlers);

 private:
  using Clock = std::chrono::steady_clock;

  void on_discovery_failed(const Error& error);
  void look();
  void change(const std::string& why);
  void ask(const AllocatedNode& host);
  void on_asked(const std::string& host, const Result<CommandOutput>& output);

  EventLoop& loop_;
  GenerationPlanner& planner_;
  const JobSpec& spec_;
  Handlers handlers_;
  std::optional<HostDiscovery> discovery_;
  bool has_discovery_failed_ = false;  ///< the user was told
  std::optional<Clock::time_point> growing_since_;
  std::map<std::string, std::unique_ptr<WatchedCommand>> asked_;  ///< by host; null: it has answered
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
