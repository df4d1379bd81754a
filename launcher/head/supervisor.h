// The job's state machine: fed with events, decides what happens, knows how it went.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/job_report.h"

namespace ddl::launcher {

/// What the supervisor can make happen. The tests' fake records the calls.
class SupervisorActions {
 public:
  virtual ~SupervisorActions() = default;
  /// Every rank: this signal, the grace, then SIGKILL. Grace 0 kills now.
  virtual void end_ranks(int signal, double grace_seconds) = 0;
  /// Every rank: this signal, nothing else.
  virtual void forward_signal(int signal) = 0;
  /// All ranks have ended: have every agent clean up and send the rest of the output.
  virtual void finish() = 0;
  /// Calls on_unexplained() after a while, once: several reports may be under way.
  virtual void wait_for_explanation() = 0;
  /// ddlrun itself stops, as the shell expects after ^Z; called after the ranks were told.
  virtual void stop_self() = 0;
  /// Nothing more will happen: report() is final.
  virtual void done() = 0;
  /// One sentence for the user, now.
  virtual void note(const std::string& sentence) = 0;
};

/// Feeds on events in the order in which they happen; does no I/O and has no clock. One thread.
class Supervisor {
 public:
  struct Job {
    std::vector<std::string> rank_hosts;  ///< by rank
    std::vector<int> rank_nodes;          ///< by rank: which agent has it
    int num_nodes = 1;
    double kill_grace_seconds = 5;
  };
  Supervisor(Job job, SupervisorActions& actions);

  void on_rank_started(int rank, std::int64_t pid);
  void on_rank_ended(RankOutcome outcome);
  /// A rank was stopped by a signal. False if ddlrun itself has asked for that (^Z), or the job is ending: then nothing
  /// follows. True: the user was told, and unless it goes on, on_rank_stayed_stopped() is due after so many seconds.
  bool on_rank_stopped(int rank, int signal, int patience_seconds);
  void on_rank_stayed_stopped(int rank, int signal);
  void on_abort(int rank, int exit_code, const std::string& text);
  void on_agent_failed(int node, const std::string& text, bool lost);
  /// A resource manager has sent the agent this signal, as it does to all processes of a job that it ends.
  void on_agent_told_to_end(int node, const std::string& text, int signal);
  void on_finished(int node, int leftovers);
  /// What wait_for_explanation() has asked for.
  void on_unexplained();
  void on_signal(int signal);
  void on_timeout();
  /// Nobody reads ddlrun's standard output any more (`ddlrun ... | head`).
  void on_output_broken();

  bool is_done() const { return done_; }
  const JobReport& report() const { return report_; }

 private:
  /// Only the first reason counts; true if this is it.
  bool begin_end(EndReason reason, int exit_code, int signal, double grace_seconds);
  void end(EndReason reason, int exit_code, int signal, double grace_seconds);
  /// The failure that is known is the first one: nothing will explain it any more. True if there was one.
  bool settle();
  /// A rank's failure is the first one, and the job ends for it.
  void end_for(const RankOutcome& failed);
  /// Sooner than what the job ends for, although it was heard of later.
  bool precedes_first_failure(const RankOutcome& ended) const;
  bool is_loss_before_first_failure(int node) const;
  /// Everybody whom a failed rank has seen go has ended, too.
  bool are_all_seen_gone_over() const;
  int node_of(int rank) const { return job_.rank_nodes[static_cast<std::size_t>(rank)]; }
  const RankOutcome& first_failure() const {
    return report_.ranks[static_cast<std::size_t>(*report_.first_failure)];
  }
  void end_node(int node);
  void finish_if_all_ended();
  /// Nothing more is expected, and nothing more is taken, from this node.
  bool is_node_over(int node) const { return over_nodes_.at(static_cast<std::size_t>(node)); }
  RankOutcome& outcome(int rank) { return report_.ranks.at(static_cast<std::size_t>(rank)); }

  Job job_;
  SupervisorActions& actions_;
  JobReport report_;
  std::size_t ended_ = 0;
  std::vector<bool> over_nodes_;
  bool waiting_ =
      false;  // first_failure is a rank's that has seen another go: what became of that one is not known yet
  bool ending_ = false;
  bool killing_ = false;
  bool paused_ = false;  // the user has stopped ddlrun, and so the ranks
  bool finishing_ = false;
  bool done_ = false;
};

}  // namespace ddl::launcher
