// Answers those who ask what the ranks of the job do (ddlrun --inspect), on the host of the head and, through the
// agents, on every node of the job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/control/job_server.h"
#include "launcher/head/rank_totals.h"
#include "launcher/job/job_inspection.h"
#include "launcher/job/job_report.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// The job, without what only a plan or the time tells.
JobDescription describe_job(const JobSpec& spec, const std::string& job_id);

/// The job as its plan has it: description, names of the nodes, and all ranks as not started. Pure.
JobInspection planned_job(const JobSpec& spec, const LaunchPlan& plan,
                          const std::vector<NodeBinding>& bindings);

/// Adds what was found out. plan: from planned_job(). activities: of the ranks whose nodes have answered. outcomes: by
/// rank. silences: by node, "" for those that have answered. NodeUsage is not a part of it. Pure.
JobInspection inspection(JobInspection plan, std::vector<RankActivity> activities,
                         const std::vector<RankOutcome>& outcomes, const std::vector<std::string>& silences);

/// Asks all agents at the same time, and answers all clients that have asked the same until then when the agents have
/// answered, or after kAnswerTime without those that have not. Asks nothing of the ranks. One thread.
class JobInspector {
 public:
  static constexpr auto kAnswerTime = std::chrono::milliseconds(700);
  /// What a rank shows unchanged for so long is taken for a wait, and not for a step of a job that goes on.
  static constexpr double kPauseSeconds = 0.15;

  struct Actions {
    std::function<void(const message::AskActivity&)> ask;  ///< every node
    std::function<void(int node, const message::ForwardedAnswer&)> forward;
    std::function<std::vector<RankOutcome>()> outcomes;  ///< so far, by rank
    /// Adds what the head knows of the job so far: phases of the start, traffic, failures.
    std::function<void(JobDescription&)> describe;
    /// Returns the path of the file.
    std::function<Result<std::string>(const message::ChangeTimeline&)> change_timeline;
  };
  JobInspector(EventLoop& loop, JobInspection plan, Actions actions);

  /// Takes requests also on this host. Error: the socket cannot be opened.
  Status listen();
  /// Takes no requests on this host any more.
  void close() { server_.reset(); }

  /// Tells, when the agents have answered, what the job has used so far: InspectJob::counts.
  void ask(std::function<void(const JobInspection&)> tell);

  /// The job when nothing of it runs any more. hosts: what they have reported.
  JobInspection concluded(const std::vector<HostUsage>& hosts);

  /// The job has other ranks now. Those who have asked are told of these. processes: as of RankTotals::apply().
  void set_plan(JobInspection plan, std::vector<std::int64_t> processes = {});

  /// node: only Actions::forward is told it.
  void on_request(int node, const message::ForwardedRequest& request);
  /// The answer of a node. Ranks that are not on the node are ignored.
  void on_activity(int node, message::Activity&& activity);
  /// The agent of the node will not answer any more: why, without the node's name.
  void on_lost(int node, const std::string& why);

 private:
  /// The client that has asked, of this host or of the agent of a node; or the function of ask().
  struct Asker {
    std::optional<int> node;
    std::int64_t client = 0;
    bool counts = false;  ///< of InspectJob
    std::function<void(const JobInspection&)> tell{};
  };
  void on(const Asker& asker, const message::DescribeJob& request);
  void on(const Asker& asker, const message::InspectJob& request);
  void on(const Asker& asker, const message::ChangeTimeline& request);
  /// False, and an answer, if the client is another version.
  bool is_same_version(const Asker& asker, const std::string& version);
  void answer(const Asker& asker, const message::JobToClient& message);
  void answer(const Asker& asker, const net::Frame& frame);
  JobDescription description() const;
  void add(const Asker& asker);
  /// Asks the agents what those want to know who have asked first.
  void begin_question();
  void conclude_if_complete();
  void conclude();

  EventLoop& loop_;
  JobInspection plan_;
  Actions actions_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::unique_ptr<JobServer> server_;
  std::map<int, std::string> lost_;           ///< by node
  std::vector<Asker> askers_;                 ///< of the question that the agents have now
  std::vector<Asker> waiting_;                ///< those who want to know something else
  std::int64_t question_ = 0;                 ///< its number: that of AskActivity
  std::int64_t asked_ns_ = 0;                 ///< when it was sent: wall_time_ns()
  std::map<int, message::Activity> answers_;  ///< by node
  std::map<int, ClockOffset> clocks_;         ///< of the nodes that have answered
  RankTotals totals_;
  std::vector<std::int64_t> processes_;  ///< for it
  EventLoop::Timer limit_;
};

}  // namespace ddl::launcher
