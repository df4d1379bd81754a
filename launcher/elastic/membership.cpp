#include "launcher/elastic/membership.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <tuple>

#include <fmt/format.h>

#include "base/deadline.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

using Phase = Member::Phase;

// Then the program fails at the same step each time.
constexpr int kMaxFaultsWithoutCommit = 3;
// Whatever the cause: nothing is reached.
constexpr int kMaxLossesWithoutCommit = 10;
// What tells of a connection may arrive after what tells of the end of a rank.
constexpr std::chrono::seconds kFormingTime{1};

/// It has failed by itself: it was not killed from outside, nor lost with its host.
bool is_own_fault(const RankOutcome& outcome) {
  constexpr std::array kOfProgram = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  return outcome.kind == RankOutcome::Kind::kExited ||
         (outcome.kind == RankOutcome::Kind::kSignalled &&
          std::find(kOfProgram.begin(), kOfProgram.end(), outcome.signal) != kOfProgram.end());
}

}  // namespace

std::string how_it_ended(const RankOutcome& outcome) {
  return outcome.kind == RankOutcome::Kind::kRunning ? "was lost with its host" : rank_ending(outcome);
}

// ---- events ----

int Membership::add(const std::string& host, int slot) {
  Member& one = members_.emplace_back();
  one.host = one.outcome.host = host;
  one.slot = slot;
  one.outcome.rank = -1;
  return static_cast<int>(std::ssize(members_)) - 1;
}

void Membership::on_started(int member, std::int64_t pid) {
  RankOutcome& outcome = members_.at(member).outcome;
  outcome.pid = pid;
  outcome.kind = RankOutcome::Kind::kRunning;
}

void Membership::on_joined(int member, contract::JoinReason reason, std::int64_t commits, Time now) {
  Member& one = members_.at(member);
  if (one.phase == Phase::kEnded || one.phase == Phase::kWaiting) return;
  if (one.phase != Phase::kStarting) {
    has_any_joined_again_ = true;
    end_generation(now);
    if (reason == contract::JoinReason::kLost && !lost_at_) lost_at_ = now;
  }
  one.commits = std::max<std::int64_t>(commits, 0);
  set_phase(one, Phase::kWaiting, now);
}

void Membership::on_finished(int member) {
  Member& one = members_.at(member);
  if (one.phase != Phase::kRank) return;
  one.phase = Phase::kFinished;
  if (stage_ == Stage::kRunning) stage_ = Stage::kFinishing;
}

void Membership::on_ended(int member, const RankOutcome& outcome, Time now) {
  Member& one = members_.at(member);
  if (one.phase == Phase::kEnded) return;
  const int rank = one.outcome.rank;
  const std::int64_t pid = one.outcome.pid;
  one.outcome = outcome;
  one.outcome.host = one.host;
  one.outcome.rank = rank;
  if (one.outcome.pid == 0) one.outcome.pid = pid;
  const bool was_rank = one.phase == Phase::kRank || one.phase == Phase::kFinished;
  // Horovod has no other word for that.
  if (spec_.serves_gloo && was_rank && !is_failure(outcome)) on_finished(member);
  set_phase(one, Phase::kEnded, now);
  if (leaving_.contains(member)) return;
  // A host that was lost rests as a whole.
  if (one.why_lost.empty()) rests_[{host_key(one.host), one.slot}].on_failed(cooldown_, now);
  if (!is_failure(one.outcome) || has_drained(one.outcome)) return;
  if (generation_ < 0 ? !failed_ : was_rank && is_cause(lost_, one.outcome)) failed_ = member;
  if (!was_rank) return;
  if (is_cause(lost_, one.outcome)) lost_ = member;
  if (!lost_at_) lost_at_ = now;
  if (stage_ == Stage::kRunning) end_generation(now);
}

bool Membership::is_cause(const std::optional<int>& so_far, const RankOutcome& outcome) const {
  // The reports of several hosts may arrive in any order: a rank that had observed the end of another is no cause.
  return !so_far || (members_[*so_far].outcome.gone_rank >= 0 && outcome.gone_rank < 0);
}

void Membership::on_lost(int member, const std::string& why, Time now) {
  Member& one = members_.at(member);
  if (one.phase == Phase::kEnded) return;
  RankOutcome outcome = one.outcome;
  outcome.kind = outcome.pid == 0 ? RankOutcome::Kind::kNotStarted : RankOutcome::Kind::kRunning;
  one.why_lost = why;
  on_ended(member, outcome, now);
}

void Membership::drain(std::string why) {
  drain_reason_ = std::move(why);
  leaving_.clear();
  for (const int one : in_phase({Phase::kStarting, Phase::kWaiting})) {
    if (members_[one].outcome.rank < 0) leaving_.insert(one);
  }
}

bool Membership::has_drained(const RankOutcome& outcome) const {
  return is_draining() && outcome.kind == RankOutcome::Kind::kExited &&
         (outcome.exit_code == 0 || outcome.exit_code == contract::kDrained);
}

std::optional<Membership::End> Membership::drained() const {
  // Rank 0 saves it. If it has done its work instead, the others have, too.
  if (stage_ == Stage::kFinishing || ranks_.empty() || !has_drained(members_[ranks_.front()].outcome))
    return std::nullopt;
  return End{end_with(EndReason::kDrained, contract::kDrained, drain_reason_), ""};
}

void Membership::end_generation(Time now) {
  if (stage_ == Stage::kGathering) return;
  if (stage_ == Stage::kRunning) stage_ = Stage::kGathering;
  over_since_ = waiting_since_ = now;
}

// ---- what there is ----

std::vector<int> Membership::in_phase(std::initializer_list<Phase> phases) const {
  std::vector<int> found;
  for (int i = 0; i < std::ssize(members_); ++i) {
    if (std::find(phases.begin(), phases.end(), members_[i].phase) != phases.end()) found.push_back(i);
  }
  return found;
}

std::vector<int> Membership::choose() const {
  std::vector<int> chosen;
  const auto waiting = in_phase({Phase::kWaiting});
  const auto is_new = [this](int one) { return !has_state(one); };
  for (const int one : waiting) {
    if (!leaving_.contains(one)) chosen.push_back(one);
  }
  // Those that are to leave stay until others have the state.
  if (generation_ >= 0 && std::all_of(chosen.begin(), chosen.end(), is_new)) {
    for (const int one : waiting) {
      if (leaving_.contains(one) && has_state(one)) chosen.push_back(one);
    }
  }
  // Those that have been ranks, and then the oldest.
  std::stable_partition(chosen.begin(), chosen.end(), [&](int one) { return !is_new(one); });
  if (std::ssize(chosen) > spec_.elastic.max_ranks) chosen.resize(spec_.elastic.max_ranks);
  // Hosts stay in their order: rank 0 is on the oldest one that has a process that was a rank.
  std::map<std::string, std::pair<bool, int>> ages;
  for (const int one : chosen) {
    const auto age = std::pair(is_new(one), one);
    const auto [host, is_first] = ages.emplace(host_key(members_[one].host), age);
    if (!is_first) host->second = std::min(host->second, age);
  }
  std::sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    const auto place = [&](int one) {
      return std::tuple(ages.at(host_key(members_[one].host)), members_[one].slot, one);
    };
    return place(a) < place(b);
  });
  return chosen;
}

std::vector<int> Membership::free_slots(const std::string& host, int slots, Time now) const {
  std::vector<int> free;
  for (int slot = 0; slot < slots; ++slot) {
    const bool is_taken = std::any_of(members_.begin(), members_.end(), [&](const Member& one) {
      return one.phase != Phase::kEnded && one.slot == slot && host_key(one.host) == host_key(host);
    });
    const auto rest = rests_.find({host_key(host), slot});
    if (!is_taken && (rest == rests_.end() || rest->second.until() <= now)) free.push_back(slot);
  }
  return free;
}

std::optional<Membership::Time> Membership::next_rest_end(Time now) const {
  std::optional<Time> next;
  for (const auto& [slot, rest] : rests_) {
    if (rest.until() > now && (!next || rest.until() < *next)) next = rest.until();
  }
  return next;
}

int Membership::room() const {
  if (stage_ == Stage::kFinishing || is_draining() || takes_no_others()) return 0;
  return std::max(0, spec_.elastic.max_ranks + spec_.elastic.spares - count_staying());
}

bool Membership::may_end(int member) const {
  const Phase phase = members_.at(member).phase;
  if (!leaving_.contains(member) || phase == Phase::kRank || phase == Phase::kFinished) return false;
  return phase != Phase::kWaiting || !has_state(member);
}

int Membership::count_staying() const {
  int staying = 0;
  for (int i = 0; i < std::ssize(members_); ++i)
    staying += members_[i].phase != Phase::kEnded && !leaving_.contains(i) ? 1 : 0;
  return staying;
}

contract::JobChange Membership::pending_change(Time now) const {
  using contract::JobChange;
  if (is_draining()) return JobChange::kDrain;
  if (stage_ != Stage::kRunning) return JobChange::kNone;
  const auto leaves = [this](int one) { return leaving_.contains(one); };
  const auto waiting = in_phase({Phase::kWaiting});
  // If nobody stays, those that are to leave go on until somebody comes who gets the state.
  const bool do_any_leave = std::any_of(ranks_.begin(), ranks_.end(), leaves);
  const bool do_all_leave = std::all_of(ranks_.begin(), ranks_.end(), leaves) &&
                            std::all_of(waiting.begin(), waiting.end(), leaves);
  if (do_any_leave && !do_all_leave) return JobChange::kMembers;
  if (std::ssize(ranks_) >= spec_.elastic.max_ranks) return JobChange::kNone;
  const bool do_others_start = !in_phase({Phase::kStarting}).empty();
  const bool has_any_settled = std::any_of(waiting.begin(), waiting.end(), [&](int one) {
    return !leaving_.contains(one) &&
           (!do_others_start || now - members_[one].since >= clock_duration(spec_.elastic.settle_seconds));
  });
  return has_any_settled ? JobChange::kMembers : JobChange::kNone;
}

std::vector<int> Membership::hung(Time now) const {
  if (stage_ != Stage::kGathering || !over_since_ ||
      now - *over_since_ < clock_duration(spec_.elastic.ready_timeout_seconds))
    return {};
  return in_phase({Phase::kRank});
}

// ---- decisions ----

Membership::Decision Membership::next(Time now, std::optional<Time> other_host) {
  if (stage_ == Stage::kGathering) return gather(now, other_host);
  const bool have_all_ended = std::all_of(ranks_.begin(), ranks_.end(),
                                          [this](int rank) { return members_[rank].phase == Phase::kEnded; });
  if (stage_ == Stage::kFinishing && lost_) return end_with_failure("");
  if (stage_ == Stage::kFinishing && over_since_) {
    JobEnd how = end_with(EndReason::kAborted, 1);
    how.first_failure = 0;
    while (members_[ranks_[*how.first_failure]].phase != Phase::kWaiting) ++*how.first_failure;
    how.abort_message = "it has joined again after other ranks had done their work";
    return End{std::move(how), ""};
  }
  if (have_all_ended) return drained().value_or(End{});
  std::optional<Time> until;
  for (const int one : in_phase({Phase::kWaiting})) {
    const Time settled = members_[one].since + clock_duration(spec_.elastic.settle_seconds);
    if (settled > now && (!until || settled < *until)) until = settled;
  }
  return Wait{until, ""};
}

Membership::Decision Membership::gather(Time now, std::optional<Time> other_host) {
  if (generation_ >= 0 && !is_formed_ && lost_at_) {
    const Time formed_until = *lost_at_ + kFormingTime;
    if (now < formed_until) return Wait{formed_until, ""};
    const bool has_begun = !lost_ || members_[*lost_].outcome.kind == RankOutcome::Kind::kExited ||
                           members_[*lost_].outcome.kind == RankOutcome::Kind::kSignalled;
    return end_with_failure(
        has_begun
            ? "a rank has ended while the ranks connected with each other, and Horovod does not survive that"
            : "with --gloo a job begins with all ranks, or not at all");
  }
  const Time enough_until = waiting_since_ + clock_duration(spec_.elastic.timeout_seconds);
  const auto starting = in_phase({Phase::kStarting});
  if (!in_phase({Phase::kRank}).empty()) {
    const Time hung_from = *over_since_ + clock_duration(spec_.elastic.ready_timeout_seconds);
    return Wait{hung_from > now ? std::optional(hung_from) : std::nullopt, ""};
  }
  std::vector<int> chosen = choose();
  if (auto end = drained(); end && chosen.empty()) return *std::move(end);
  const int required = required_ranks();
  if (generation_ < 0) {
    if (!members_.empty() && std::ssize(chosen) + std::ssize(starting) < required) {
      if (failed_) return end_with_failure("");
      // They do not use libddl, or leave it to others.
      if (chosen.empty() && starting.empty()) return End{};
    }
    if (!starting.empty() && now < enough_until) return Wait{enough_until, ""};
  } else if (std::none_of(chosen.begin(), chosen.end(), [this](int one) { return has_state(one); })) {
    if (auto end = end_without_state()) return *std::move(end);
  }
  if (std::ssize(chosen) >= required) return plan(std::move(chosen));
  std::string why = fmt::format("{} of at least {} can run", counted(std::ssize(chosen), "rank"), required);
  if (!starting.empty())
    why += fmt::format(", and {} {} not joined yet", counted(std::ssize(starting), "process"),
                       starting.size() == 1 ? "has" : "have");
  const auto other_slot = next_rest_end(now);
  const bool may_others_come =
      !takes_no_others() && (!starting.empty() || (other_slot && *other_slot <= enough_until) ||
                             (other_host && *other_host <= std::max(now, enough_until)));
  if (now < enough_until && may_others_come) return Wait{enough_until, why};
  return end_with_failure(may_others_come ? fmt::format("{}; that was waited for {} s (--elastic-timeout)",
                                                        why, spec_.elastic.timeout_seconds)
                                          : why + ", and no others can come");
}

std::optional<Membership::End> Membership::end_without_state() const {
  const bool is_kept = !spec_.elastic.state_directory.empty() && spec_.elastic.state_interval > 0;
  if (is_draining() && is_kept)
    return End{end_with(EndReason::kDrained, contract::kDrained, drain_reason_), ""};
  if (is_kept) return std::nullopt;  // new processes read it
  if (spec_.serves_gloo)
    return end_with_failure(
        has_any_joined_again_
            ? "all ranks have ended, and with them the state; write checkpoints, and start from the last one"
            : "all ranks have ended, and none has joined again; a program of Horovod that goes on calls "
              "hvd.elastic.run(), and --elastic restart starts every program again");
  if (has_any_joined_again_ || is_draining() || !spec_.elastic.state_directory.empty())
    return end_with_failure(
        "all ranks have ended, and with them the state; --state-dir DIR --state-interval N keeps it in a "
        "file");
  return end_with_failure(
      "all ranks have ended, and none has joined again; a program that goes on calls ddl.elastic.run() or "
      "ddl_elastic_join(), and --elastic restart starts every program again");
}

Membership::Decision Membership::plan(std::vector<int> chosen) {
  Plan plan;
  for (const int one : chosen) plan.commits = std::max(plan.commits, members_[one].commits);
  if (plan.commits > commits_) faults_without_commit_ = losses_without_commit_ = 0;
  if (lost_at_) ++losses_without_commit_;
  if (lost_at_ && (!lost_ || is_own_fault(members_[*lost_].outcome))) ++faults_without_commit_;
  // Programs of Horovod do not tell of commits.
  if (spec_.serves_gloo) faults_without_commit_ = losses_without_commit_ = 0;
  if (faults_without_commit_ >= kMaxFaultsWithoutCommit)
    return end_with_failure(
        fmt::format("ranks have failed {} times without a commit between them", faults_without_commit_));
  if (losses_without_commit_ >= kMaxLossesWithoutCommit)
    return end_with_failure(
        fmt::format("ranks have been lost {} times without a commit between them", losses_without_commit_));
  if (spec_.elastic.reset_limit > 0 && generation_ >= spec_.elastic.reset_limit)
    return end_with_failure(fmt::format("there were as many new generations as --reset-limit {} allows",
                                        spec_.elastic.reset_limit));
  commits_ = std::max(commits_, plan.commits);
  plan.lost_at = lost_at_;
  plan.lost = lost_;
  for (const int one : in_phase({Phase::kWaiting})) {
    if (!leaving_.contains(one) || std::find(chosen.begin(), chosen.end(), one) != chosen.end()) continue;
    members_[one].phase = Phase::kRemoved;
    plan.removed.push_back(one);
  }
  plan.generation = ++generation_;
  is_formed_ = !spec_.serves_gloo;
  for (int rank = 0; rank < std::ssize(chosen); ++rank) {
    Member& one = members_[chosen[rank]];
    one.phase = Phase::kRank;
    one.outcome.rank = rank;
  }
  ranks_ = chosen;
  plan.members = std::move(chosen);
  stage_ = Stage::kRunning;
  lost_.reset();
  lost_at_.reset();
  over_since_.reset();
  return plan;
}

std::vector<RankOutcome> Membership::outcomes() const {
  std::vector<RankOutcome> outcomes;
  if (generation_ >= 0) {
    for (const int rank : ranks_) outcomes.push_back(members_[rank].outcome);
    return outcomes;
  }
  for (const Member& one : members_) {
    outcomes.push_back(one.outcome);
    outcomes.back().rank = static_cast<int>(std::ssize(outcomes)) - 1;
  }
  return outcomes;
}

Membership::End Membership::end_with_failure(std::string why) const {
  if (!failed_) return {end_with(EndReason::kStartFailed, contract::kStartFailure, why), ""};
  const Member& failed = members_[*failed_];
  const auto place = std::find(ranks_.begin(), ranks_.end(), *failed_);
  if (failed.outcome.kind == RankOutcome::Kind::kNotStarted)
    return {end_with(EndReason::kStartFailed, contract::kStartFailure, failed.why_lost), std::move(why)};
  if (failed.outcome.kind == RankOutcome::Kind::kRunning)
    return {end_with(EndReason::kHostLost, contract::kLostHost, failed.why_lost), std::move(why)};
  JobEnd how = end_with(failed.outcome.kind == RankOutcome::Kind::kStartFailed ? EndReason::kStartFailed
                                                                               : EndReason::kRankFailed,
                        exit_code_of(failed.outcome));
  if (generation_ < 0) how.first_failure = *failed_;
  if (place != ranks_.end()) how.first_failure = static_cast<int>(place - ranks_.begin());
  return {std::move(how), std::move(why)};
}

}  // namespace ddl::launcher
