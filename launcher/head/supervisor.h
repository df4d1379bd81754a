// The job's state machine: receives events, decides what happens, and keeps the report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/job/job_report.h"

namespace ddl::launcher {

/// The actions of the supervisor. The tests' fake records the calls.
class SupervisorActions {
 public:
  virtual ~SupervisorActions() = default;
  /// Sends this signal to every rank, and SIGKILL after the grace; SIGTERM after half of it if the signal is SIGINT.
  /// Grace 0 kills now.
  virtual void end_ranks(int signal, double grace_seconds) = 0;
  /// Sends this signal to every rank, nothing else.
  virtual void forward_signal(int signal) = 0;
  /// All ranks have ended: have every agent clean up and send the rest of the output.
  virtual void finish() = 0;
  /// A rank has failed that observed the end of another: calls on_root_cause_timeout() after a while, once. The
  /// report about the other rank may still be in flight.
  virtual void wait_for_root_cause() = 0;
  /// A rank that serves has failed, perhaps because the ranks that it serves have ended: calls
  /// on_root_cause_timeout() after a moment, once.
  virtual void wait_for_clients() = 0;
  /// Stops ddlrun itself, as the shell expects after ^Z; called after the signal was forwarded to the ranks.
  virtual void stop_self() = 0;
  /// Nothing more will happen: report() is final.
  virtual void done() = 0;
  /// Prints one sentence for the user now.
  virtual void note(const std::string& sentence) = 0;
};

/// Receives events in the order in which they happen; does no I/O and has no clock. One thread.
class Supervisor {
 public:
  struct Job {
    std::vector<std::string> rank_hosts;  ///< by rank
    std::vector<int> rank_nodes;          ///< by rank: the node of its agent
    std::vector<bool>
        serves{};  ///< by rank: it serves the others, and is ended when these have ended; empty: none
    int num_nodes = 1;
    double kill_grace_seconds = 5;
  };
  Supervisor(Job job, SupervisorActions& actions);

  void on_rank_started(int rank, std::int64_t pid);
  void on_rank_ended(RankOutcome outcome);
  /// A rank was stopped by a signal. False if ddlrun itself has stopped it (^Z), or the job is ending: then the
  /// caller does nothing. True: the user was notified, and unless the rank is continued, the caller must call
  /// on_rank_stayed_stopped() after patience_seconds.
  bool on_rank_stopped(int rank, int signal, int patience_seconds);
  void on_rank_stayed_stopped(int rank, int signal);
  void on_rank_continued(int rank) { stopped_.erase(rank); }
  void on_abort(int rank, int exit_code, const std::string& text);
  void on_agent_failed(int node, const std::string& text, bool lost);
  /// A resource manager has sent the agent this signal, as it does to all processes of a job that it ends. If it sends
  /// it to ddlrun as well, before or after this, both are one request.
  void on_agent_termination_requested(int node, const std::string& text, int signal);
  void on_finished(int node, int leftovers);
  /// The time of wait_for_root_cause() or wait_for_clients() has passed.
  void on_root_cause_timeout();
  void on_signal(int signal);
  void on_timeout();
  /// Ranks have waited too long for others, as this sentence says.
  void on_stall(const std::string& sentence);
  /// Somebody else listens on a port of the job, as this sentence says.
  void on_port_taken(const std::string& sentence);
  /// Nobody reads ddlrun's standard output any more (`ddlrun ... | head`).
  void on_output_broken();
  /// The process with which the job is to end has ended, as this sentence says. A signal that comes after it may be the
  /// one that has ended both.
  void on_caller_ended(const std::string& text);

  bool is_done() const { return done_; }
  const JobReport& report() const { return report_; }

 private:
  /// Only the first reason counts; true if this is it.
  bool begin_termination(EndReason reason, int exit_code, int signal, double grace_seconds);
  void terminate(EndReason reason, int exit_code, int signal, double grace_seconds);
  /// Ends the wait for a root cause: the known failure is the first one, and the job ends for it. False if there
  /// was no wait.
  bool accept_known_failure();
  /// A rank's failure is the first one, and the job ends for it.
  void end_because_of(const RankOutcome& failed);
  /// The rank that a rank's failure is blamed on: one that had exited with 0 while this one waited for it, or else
  /// itself.
  int culprit_of(const RankOutcome& failed) const;
  /// Ends the job for a rank that is stopped, which others wait for: if one of these fails, that is a consequence.
  /// was_told: libddl had told it that the job cannot go on. False if no rank is stopped.
  bool end_because_of_stop(const RankOutcome& failed, bool was_told);
  /// True if this rank ended before the failure that the job ends for, although it was reported later.
  bool precedes_first_failure(const RankOutcome& ended) const;
  bool is_loss_before_first_failure(int node) const;
  /// True if every rank whose end a failed rank has observed is reported as ended, too.
  bool have_all_gone_ranks_ended() const;
  int node_of(int rank) const { return job_.rank_nodes[static_cast<std::size_t>(rank)]; }
  const RankOutcome& first_failure() const {
    return report_.ranks[static_cast<std::size_t>(*report_.first_failure)];
  }
  void mark_node_finished(int node);
  void finish_if_all_ended();
  bool serves(int rank) const { return !job_.serves.empty() && job_.serves[static_cast<std::size_t>(rank)]; }
  void on_failure(const RankOutcome& failed);
  /// Ends the ranks that serve, if all others have ended.
  void end_servers_if_unused();
  /// Nothing more is expected from this node, and nothing more is accepted.
  bool is_node_finished(int node) const { return finished_nodes_.at(static_cast<std::size_t>(node)); }
  RankOutcome& outcome(int rank) { return report_.ranks.at(static_cast<std::size_t>(rank)); }

  Job job_;
  SupervisorActions& actions_;
  JobReport report_;
  std::size_t ended_ = 0;
  std::vector<bool> finished_nodes_;
  std::map<int, int> stopped_;  ///< rank -> signal, of those that the user was notified of
  /// first_failure has observed the end of another rank, and it is not known yet how that one ended.
  bool awaiting_root_cause_ = false;
  /// first_failure is that of a rank that serves, and it is not known yet whether the others have ended.
  bool awaiting_clients_ = false;
  bool ending_ = false;
  bool killing_ = false;
  bool ended_by_caller_ = false;  // and no signal has come since
  bool paused_ = false;           // the user has stopped ddlrun, and so the ranks
  bool servers_ended_ = false;    // the job has asked them to
  /// Where a resource manager's signal has been received: it comes to ddlrun and to the agents, in any order.
  enum class Received : std::uint8_t { kNowhere, kByAgent, kHere };
  Received termination_ = Received::kNowhere;
  bool finishing_ = false;
  bool done_ = false;
};

}  // namespace ddl::launcher
