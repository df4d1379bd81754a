// The job's state machine: receives events, decides what happens, and keeps the report.
#pragma once

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/head/job_phase.h"
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
  /// Nothing more will happen on the nodes.
  virtual void done() = 0;
  /// The last output is not waited for.
  virtual void abandon_output() = 0;
  /// Prints one sentence for the user now.
  virtual void note(const std::string& sentence) = 0;
};

/// Receives events in the order in which they happen; does no I/O and has no clock. Decides alone how and why the job
/// ends, by the table of job_phase.cpp. One thread.
class Supervisor {
 public:
  struct Job {
    std::vector<std::string> rank_hosts;  ///< by rank
    std::vector<int> rank_nodes;          ///< by rank: the node of its agent
    std::vector<bool>
        serves{};  ///< by rank: it serves the others, and is ended when these have ended; empty: none
    double kill_grace_seconds = 5;
    std::vector<bool> is_left_out{};  ///< by rank: it is not started; empty: all are
    bool outlives_failures = false;   ///< a rank that fails, or is stopped, does not end the others
  };
  /// Agents did not start: then, as after any other end before launch(), the job is done at once.
  void on_agents_not_started(JobEnd why);
  /// The ranks of the job are being launched. Until then the job has no ranks, and no actions are taken.
  void launch(Job job, SupervisorActions& actions);

  void on_rank_started(int rank, int incarnation, std::int64_t pid);
  /// Nothing is said of an earlier incarnation: a rank that was started again has not ended by that.
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
  /// The next generation has other hosts, as this sentence says. False: this one goes on, because ranks have ended by
  /// themselves already, or because none has been started yet.
  bool on_hosts_changed(const std::string& sentence);
  /// Nobody reads ddlrun's standard output any more (`ddlrun ... | head`).
  void on_output_broken();
  /// The process with which the job is to end has ended, as this sentence says. A signal that comes after it may be the
  /// one that has ended both.
  void on_caller_ended(const std::string& text);
  /// Not all of the output could be written, as this sentence says: then the exit code must not state success.
  void on_output_lost(const std::string& text);
  /// The scheduler has ended the job around this one, as this sentence says. For a rank that is an mpirun, which fails
  /// then with an exit code of its own.
  void on_job_cancelled(const std::string& text);

  /// Nothing more will happen on the nodes.
  bool is_done() const { return phase_ == JobPhase::kDone; }
  const JobReport& report() const { return report_; }
  const Job& job() const { return job_; }
  /// Whether this rank exists and runs on this node. The rank may be any number.
  bool is_rank_on(int node, int rank) const;

 private:
  /// Takes the reaction to the event, which it returns. why: how the job ends if it ends for it. signal: sent to the
  /// ranks then, SIGKILL without a grace. is_first: the event happened before what the job ends for already, although
  /// it was reported later.
  JobReaction react(JobEvent event, JobEnd why = {}, int signal = SIGTERM, bool is_first = false);
  void end(JobEnd why, int signal);
  void end_ranks(int signal);
  /// How the job ends for a rank's failure.
  JobEnd end_of(const RankOutcome& failed) const;
  /// The rank that a rank's failure is blamed on: one that had exited with 0 while this one waited for it, or else
  /// itself.
  int culprit_of(const RankOutcome& failed) const;
  bool has_reason() const { return report_.reason != EndReason::kSuccess; }
  /// True if this rank ended before the failure that the job ends for, although it was reported later.
  bool precedes_first_failure(const RankOutcome& ended) const;
  bool is_loss_before_first_failure(int node) const;
  /// True if every rank whose end a failed rank has observed is reported as ended, too.
  bool have_all_gone_ranks_ended() const;
  /// All ranks but those that serve have ended.
  bool have_clients_ended() const;
  int node_of(int rank) const { return job_.rank_nodes[rank]; }
  JobEnd& job_end() { return report_; }
  const RankOutcome& outcome(int rank) const { return report_.ranks.at(rank); }
  RankOutcome& outcome(int rank) { return report_.ranks.at(rank); }
  /// What is said of this incarnation still counts.
  bool is_current(int rank, int incarnation) const;
  void mark_node_finished(int node);
  void look_for_ends();
  bool serves(int rank) const { return !job_.serves.empty() && job_.serves[rank]; }
  bool is_left_out(int rank) const { return !job_.is_left_out.empty() && job_.is_left_out[rank]; }
  /// was_told: libddl had told the rank that the job cannot go on.
  void on_failure(const RankOutcome& failed, bool was_told);
  void on_request_to_end(int signal);
  /// The signal was announced, or is the first of its kind, and is no second request.
  bool is_announced(int signal);
  /// A rank that is stopped now was stopped by somebody else, and others wait for it.
  bool can_be_stopped() const;
  /// Nothing more is expected from this node, and nothing more is accepted.
  bool is_node_finished(int node) const { return !finished_nodes_.empty() && finished_nodes_.at(node); }

  /// A request to end may come twice: the second one does not mean that the user does not want to wait.
  enum class Announced : std::uint8_t {
    kNothing,
    kTermination,  ///< an agent has received SIGTERM from a resource manager
    kSignal,       ///< the process has ended that ddlrun was to end with
    kReceived,     ///< ddlrun itself has received SIGTERM: agents may report it, too
  };

  SupervisorActions* actions_ = nullptr;  ///< from launch() on
  Job job_;
  JobReport report_;
  JobPhase phase_ = JobPhase::kStarting;
  int suspect_ = 0;  ///< the rank that failed, in kAwaitingCause and kAwaitingClients
  std::size_t ended_ = 0;
  std::vector<bool> finished_nodes_;
  std::map<int, int> stopped_;  ///< rank -> signal, of those that the user was notified of
  Announced announced_ = Announced::kNothing;
  bool is_paused_ = false;  ///< the user has stopped ddlrun, and so the ranks
};

}  // namespace ddl::launcher
