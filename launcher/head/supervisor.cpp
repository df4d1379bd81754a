#include "launcher/head/supervisor.h"

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {
namespace {

using Kind = RankOutcome::Kind;

bool is_over(const RankOutcome& outcome) {
  return outcome.kind != Kind::kNotStarted && outcome.kind != Kind::kRunning;
}

bool is_failure(const RankOutcome& outcome) {
  return outcome.kind == Kind::kStartFailed || outcome.kind == Kind::kSignalled || outcome.exit_code != 0;
}

/// It failed after it had seen another rank go, and most likely for that.
bool is_consequence(const RankOutcome& outcome) { return outcome.gone_rank >= 0; }

int exit_code_of(const RankOutcome& outcome) {
  return outcome.kind == Kind::kSignalled ? contract::kSignalBase + outcome.signal : outcome.exit_code;
}

}  // namespace

Supervisor::Supervisor(Job job, SupervisorActions& actions)
    : job_(std::move(job)), actions_(actions), over_nodes_(static_cast<std::size_t>(job_.num_nodes), false) {
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
  if (is_over(outcome(rank)) || is_node_over(job_.rank_nodes[static_cast<std::size_t>(rank)])) return;
  outcome(rank).kind = Kind::kRunning;
  outcome(rank).pid = pid;
}

void Supervisor::on_rank_ended(RankOutcome ended) {
  RankOutcome& place = outcome(ended.rank);
  if (is_over(place) || is_node_over(job_.rank_nodes[static_cast<std::size_t>(ended.rank)])) return;
  ended.host = place.host;
  // It comes from another process.
  if (ended.gone_rank == ended.rank || ended.gone_rank >= static_cast<int>(report_.ranks.size()))
    ended.gone_rank = -1;
  place = std::move(ended);
  ++ended_;

  // An aborting rank has spoken before it exits: its exit is not a second failure.
  if (is_failure(place) && !place.ended_by_us) {
    if (ending_) {
      if (precedes_first_failure(place)) {
        report_.first_failure = place.rank;
        report_.exit_code = exit_code_of(place);
      }
    } else if (!is_consequence(place)) {
      end_for(place);
    } else if (!waiting_) {
      waiting_ = true;
      report_.first_failure = place.rank;
      actions_.wait_for_explanation();
    }
  }
  if (waiting_ && are_all_seen_gone_over()) settle();
  finish_if_all_ended();
}

bool Supervisor::precedes_first_failure(const RankOutcome& ended) const {
  if (report_.reason != EndReason::kRankFailed || is_consequence(ended)) return false;
  const RankOutcome& first = first_failure();
  // Reports of several hosts overtake each other. Ranks that see a peer die exit with an error of their own; nobody is
  // killed by another's exit.
  if (ended.kind == Kind::kSignalled && ended.before_end && first.kind == Kind::kExited) return true;
  // libddl has said whose end the first failure is a consequence of.
  return first.gone_rank == ended.rank;
}

bool Supervisor::are_all_seen_gone_over() const {
  return std::all_of(report_.ranks.begin(), report_.ranks.end(), [this](const RankOutcome& one) {
    return !is_consequence(one) || is_over(report_.ranks[static_cast<std::size_t>(one.gone_rank)]);
  });
}

bool Supervisor::settle() {
  if (!waiting_) return false;
  end_for(first_failure());
  return true;
}

void Supervisor::end_for(const RankOutcome& failed) {
  const EndReason reason =
      failed.kind == Kind::kStartFailed ? EndReason::kStartFailed : EndReason::kRankFailed;
  waiting_ = false;
  report_.first_failure = failed.rank;
  begin_end(reason, exit_code_of(failed), SIGTERM, job_.kill_grace_seconds);
}

void Supervisor::on_unexplained() { settle(); }

bool Supervisor::on_rank_stopped(int rank, int signal, int patience_seconds) {
  const RankOutcome& stopped = outcome(rank);
  if (paused_ || ending_ || finishing_ || is_over(stopped)) return false;
  const std::string pid = std::to_string(stopped.pid);
  actions_.note("rank " + std::to_string(rank) + " on " + stopped.host + " (pid " + pid +
                ") was stopped by " + signal_text(signal) + "; unless it goes on (kill -CONT " + pid +
                ") the job ends in " + std::to_string(patience_seconds) + " s");
  return true;
}

void Supervisor::on_rank_stayed_stopped(int rank, int signal) {
  if (paused_ || is_over(outcome(rank))) return;
  if (!begin_end(EndReason::kRankStopped, contract::kSignalBase + signal, SIGTERM, job_.kill_grace_seconds))
    return;
  report_.first_failure = rank;
  report_.signal = signal;
}

void Supervisor::on_abort(int rank, int exit_code, const std::string& text) {
  // An exit status has 8 bits, and an abort is never a success.
  const int code = (exit_code & 0xff) == 0 ? 1 : exit_code & 0xff;
  // Who calls for the end has not merely seen another go.
  if (waiting_) report_.first_failure.reset();
  waiting_ = false;
  if (!begin_end(EndReason::kAborted, code, SIGTERM, job_.kill_grace_seconds)) return;
  report_.first_failure = rank;
  report_.abort_message = text;
}

void Supervisor::on_agent_failed(int node, const std::string& text, bool lost) {
  if (is_node_over(node)) return;
  // Also if all ranks have ended well: what they wrote last, or what they left behind, may be lost with it.
  if (!ending_ || (lost && is_loss_before_first_failure(node))) {
    report_.first_failure.reset();
    report_.message = text;
    end(lost ? EndReason::kHostLost : EndReason::kStartFailed,
        lost ? contract::kLostHost : contract::kStartFailure, SIGKILL, 0);
  }
  end_node(node);
  // Its ranks will not be heard of any more; those of other nodes are waited for.
  for (std::size_t rank = 0; rank < report_.ranks.size(); ++rank) {
    if (job_.rank_nodes[rank] == node && !is_over(report_.ranks[rank])) ++ended_;
  }
  if (!done_) finish_if_all_ended();
}

void Supervisor::on_agent_told_to_end(int node, const std::string& text, int signal) {
  if (is_node_over(node)) return;
  if (ending_ ? !is_loss_before_first_failure(node) : finishing_ || done_) return;
  report_.first_failure.reset();
  report_.signal = signal;
  report_.message = text;
  end(EndReason::kSignal, contract::kSignalBase + signal, signal, job_.kill_grace_seconds);
}

bool Supervisor::is_loss_before_first_failure(int node) const {
  if (report_.reason != EndReason::kRankFailed) return false;
  const RankOutcome& first = first_failure();
  const auto is_any = [this, node](const auto& holds) {
    return std::any_of(report_.ranks.begin(), report_.ranks.end(),
                       [&](const RankOutcome& rank) { return node_of(rank.rank) == node && holds(rank); });
  };
  if (is_consequence(first) && node_of(first.gone_rank) == node)
    return !is_over(report_.ranks[static_cast<std::size_t>(first.gone_rank)]);
  // Ranks of other hosts exit because this one's are gone, and are heard of at once; a loss may show late. If its agent has
  // told of a rank that it ended, it was lost after that.
  return first.kind == Kind::kExited && node_of(first.rank) != node &&
         is_any([](const RankOutcome& rank) { return !is_over(rank); }) &&
         !is_any([](const RankOutcome& rank) { return is_over(rank) && !rank.before_end; });
}

void Supervisor::on_finished(int node, int leftovers) {
  if (is_node_over(node)) return;
  report_.leftovers_ended += leftovers;
  end_node(node);
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
      if (settle()) return;
      const bool first = begin_end(EndReason::kSignal, contract::kSignalBase + signal,
                                   signal == SIGINT ? SIGTERM : signal, job_.kill_grace_seconds);
      if (first) {
        report_.signal = signal;
        if (signal == SIGINT) {
          actions_.note("ending " + counted(static_cast<std::int64_t>(report_.ranks.size()), "rank") +
                        "; ^C again kills them now");
        }
      } else if (!killing_) {
        // Whatever the job is ending for: who asks twice does not want to wait.
        killing_ = true;
        actions_.end_ranks(SIGKILL, 0);
      }
    }
  }
}

void Supervisor::on_timeout() {
  begin_end(EndReason::kTimeout, contract::kTimeout, SIGTERM, job_.kill_grace_seconds);
}

void Supervisor::on_output_broken() {
  if (begin_end(EndReason::kSignal, contract::kSignalBase + SIGPIPE, SIGTERM, job_.kill_grace_seconds)) {
    report_.signal = SIGPIPE;
    report_.message = "nobody reads ddlrun's output any more";
  }
}

bool Supervisor::begin_end(EndReason reason, int exit_code, int signal, double grace_seconds) {
  // What fails first stays the reason, also if what explains it is still under way.
  if (settle() || ending_ || finishing_ || done_) return false;
  end(reason, exit_code, signal, grace_seconds);
  return true;
}

void Supervisor::end(EndReason reason, int exit_code, int signal, double grace_seconds) {
  ending_ = true;
  waiting_ = false;
  report_.reason = reason;
  report_.exit_code = exit_code;
  actions_.end_ranks(signal, grace_seconds);
}

void Supervisor::end_node(int node) {
  over_nodes_.at(static_cast<std::size_t>(node)) = true;
  if (std::find(over_nodes_.begin(), over_nodes_.end(), false) != over_nodes_.end()) return;
  done_ = true;
  actions_.done();
}

void Supervisor::finish_if_all_ended() {
  if (finishing_ || ended_ < report_.ranks.size()) return;
  finishing_ = true;
  actions_.finish();
}

}  // namespace ddl::launcher
