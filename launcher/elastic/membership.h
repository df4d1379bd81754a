// The processes of an elastic job whose ranks go on when others fail, and which of them are the ranks of the next
// generation.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "contract/elastic.h"
#include "launcher/elastic/cooldown.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// A process, from its start to its end. Its number is never used again.
struct Member {
  enum class Phase {
    kStarting,  ///< it has not joined yet
    kWaiting,   ///< for the next generation
    kRank,      ///< of the generation
    kFinished,  ///< the same, and its work is done
    kRemoved,   ///< it waited, and is not wanted any more
    kEnded,
  };
  std::string host;
  int slot = 0;  ///< on the host: its local rank
  Phase phase = Phase::kStarting;
  RankOutcome outcome;                          ///< rank: in its last generation; -1: in none
  std::string why_lost;                         ///< if it was lost with its host: a sentence
  std::int64_t commits = 0;                     ///< as it has said when it joined last
  std::chrono::steady_clock::time_point since;  ///< of the phase
};

/// A state machine without clock and I/O. One thread. Decides alone what a generation consists of: it is over when one
/// of its ranks has ended or joins again, and the next one begins when each of the others has done so, too.
class Membership {
 public:
  using Time = Rest::Time;

  /// The next generation.
  struct Plan {
    int generation = 0;
    std::vector<int> members;     ///< by rank
    std::vector<int> removed;     ///< that waited, and are not wanted any more
    std::optional<int> lost;      ///< the member whose end has ended the generation before; nullopt: none has
    std::optional<Time> lost_at;  ///< when a rank of it was lost; nullopt: none was
    std::int64_t commits = 0;     ///< the most that a member has
  };
  /// The job is over.
  struct End {
    JobEnd how;
    std::string why;  ///< a sentence about what keeps it from going on; "": nothing has to
  };
  struct Wait {
    std::optional<Time> until;  ///< unless something happens; nullopt: only then
    std::string why;            ///< what for, as a sentence; "" while all is well
  };
  using Decision = std::variant<Plan, End, Wait>;

  /// spec outlives it. cooldown: of a slot whose process has failed.
  Membership(const JobSpec& spec, Cooldown cooldown, Time now)
      : spec_(spec), cooldown_(std::move(cooldown)), waiting_since_(now) {}

  /// A process is being started; returns its number.
  int add(const std::string& host, int slot);
  void on_started(int member, std::int64_t pid);
  void on_joined(int member, contract::JoinReason reason, std::int64_t commits, Time now);
  void on_finished(int member);
  /// The ranks of the generation are connected with each other. Only said of those that cannot join again before
  /// (JobSpec::serves_gloo).
  void on_met() { is_formed_ = true; }
  /// Nothing if it has ended already.
  void on_ended(int member, const RankOutcome& outcome, Time now);
  /// It was lost with its host, as this sentence says; or the launch that was to start it has failed.
  void on_lost(int member, const std::string& why, Time now);
  /// Its host is not one of the job any more: it is not a rank of the next generation, if others have the state.
  void set_leaving(int member) { leaving_.insert(member); }
  /// Its host is one of the job after all.
  void set_staying(int member) { leaving_.erase(member); }
  /// It is to leave, and is neither a rank nor needed for what it knows.
  bool may_end(int member) const;
  bool is_leaving(int member) const { return leaving_.contains(member); }
  /// A process that has not ended is not to leave, either.
  bool has_staying() const { return count_staying() > 0; }
  /// The job is to end when its ranks have saved its state, also those that were to leave; processes that have never
  /// been ranks are to leave now. why: a sentence.
  void drain(std::string why);
  /// A rank has done its work.
  bool is_finishing() const { return stage_ == Stage::kFinishing; }
  bool is_draining() const { return !drain_reason_.empty(); }

  /// other_host: when a host that has no process now may get one, at the earliest; nullopt: none will.
  Decision next(Time now, std::optional<Time> other_host);

  /// Slots of this host for which a process is to be started now: it has none, and has rested after a failure.
  std::vector<int> free_slots(const std::string& host, int slots, Time now) const;
  /// When a slot has rested, after now; nullopt: none rests.
  std::optional<Time> next_rest_end(Time now) const;
  /// How many more processes are wanted.
  int room() const;
  /// What the ranks are to come together for.
  contract::JobChange pending_change(Time now) const;
  /// The rank because of whose end the generation is over, for those that may wait for it; nullopt: there is none.
  std::optional<int> lost_rank() const { return lost_; }
  /// Ranks that have not joined again although the generation is over and their time has passed.
  std::vector<int> hung(Time now) const;

  /// Of the ranks of the last generation; before the first one, of all members.
  std::vector<RankOutcome> outcomes() const;
  const Member& member(int number) const { return members_.at(number); }
  const std::vector<int>& ranks() const { return ranks_; }            ///< of the generation: members, by rank
  int generation() const { return generation_; }                      ///< -1: none yet
  bool has_formed() const { return generation_ >= 0 && is_formed_; }  ///< on_met()

 private:
  enum class Stage {
    kGathering,  ///< there is no generation, or the last one is over
    kRunning,
    kFinishing,  ///< a rank has done its work
  };
  using Slot = std::pair<std::string, int>;
  void set_phase(Member& one, Member::Phase phase, Time now) {
    one.phase = phase;
    one.since = now;
  }
  /// Members of one of these phases.
  std::vector<int> in_phase(std::initializer_list<Member::Phase> phases) const;
  /// Those of the waiting that the next generation has, by rank.
  std::vector<int> choose() const;
  int count_staying() const;
  /// Of a process that waits: it was a rank, and has got as far as to take over what was committed.
  bool has_state(int member) const {
    const Member& one = members_[member];
    return one.outcome.rank >= 0 && (one.commits > 0 || commits_ == 0);
  }
  /// Whether this failure, and not that of the member that has failed so far, is what has ended the generation.
  bool is_cause(const std::optional<int>& so_far, const RankOutcome& outcome) const;
  void end_generation(Time now);
  /// It has saved the state, or left that to others, as it was asked to.
  bool has_drained(const RankOutcome& outcome) const;
  /// If the job was to be drained and has been.
  std::optional<End> drained() const;
  int required_ranks() const {
    return is_draining() ? 1 : generation_ < 0 ? spec_.elastic.start_ranks : spec_.elastic.min_ranks;
  }
  Decision gather(Time now, std::optional<Time> other_host);
  Decision plan(std::vector<int> chosen);
  End end_with_failure(std::string why) const;
  /// Programs of Horovod with Gloo: processes of a later generation could not join them.
  bool takes_no_others() const { return spec_.serves_gloo && generation_ >= 0; }
  /// Nobody is left that has the state: unless it is in a file.
  std::optional<End> end_without_state() const;

  const JobSpec& spec_;
  Cooldown cooldown_;  ///< of slots
  std::vector<Member> members_;
  std::set<int> leaving_;
  std::string drain_reason_;  ///< "": it is not to end
  Stage stage_ = Stage::kGathering;
  int generation_ = -1;
  bool is_formed_ = true;
  std::vector<int> ranks_;
  std::optional<int> lost_;  ///< the first member that was lost in this generation
  std::optional<Time> lost_at_;
  std::optional<Time> over_since_;  ///< the generation; its ranks are expected to join
  Time waiting_since_;              ///< for enough processes
  std::map<Slot, Rest> rests_;
  std::int64_t commits_ = 0;  ///< the most that was ever heard of
  int faults_without_commit_ = 0;
  int losses_without_commit_ = 0;      ///< these, and those that come from outside
  std::optional<int> failed_;          ///< the last member whose failure has ended a generation
  bool has_any_joined_again_ = false;  ///< the program can do that
};

/// "was killed by SIGKILL", "exited with 7", "was lost with its host".
std::string how_it_ended(const RankOutcome& outcome);

}  // namespace ddl::launcher
