#include "launcher/head/supervisor.h"

#include <algorithm>
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

/// It failed after it had observed the end of another rank, which is most likely the cause.
bool is_consequence(const RankOutcome& outcome) { return outcome.gone_rank >= 0; }

}  // namespace

JobReaction Supervisor::react(JobEvent event, JobEnd why, int signal, bool is_first) {
  const JobReaction reaction = launcher::reaction(phase_, event);
  switch (reaction) {
    case JobReaction::kIgnore: break;
    case JobReaction::kReplace:
      if (is_first || !has_reason()) end(std::move(why), signal);
      break;
    case JobReaction::kEnd: end(std::move(why), signal); break;
    case JobReaction::kReport:
      if (is_first || !has_reason()) job_end() = std::move(why);
      break;
    case JobReaction::kAwait:
      phase_ = event == JobEvent::kServerFailed ? JobPhase::kAwaitingClients : JobPhase::kAwaitingCause;
      phase_ == JobPhase::kAwaitingClients ? actions_->wait_for_clients() : actions_->wait_for_root_cause();
      break;
    case JobReaction::kAccept: end(end_of(outcome(suspect_)), SIGTERM); break;
    case JobReaction::kRelease:
      phase_ = JobPhase::kEndingServers;
      if (ended_ < report_.ranks.size()) end_ranks(SIGTERM);
      break;
    case JobReaction::kKill:
      if (phase_ == JobPhase::kEnding) phase_ = JobPhase::kKilling;
      end_ranks(SIGKILL);
      break;
    case JobReaction::kFinish:
      phase_ = JobPhase::kFinishing;
      actions_->finish();
      break;
    case JobReaction::kAbandon:
      if (!has_reason()) job_end() = std::move(why);
      if (actions_ != nullptr) actions_->abandon_output();
      break;
  }
  return reaction;
}

void Supervisor::end(JobEnd why, int signal) {
  job_end() = std::move(why);
  if (phase_ == JobPhase::kStarting) {
    phase_ = JobPhase::kDone;
    return;
  }
  phase_ = std::max(phase_, JobPhase::kEnding);
  end_ranks(signal);
}

void Supervisor::end_ranks(int signal) {
  actions_->end_ranks(signal, signal == SIGKILL ? 0 : job_.kill_grace_seconds);
}

void Supervisor::on_agents_not_started(JobEnd why) { react(JobEvent::kAgentFailed, std::move(why)); }

void Supervisor::launch(Job job, SupervisorActions& actions) {
  job_ = std::move(job);
  actions_ = &actions;
  DDL_CHECK(!job_.rank_nodes.empty() && job_.rank_nodes.size() == job_.rank_hosts.size(),
            std::to_string(job_.rank_nodes.size()) + " nodes of ranks");
  const int last = *std::max_element(job_.rank_nodes.begin(), job_.rank_nodes.end());
  finished_nodes_.assign(last + 1, false);
  for (int rank = 0; rank < std::ssize(job_.rank_hosts); ++rank) {
    RankOutcome outcome;
    outcome.rank = rank;
    outcome.host = job_.rank_hosts[rank];
    report_.ranks.push_back(std::move(outcome));
    if (is_left_out(rank)) ++ended_;
  }
  phase_ = JobPhase::kRunning;
}

bool Supervisor::is_rank_on(int node, int rank) const {
  return rank >= 0 && rank < std::ssize(job_.rank_nodes) && node_of(rank) == node;
}

bool Supervisor::is_current(int rank, int incarnation) const {
  const RankOutcome& known = outcome(rank);
  return known.incarnation == incarnation && !has_ended(known) && !is_left_out(rank) &&
         !is_node_finished(node_of(rank));
}

void Supervisor::on_rank_started(int rank, int incarnation, std::int64_t pid) {
  if (!is_current(rank, incarnation)) return;
  outcome(rank).kind = Kind::kRunning;
  outcome(rank).pid = pid;
}

void Supervisor::on_rank_ended(RankOutcome ended) {
  if (!is_current(ended.rank, ended.incarnation)) return;
  RankOutcome& recorded = outcome(ended.rank);
  ended.host = recorded.host;
  const bool was_told = ended.gone_rank >= 0;
  // The number comes from another process.
  if (ended.gone_rank == ended.rank || ended.gone_rank >= std::ssize(report_.ranks)) ended.gone_rank = -1;
  recorded = std::move(ended);
  ++ended_;
  stopped_.erase(recorded.rank);

  // A rank that aborts reports that before it exits: its exit is not a second failure.
  if (is_failure(recorded) && !recorded.ended_by_us && !job_.outlives_failures)
    on_failure(recorded, was_told);
  if (phase_ == JobPhase::kAwaitingCause && have_all_gone_ranks_ended()) react(JobEvent::kCauseTimeout);
  look_for_ends();
}

void Supervisor::on_failure(const RankOutcome& failed, bool was_told) {
  // A rank that waited for a stopped one has failed as a consequence.
  if (!stopped_.empty() && can_be_stopped() && (failed.kind == Kind::kExited || was_told)) {
    const auto [rank, signal] = *stopped_.begin();
    return on_rank_stayed_stopped(rank, signal);
  }
  const JobEvent event = serves(failed.rank) && failed.kind == Kind::kExited ? JobEvent::kServerFailed
                         : is_consequence(failed)                            ? JobEvent::kObserverFailed
                                                                             : JobEvent::kRankFailed;
  if (react(event, end_of(failed), SIGTERM, precedes_first_failure(failed)) == JobReaction::kAwait)
    suspect_ = failed.rank;
}

bool Supervisor::precedes_first_failure(const RankOutcome& ended) const {
  if (report_.reason != EndReason::kRankFailed || is_consequence(ended)) return false;
  const RankOutcome& first = outcome(*report_.first_failure);
  // Reports of several hosts may arrive in any order. A rank that observes a peer's death exits with an error; the
  // exit of a peer kills no rank by a signal. So a death by a signal is the cause.
  if (ended.kind == Kind::kSignalled && ended.before_end && first.kind == Kind::kExited) return true;
  // libddl has recorded that the first failure is a consequence of this rank's end.
  return first.gone_rank == ended.rank;
}

bool Supervisor::have_all_gone_ranks_ended() const {
  return std::all_of(report_.ranks.begin(), report_.ranks.end(), [this](const RankOutcome& one) {
    return !is_consequence(one) || has_ended(outcome(one.gone_rank));
  });
}

bool Supervisor::have_clients_ended() const {
  return !job_.serves.empty() &&
         std::all_of(report_.ranks.begin(), report_.ranks.end(),
                     [this](const RankOutcome& one) { return serves(one.rank) || has_ended(one); });
}

JobEnd Supervisor::end_of(const RankOutcome& failed) const {
  JobEnd end = end_with(failed.kind == Kind::kStartFailed ? EndReason::kStartFailed : EndReason::kRankFailed,
                        exit_code_of(failed));
  end.first_failure = culprit_of(failed);
  return end;
}

int Supervisor::culprit_of(const RankOutcome& failed) const {
  if (!is_consequence(failed)) return failed.rank;
  const RankOutcome& gone = outcome(failed.gone_rank);
  return gone.kind == Kind::kExited && gone.exit_code == 0 ? gone.rank : failed.rank;
}

void Supervisor::on_root_cause_timeout() { react(JobEvent::kCauseTimeout); }

bool Supervisor::can_be_stopped() const {
  return !is_paused_ && !job_.outlives_failures && phase_ <= JobPhase::kAwaitingClients;
}

bool Supervisor::on_rank_stopped(int rank, int signal, int patience_seconds) {
  const RankOutcome& stopped = outcome(rank);
  if (!can_be_stopped() || has_ended(stopped)) return false;
  stopped_[rank] = signal;
  const std::string pid = std::to_string(stopped.pid);
  actions_->note("rank " + std::to_string(rank) + " on " + stopped.host + " (pid " + pid +
                 ") was stopped by " + signal_text(signal) + "; unless it is continued (kill -CONT " + pid +
                 ") the job ends in " + std::to_string(patience_seconds) + " s");
  return true;
}

void Supervisor::on_rank_stayed_stopped(int rank, int signal) {
  if (is_paused_ || has_ended(outcome(rank))) return;
  JobEnd why = end_with(EndReason::kRankStopped, contract::kSignalBase + signal, {}, signal);
  why.first_failure = rank;
  react(JobEvent::kRankStayedStopped, std::move(why));
}

void Supervisor::on_abort(int rank, int exit_code, const std::string& text) {
  react(JobEvent::kRankAborted, end_by_abort(rank, exit_code, text));
}

void Supervisor::on_agent_failed(int node, const std::string& text, bool lost) {
  if (is_node_finished(node)) return;
  // Also if all ranks have ended with success: their last output may be lost with the agent, and processes may be
  // left. Ranks of other hosts may have much to save. If an agent could not start its ranks, no rank has worked yet.
  if (lost) {
    react(JobEvent::kAgentLost, end_with(EndReason::kHostLost, contract::kLostHost, text), SIGTERM,
          is_loss_before_first_failure(node));
  } else {
    react(JobEvent::kAgentFailed, end_with(EndReason::kStartFailed, contract::kStartFailure, text), SIGKILL);
  }
  if (is_done()) return;
  mark_node_finished(node);
  // No reports about its ranks will come; the ranks of other nodes are waited for.
  for (const RankOutcome& rank : report_.ranks)
    ended_ += node_of(rank.rank) == node && !has_ended(rank) && !is_left_out(rank.rank) ? 1 : 0;
  look_for_ends();
}

void Supervisor::on_agent_termination_requested(int node, const std::string& text, int signal) {
  // The number comes from another process.
  if (signal < 0 || signal > SIGRTMAX) return on_agent_failed(node, text, true);
  if (is_node_finished(node)) return;
  if (announced_ == Announced::kNothing) announced_ = Announced::kTermination;
  react(JobEvent::kAgentTerminated, end_by_signal(signal, text), signal, is_loss_before_first_failure(node));
}

bool Supervisor::is_loss_before_first_failure(int node) const {
  if (report_.reason != EndReason::kRankFailed) return false;
  const RankOutcome& first = outcome(*report_.first_failure);
  const auto is_any = [this, node](const auto& holds) {
    return std::any_of(report_.ranks.begin(), report_.ranks.end(),
                       [&](const RankOutcome& rank) { return node_of(rank.rank) == node && holds(rank); });
  };
  if (is_consequence(first) && node_of(first.gone_rank) == node) return !has_ended(outcome(first.gone_rank));
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
    case SIGUSR2: return actions_->forward_signal(signal);
    case SIGCONT: is_paused_ = false; return actions_->forward_signal(signal);
    case SIGTSTP:
      is_paused_ = true;
      actions_->forward_signal(signal);
      return actions_->stop_self();
    default: return on_request_to_end(signal);
  }
}

void Supervisor::on_request_to_end(int signal) {
  if (phase_ != JobPhase::kDone && is_announced(signal)) return;
  JobEnd why =
      phase_ == JobPhase::kDone
          ? end_with(EndReason::kOutputLost, contract::kOutputLost, "a signal ended the wait for its reader")
          : end_by_signal(signal, phase_ == JobPhase::kStarting ? "no rank had been started" : "");
  if (react(JobEvent::kSignal, std::move(why), signal) == JobReaction::kEnd && signal == SIGINT &&
      !is_done()) {
    actions_->note("ending " + counted(report_.ranks.size(), "rank") + "; press ^C again to kill them now");
  }
}

bool Supervisor::is_announced(int signal) {
  const Announced before = announced_;
  if (before == Announced::kSignal || signal == SIGTERM)
    announced_ = signal == SIGTERM ? Announced::kReceived : Announced::kNothing;
  return before == Announced::kSignal || (before == Announced::kTermination && signal == SIGTERM);
}

void Supervisor::on_timeout() {
  react(JobEvent::kTimeout, end_with(EndReason::kTimeout, contract::kTimeout));
}

void Supervisor::on_stall(const std::string& sentence) {
  react(JobEvent::kReasonToEnd, end_with(EndReason::kStalled, contract::kTimeout, sentence));
}

void Supervisor::on_port_taken(const std::string& sentence) {
  // Ranks may be about to trust the other: they get no time to.
  react(JobEvent::kReasonToEnd, end_with(EndReason::kPortTaken, contract::kStartFailure, sentence), SIGKILL);
}

bool Supervisor::on_hosts_changed(const std::string& sentence) {
  if (phase_ != JobPhase::kRunning || ended_ > 0) return false;
  return react(JobEvent::kReasonToEnd, end_with(EndReason::kHostsChanged, contract::kLostHost, sentence)) ==
         JobReaction::kEnd;
}

void Supervisor::on_output_broken() {
  react(JobEvent::kOutputBroken, end_by_signal(SIGPIPE, "nobody reads ddlrun's output any more"));
}

void Supervisor::on_caller_ended(const std::string& text) {
  if (phase_ == JobPhase::kStarting || is_done()) return on_request_to_end(SIGTERM);
  if (react(JobEvent::kReasonToEnd, end_by_signal(SIGTERM, text)) == JobReaction::kEnd)
    announced_ = Announced::kSignal;
}

void Supervisor::on_output_lost(const std::string& text) {
  react(JobEvent::kOutputLost, end_with(EndReason::kOutputLost, contract::kOutputLost, text));
}

void Supervisor::on_job_cancelled(const std::string& text) {
  if (report_.reason == EndReason::kRankFailed)
    react(JobEvent::kJobCancelled, end_by_signal(SIGTERM, text), SIGTERM, true);
}

void Supervisor::mark_node_finished(int node) {
  finished_nodes_.at(node) = true;
  if (std::find(finished_nodes_.begin(), finished_nodes_.end(), false) != finished_nodes_.end()) return;
  phase_ = JobPhase::kDone;
  actions_->done();
}

void Supervisor::look_for_ends() {
  if (have_clients_ended()) react(JobEvent::kClientsEnded);
  if (ended_ == report_.ranks.size()) react(JobEvent::kRanksEnded);
}

}  // namespace ddl::launcher
