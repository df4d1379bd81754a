#include "launcher/head/supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {
namespace {

using Kind = RankOutcome::Kind;

bool has_ended(const RankOutcome& outcome) {
  return outcome.kind != Kind::kNotStarted && outcome.kind != Kind::kRunning;
}

bool is_failure(const RankOutcome& outcome) {
  return outcome.kind == Kind::kStartFailed || outcome.kind == Kind::kSignalled || outcome.exit_code != 0;
}

/// It failed after it had observed the end of another rank, which is most likely the cause.
bool is_consequence(const RankOutcome& outcome) { return outcome.gone_rank >= 0; }

int exit_code_of(const RankOutcome& outcome) {
  return outcome.kind == Kind::kSignalled ? contract::kSignalBase + outcome.signal : outcome.exit_code;
}

}  // namespace

Supervisor::Supervisor(Job job, SupervisorActions& actions)
    : job_(std::move(job)),
      actions_(actions),
      finished_nodes_(static_cast<std::size_t>(job_.num_nodes), false) {
  DDL_CHECK(job_.rank_nodes.size() == job_.rank_hosts.size(),
            std::to_string(job_.rank_nodes.size()) + " nodes of ranks");
  for (std::size_t rank = 0; rank < job_.rank_hosts.size(); ++rank) {
    RankOutcome outcome;
    outcome.rank = static_cast<int>(rank);
    outcome.host = job_.rank_hosts[rank];
    report_.ranks.push_back(std::move(outcome));
  }
}

void Supervisor::on_rank_started(int rank, std::int64_t pid) {
  if (has_ended(outcome(rank)) || is_node_finished(job_.rank_nodes[static_cast<std::size_t>(rank)])) return;
  outcome(rank).kind = Kind::kRunning;
  outcome(rank).pid = pid;
}

void Supervisor::on_rank_ended(RankOutcome ended) {
  RankOutcome& recorded = outcome(ended.rank);
  if (has_ended(recorded) || is_node_finished(job_.rank_nodes[static_cast<std::size_t>(ended.rank)])) return;
  ended.host = recorded.host;
  const bool was_told = ended.gone_rank >= 0;
  // The number comes from another process.
  if (ended.gone_rank == ended.rank || ended.gone_rank >= static_cast<int>(report_.ranks.size()))
    ended.gone_rank = -1;
  recorded = std::move(ended);
  ++ended_;
  stopped_.erase(recorded.rank);

  // A rank that aborts reports that before it exits: its exit is not a second failure. How a rank ends that has
  // served all others to their ends does not matter.
  const bool has_served = servers_ended_ && serves(recorded.rank);
  if (is_failure(recorded) && !recorded.ended_by_us && !has_served &&
      !end_because_of_stop(recorded, was_told))
    on_failure(recorded);
  if (awaiting_root_cause_ && have_all_gone_ranks_ended()) accept_known_failure();
  end_servers_if_unused();
  finish_if_all_ended();
}

void Supervisor::on_failure(const RankOutcome& failed) {
  if (ending_) {
    if (!precedes_first_failure(failed)) return;
    report_.first_failure = failed.rank;
    report_.exit_code = exit_code_of(failed);
  } else if (serves(failed.rank) && failed.kind == Kind::kExited) {
    if (awaiting_clients_ || awaiting_root_cause_) return;
    awaiting_clients_ = true;
    report_.first_failure = failed.rank;
    actions_.wait_for_clients();
  } else if (!is_consequence(failed)) {
    end_because_of(failed);
  } else if (awaiting_clients_) {
    accept_known_failure();
  } else if (!awaiting_root_cause_) {
    awaiting_root_cause_ = true;
    report_.first_failure = failed.rank;
    actions_.wait_for_root_cause();
  }
}

bool Supervisor::precedes_first_failure(const RankOutcome& ended) const {
  if (report_.reason != EndReason::kRankFailed || is_consequence(ended)) return false;
  const RankOutcome& first = first_failure();
  // Reports of several hosts may arrive in any order. A rank that observes a peer's death exits with an error; the
  // exit of a peer kills no rank by a signal. So a death by a signal is the cause.
  if (ended.kind == Kind::kSignalled && ended.before_end && first.kind == Kind::kExited) return true;
  // libddl has recorded that the first failure is a consequence of this rank's end.
  return first.gone_rank == ended.rank;
}

bool Supervisor::have_all_gone_ranks_ended() const {
  return std::all_of(report_.ranks.begin(), report_.ranks.end(), [this](const RankOutcome& one) {
    return !is_consequence(one) || has_ended(report_.ranks[static_cast<std::size_t>(one.gone_rank)]);
  });
}

bool Supervisor::accept_known_failure() {
  if (!awaiting_root_cause_ && !awaiting_clients_) return false;
  end_because_of(first_failure());
  return true;
}

void Supervisor::end_because_of(const RankOutcome& failed) {
  const EndReason reason =
      failed.kind == Kind::kStartFailed ? EndReason::kStartFailed : EndReason::kRankFailed;
  awaiting_root_cause_ = awaiting_clients_ = false;
  report_.first_failure = culprit_of(failed);
  begin_termination(reason, exit_code_of(failed), SIGTERM, job_.kill_grace_seconds);
}

int Supervisor::culprit_of(const RankOutcome& failed) const {
  if (!is_consequence(failed)) return failed.rank;
  const RankOutcome& gone = report_.ranks[static_cast<std::size_t>(failed.gone_rank)];
  return gone.kind == Kind::kExited && gone.exit_code == 0 ? gone.rank : failed.rank;
}

bool Supervisor::end_because_of_stop(const RankOutcome& failed, bool was_told) {
  if (stopped_.empty() || ending_ || paused_ || servers_ended_ || (failed.kind != Kind::kExited && !was_told))
    return false;
  const auto [rank, signal] = *stopped_.begin();
  on_rank_stayed_stopped(rank, signal);
  return true;
}

void Supervisor::on_root_cause_timeout() { accept_known_failure(); }

bool Supervisor::on_rank_stopped(int rank, int signal, int patience_seconds) {
  const RankOutcome& stopped = outcome(rank);
  if (paused_ || ending_ || servers_ended_ || finishing_ || has_ended(stopped)) return false;
  stopped_[rank] = signal;
  const std::string pid = std::to_string(stopped.pid);
  actions_.note("rank " + std::to_string(rank) + " on " + stopped.host + " (pid " + pid +
                ") was stopped by " + signal_text(signal) + "; unless it is continued (kill -CONT " + pid +
                ") the job ends in " + std::to_string(patience_seconds) + " s");
  return true;
}

void Supervisor::on_rank_stayed_stopped(int rank, int signal) {
  if (paused_ || servers_ended_ || has_ended(outcome(rank))) return;
  if (!begin_termination(EndReason::kRankStopped, contract::kSignalBase + signal, SIGTERM,
                         job_.kill_grace_seconds))
    return;
  report_.first_failure = rank;
  report_.signal = signal;
}

void Supervisor::on_abort(int rank, int exit_code, const std::string& text) {
  if (servers_ended_ && serves(rank)) return;
  // An exit status has 8 bits, and an abort is never a success.
  const int code = (exit_code & 0xff) == 0 ? 1 : exit_code & 0xff;
  // A rank that aborts is the cause, and a rank that has only observed the end of another is not.
  if (awaiting_root_cause_ || awaiting_clients_) report_.first_failure.reset();
  awaiting_root_cause_ = awaiting_clients_ = false;
  if (!begin_termination(EndReason::kAborted, code, SIGTERM, job_.kill_grace_seconds)) return;
  report_.first_failure = rank;
  report_.abort_message = text;
}

void Supervisor::on_agent_failed(int node, const std::string& text, bool lost) {
  if (is_node_finished(node)) return;
  // Also if all ranks have ended with success: their last output may be lost with the agent, and processes may be
  // left.
  if (!ending_ || (lost && is_loss_before_first_failure(node))) {
    report_.first_failure.reset();
    report_.message = text;
    // Ranks of other hosts may have much to save. If an agent could not start its ranks, no rank has worked yet.
    if (lost) {
      terminate(EndReason::kHostLost, contract::kLostHost, SIGTERM, job_.kill_grace_seconds);
    } else {
      terminate(EndReason::kStartFailed, contract::kStartFailure, SIGKILL, 0);
    }
  }
  mark_node_finished(node);
  // No reports about its ranks will come; the ranks of other nodes are waited for.
  for (std::size_t rank = 0; rank < report_.ranks.size(); ++rank) {
    if (job_.rank_nodes[rank] == node && !has_ended(report_.ranks[rank])) ++ended_;
  }
  if (!done_) finish_if_all_ended();
}

void Supervisor::on_agent_termination_requested(int node, const std::string& text, int signal) {
  if (is_node_finished(node)) return;
  if (termination_ == Received::kNowhere) termination_ = Received::kByAgent;
  if (ending_ ? !is_loss_before_first_failure(node) : finishing_ || done_) return;
  report_.first_failure.reset();
  report_.signal = signal;
  report_.message = text;
  terminate(EndReason::kSignal, contract::kSignalBase + signal, signal, job_.kill_grace_seconds);
}

bool Supervisor::is_loss_before_first_failure(int node) const {
  if (report_.reason != EndReason::kRankFailed) return false;
  const RankOutcome& first = first_failure();
  const auto is_any = [this, node](const auto& holds) {
    return std::any_of(report_.ranks.begin(), report_.ranks.end(),
                       [&](const RankOutcome& rank) { return node_of(rank.rank) == node && holds(rank); });
  };
  if (is_consequence(first) && node_of(first.gone_rank) == node)
    return !has_ended(report_.ranks[static_cast<std::size_t>(first.gone_rank)]);
  // Ranks of other hosts exit because the ranks of this host are gone, and that is reported at once; the loss of
  // the host may be found later. If its agent has reported a rank that was ended on request, the host was lost
  // after the first failure.
  return first.kind == Kind::kExited && first.exit_code != 0 && node_of(first.rank) != node &&
         is_any([](const RankOutcome& rank) { return !has_ended(rank); }) &&
         !is_any([](const RankOutcome& rank) { return has_ended(rank) && !rank.before_end; });
}

void Supervisor::on_finished(int node, int leftovers) {
  if (is_node_finished(node)) return;
  report_.leftovers_ended += leftovers;
  mark_node_finished(node);
}

void Supervisor::on_signal(int signal) {
  switch (signal) {
    case SIGUSR1:
    case SIGUSR2: return actions_.forward_signal(signal);
    case SIGCONT: paused_ = false; return actions_.forward_signal(signal);
    case SIGTSTP:
      paused_ = true;
      actions_.forward_signal(signal);
      return actions_.stop_self();
    default: {
      // What an agent has reported before is no second request.
      const bool is_known =
          signal == SIGTERM && std::exchange(termination_, Received::kHere) == Received::kByAgent;
      if (is_known || accept_known_failure() || std::exchange(ended_by_caller_, false)) return;
      const bool first = begin_termination(EndReason::kSignal, contract::kSignalBase + signal, signal,
                                           job_.kill_grace_seconds);
      if (first) {
        report_.signal = signal;
        if (signal == SIGINT) {
          actions_.note("ending " + counted(static_cast<std::int64_t>(report_.ranks.size()), "rank") +
                        "; press ^C again to kill them now");
        }
      } else if (!killing_) {
        // The second signal means that the user does not want to wait, whatever the reason of the end is.
        killing_ = true;
        actions_.end_ranks(SIGKILL, 0);
      }
    }
  }
}

void Supervisor::on_timeout() {
  // All that the job is for has ended.
  if (servers_ended_ && !ending_) return actions_.end_ranks(SIGKILL, 0);
  begin_termination(EndReason::kTimeout, contract::kTimeout, SIGTERM, job_.kill_grace_seconds);
}

void Supervisor::on_stall(const std::string& sentence) {
  if (begin_termination(EndReason::kStalled, contract::kTimeout, SIGTERM, job_.kill_grace_seconds))
    report_.message = sentence;
}

void Supervisor::on_port_taken(const std::string& sentence) {
  // Ranks may be about to trust the other: they get no time to.
  if (begin_termination(EndReason::kPortTaken, contract::kStartFailure, SIGKILL, 0))
    report_.message = sentence;
}

void Supervisor::on_output_broken() {
  if (begin_termination(EndReason::kSignal, contract::kSignalBase + SIGPIPE, SIGTERM,
                        job_.kill_grace_seconds)) {
    report_.signal = SIGPIPE;
    report_.message = "nobody reads ddlrun's output any more";
  }
}

void Supervisor::on_caller_ended(const std::string& text) {
  if (!begin_termination(EndReason::kSignal, contract::kSignalBase + SIGTERM, SIGTERM,
                         job_.kill_grace_seconds))
    return;
  ended_by_caller_ = true;
  report_.signal = SIGTERM;
  report_.message = text;
}

bool Supervisor::begin_termination(EndReason reason, int exit_code, int signal, double grace_seconds) {
  // The first failure stays the reason, also while its root cause is not known yet.
  if (accept_known_failure() || ending_ || finishing_ || done_) return false;
  terminate(reason, exit_code, signal, grace_seconds);
  return true;
}

void Supervisor::terminate(EndReason reason, int exit_code, int signal, double grace_seconds) {
  ending_ = true;
  awaiting_root_cause_ = awaiting_clients_ = false;
  report_.reason = reason;
  report_.exit_code = exit_code;
  actions_.end_ranks(signal, grace_seconds);
}

void Supervisor::mark_node_finished(int node) {
  finished_nodes_.at(static_cast<std::size_t>(node)) = true;
  if (std::find(finished_nodes_.begin(), finished_nodes_.end(), false) != finished_nodes_.end()) return;
  done_ = true;
  actions_.done();
}

void Supervisor::end_servers_if_unused() {
  if (job_.serves.empty() || servers_ended_ || ending_ || awaiting_root_cause_) return;
  for (const RankOutcome& one : report_.ranks) {
    if (!job_.serves[static_cast<std::size_t>(one.rank)] && !has_ended(one)) return;
  }
  servers_ended_ = true;
  if (std::exchange(awaiting_clients_, false)) report_.first_failure.reset();
  if (ended_ < report_.ranks.size()) actions_.end_ranks(SIGTERM, job_.kill_grace_seconds);
}

void Supervisor::finish_if_all_ended() {
  if (finishing_ || ended_ < report_.ranks.size()) return;
  finishing_ = true;
  actions_.finish();
}

}  // namespace ddl::launcher
