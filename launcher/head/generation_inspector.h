// What the ranks of an elastic job do that goes on when others fail: for those who ask, and for its user if they wait.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/head/job_inspector.h"
#include "launcher/head/stall_inspector.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/member_messages.h"

namespace ddl::launcher {

/// JobInspector and StallInspector for the ranks of one generation after the other, whose launches ask their agents.
/// One thread.
class GenerationInspector {
 public:
  /// A rank: the process in a slot of a launch.
  struct Place {
    int launch = 0;
    int slot = 0;
    std::string host;
  };
  struct Actions {
    std::function<void(int launch, const message::MemberOrder&)> send;
    std::function<std::vector<RankOutcome>()> outcomes;  ///< of the generation, by rank
    std::function<void(JobDescription&)> describe;       ///< adds what changes while the job runs
    std::function<void(const std::string&)> note;
    std::function<void(const Stall&)> on_stall;  ///< it has lasted for as long as is allowed
    /// What it does is as of hanging_text(); "": its agent has not answered in time.
    std::function<void(int rank, const std::string& what)> on_looked;
  };
  /// job_id: by which it is found. spec outlives this.
  GenerationInspector(EventLoop& loop, const JobSpec& spec, const std::string& job_id, Actions actions);

  /// Takes requests on this host. Error: the socket cannot be opened.
  Status listen() { return inspector_.listen(); }
  void close() { inspector_.close(); }
  JobInspection concluded(const std::vector<HostUsage>& hosts) { return inspector_.concluded(hosts); }
  void ask(std::function<void(const JobInspection&)> tell) { inspector_.ask(std::move(tell)); }

  /// StallInspector::sentences() of the generation that began last.
  std::vector<std::string> stalls() const {
    return stalls_ ? stalls_->sentences() : std::vector<std::string>();
  }

  void begin(int generation, std::vector<Place> ranks);
  void on_gone(int launch);
  /// on_looked() follows for each of these ranks, once. It does not if another generation begins before.
  void look_at(const std::vector<int>& ranks);

  void on(int launch, const message::ForwardedRequest& request) { inspector_.on_request(launch, request); }
  void on(int launch, const message::Activity& activity);
  void on(int launch, const message::Stalled&);

 private:
  void ask(const message::AskActivity& question);
  void on_looked(int rank, const std::string& what);

  EventLoop& loop_;
  const JobSpec& spec_;
  Actions actions_;
  JobDescription job_;
  std::vector<Place> ranks_;
  std::vector<int> launches_;  ///< by node: each has one
  JobInspector inspector_;
  std::unique_ptr<StallInspector> stalls_;  ///< null before the first generation
  std::set<int> looked_at_;                 ///< ranks that on_looked() is to follow for
  EventLoop::Timer look_timer_;
};

}  // namespace ddl::launcher
