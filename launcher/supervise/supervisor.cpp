#include "launcher/supervise/supervisor.h"

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/text.h"
#include "contract/exit_code.h"

namespace ddl::launcher {
namespace {

using Kind = RankOutcome::Kind;

bool is_over(const RankOutcome& outcome) {
  return outcome.kind != Kind::kNotStarted && outcome.kind != Kind::kRunning;
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
  place = std::move(ended);
  ++ended_;

  const bool failed =
      place.kind == Kind::kStartFailed || place.kind == Kind::kSignalled || place.exit_code != 0;
  // An aborting rank has spoken before it exits: its exit is not a second failure.
  if (failed && !place.ended_by_us && !ending_) {
    const EndReason reason =
        place.kind == Kind::kStartFailed ? EndReason::kStartFailed : EndReason::kRankFailed;
    const int code = place.kind == Kind::kSignalled ? contract::kSignalBase + place.signal : place.exit_code;
    report_.first_failure = place.rank;
    begin_end(reason, code, SIGTERM, job_.kill_grace_seconds);
  } else if (place.kind == Kind::kSignalled && place.before_end && !place.ended_by_us &&
             report_.reason == EndReason::kRankFailed &&
             outcome(*report_.first_failure).kind == Kind::kExited) {
    // Reports of several hosts overtake each other. Ranks that see a peer die exit with an error of their own; nobody is
    // killed by another's exit.
    report_.first_failure = place.rank;
    report_.exit_code = contract::kSignalBase + place.signal;
  }
  finish_if_all_ended();
}

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
  if (!begin_end(EndReason::kAborted, code, SIGTERM, job_.kill_grace_seconds)) return;
  report_.first_failure = rank;
  report_.abort_message = text;
}

void Supervisor::on_agent_failed(int node, const std::string& text, bool lost) {
  if (is_node_over(node)) return;
  // Also if all ranks have ended well: what they wrote last, or what they left behind, may be lost with it.
  if (!ending_) {
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
  if (ending_ || finishing_ || done_) return false;
  end(reason, exit_code, signal, grace_seconds);
  return true;
}

void Supervisor::end(EndReason reason, int exit_code, int signal, double grace_seconds) {
  ending_ = true;
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
