#include "launcher/head/stall_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "launcher/job/rank_work.h"

namespace ddl::launcher {
namespace {

/// Ranks and tensors that one sentence names.
constexpr std::size_t kMaxRanks = 8;
constexpr std::size_t kMaxNames = 3;

std::string seconds_text(double seconds) { return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 1 : 0); }

}  // namespace

std::string doing_text(const RankActivity& rank) {
  if (rank.pid == 0) return "has ended";
  if (rank.is_stopped) return "is stopped (SIGSTOP)";
  const CurrentWork work = current_work(rank);
  const std::string duration = seconds_text(work.seconds);
  switch (work.kind) {
    case CurrentWork::Kind::kNone: return "has not called ddl_init";
    case CurrentWork::Kind::kInit: return "is in ddl_init";
    case CurrentWork::Kind::kFinalized: return work_text(work);
    case CurrentWork::Kind::kCall: return "has been inside " + work_text(work) + " for " + duration;
    case CurrentWork::Kind::kJoin: return "has been in ddl_join";
    case CurrentWork::Kind::kTensor:
      return "has waited for tensor \"" + work.tensor + "\"" + set_suffix(work.set) + " for " + duration;
    case CurrentWork::Kind::kUserCode: return "has been in user code for " + duration;
  }
  return "";
}

std::string hanging_text(const RankActivity& rank) {
  const std::string process = rank.is_stopped || rank.pid == 0 ? "" : process_text(rank.process);
  // It may be a program without libddl.
  if (!process.empty() && current_work(rank).kind == CurrentWork::Kind::kNone) return "it " + process;
  return "it " + doing_text(rank) + (process.empty() ? "" : ", and " + process);
}

namespace {

/// A process set and those of its members that have answered.
struct Members {
  std::vector<std::pair<const RankActivity*, const SetActivity*>> all;
  const SetActivity& set() const { return *all.front().second; }
  std::vector<const RankActivity*> ranks() const {
    std::vector<const RankActivity*> ranks;
    for (const auto& [rank, set] : all) ranks.push_back(rank);
    return ranks;
  }
};

class StallFinder {
 public:
  StallFinder(const std::vector<RankActivity>& ranks, const std::vector<std::string>& hosts,
              double least_seconds)
      : hosts_(hosts), least_seconds_(least_seconds) {
    for (const RankActivity& rank : ranks) {
      by_rank_[rank.rank] = &rank;
      for (const SetActivity& set : rank.sets) sets_[set.generation].all.emplace_back(&rank, &set);
    }
    for (int rank = 0; rank < std::ssize(hosts); ++rank) {
      if (by_rank_.contains(rank)) continue;
      silent_.emplace_back().rank = rank;
    }
  }

  std::vector<Stall> find() {
    find_in_init();
    for (const auto& [generation, members] : sets_) {
      find_in_calls(members);
      find_in_transfers(members);
      find_in_join(members);
      find_in_tensors(generation, members);
    }
    return std::move(stalls_);
  }

 private:
  using Ranks = std::vector<const RankActivity*>;

  /// For whom ranks wait.
  struct Awaited {
    Ranks missing;  ///< have not come
    Ranks unknown;  ///< may not have come
  };

  Ranks silent() const {
    Ranks ranks;
    for (const RankActivity& rank : silent_) ranks.push_back(&rank);
    return ranks;
  }
  bool is_silent(const RankActivity& rank) const { return !by_rank_.contains(rank.rank); }
  /// Null if there is no such rank.
  const RankActivity* find(int rank) const {
    if (const auto found = by_rank_.find(rank); found != by_rank_.end()) return found->second;
    const auto found = std::find_if(silent_.begin(), silent_.end(),
                                    [rank](const RankActivity& one) { return one.rank == rank; });
    return found == silent_.end() ? nullptr : &*found;
  }

  std::string label(const RankActivity& rank) const {
    return "rank " + std::to_string(rank.rank) + " (" +
           (rank.rank >= 0 && rank.rank < std::ssize(hosts_) ? hosts_[rank.rank] : "") +
           (rank.pid == 0 ? "" : ", pid " + std::to_string(rank.pid)) + ")";
  }

  std::string doing(const RankActivity& rank) const {
    return is_silent(rank) ? "has not answered" : doing_text(rank);
  }

  /// "rank 3 (node2, pid 4242), which is stopped (SIGSTOP)", or several with what each does.
  std::string what_of(const Ranks& ranks) const {
    if (ranks.size() == 1) return label(*ranks.front()) + ", which " + doing(*ranks.front());
    std::string text = std::to_string(ranks.size()) + " ranks: ";
    for (std::size_t i = 0; i < std::min(ranks.size(), kMaxRanks); ++i)
      text += (i > 0 ? ", " : "") + label(*ranks[i]) + " " + doing(*ranks[i]);
    if (ranks.size() > kMaxRanks) text += " and " + std::to_string(ranks.size() - kMaxRanks) + " more";
    return text;
  }

  /// "3 of 4 ranks have waited for 61 s". all: those that have answered, of this set.
  std::string count_text(std::size_t waiting, std::size_t all, bool is_of_all_ranks, double seconds) const {
    const std::string of = silent_.empty() || is_of_all_ranks
                               ? std::to_string(all + (is_of_all_ranks ? silent_.size() : 0)) + " ranks"
                               : "the " + std::to_string(all) + " ranks that have answered";
    return fmt::format("{} of {} {} waited for {}", waiting, of, waiting == 1 ? "has" : "have",
                       seconds_text(seconds));
  }

  /// subject: 'allreduce #812'. waiting: those of all these ranks that wait. set: 0 is that of all ranks.
  void add(const std::string& subject, std::int64_t set, const Ranks& waiting, double seconds,
           const Awaited& awaited, const Ranks& all) {
    Stall stall;
    stall.what = subject;
    stall.seconds = seconds;
    stall.sentence = subject + ": " + count_text(waiting.size(), all.size(), set == 0, seconds);
    Ranks culprits = awaited.missing;
    if (!awaited.unknown.empty()) stall.sentence += ", perhaps for " + what_of(awaited.unknown);
    if (!awaited.missing.empty()) {
      stall.sentence += (awaited.unknown.empty() ? " for " : ", and for ") + what_of(awaited.missing);
    } else {
      for (const RankActivity* rank : all) {
        if (rank->is_stopped || rank->pid == 0) culprits.push_back(rank);
      }
      if (!culprits.empty()) {
        stall.sentence += "; among them " + what_of(culprits);
      } else if (awaited.unknown.empty()) {
        stall.sentence += ", and none is missing";
      }
    }
    for (const RankActivity* rank : waiting) stall.waiting.push_back(rank->rank);
    for (const RankActivity* rank : culprits) stall.missing.push_back(rank->rank);
    for (const RankActivity* rank : awaited.unknown) stall.unknown.push_back(rank->rank);
    std::sort(stall.unknown.begin(), stall.unknown.end());
    stall.key = subject;
    for (const int rank : stall.missing) stall.key += " " + std::to_string(rank);
    for (const int rank : stall.unknown) stall.key += " ?" + std::to_string(rank);
    stalls_.push_back(std::move(stall));
  }

  void find_in_init() {
    Ranks all, missing, waiting;
    double seconds = 0;
    std::int64_t inits = 0;
    for (const auto& [number, rank] : by_rank_) {
      all.push_back(rank);
      if (rank->phase != RankActivity::Phase::kJoining) continue;
      waiting.push_back(rank);
      inits = std::max(inits, rank->inits);
      seconds = std::max<double>(seconds, rank->seconds);
    }
    // A rank that has joined is not missing, unless that was in an earlier program than the one that waits.
    for (const RankActivity* rank : all) {
      const bool has_left =
          rank->phase == RankActivity::Phase::kNone || rank->phase == RankActivity::Phase::kLeft;
      const bool is_behind = rank->phase == RankActivity::Phase::kJoined && rank->inits < inits;
      if (has_left || is_behind) missing.push_back(rank);
    }
    if (!waiting.empty() && seconds >= least_seconds_)
      add("ddl_init", 0, waiting, seconds, {missing, silent()}, all);
  }

  void find_in_join(const Members& members) {
    Ranks missing, waiting;
    double seconds = 0;
    for (const auto& [rank, set] : members.all) {
      (set->has_joined ? waiting : missing).push_back(rank);
      if (set->has_joined) seconds = std::max<double>(seconds, rank->seconds);
    }
    const std::int64_t set = members.set().id;
    if (seconds >= least_seconds_ && !(missing.empty() && silent_.empty()))
      add("ddl_join" + set_suffix(set), set, waiting, seconds, {missing, silent()}, members.ranks());
  }

  void find_in_calls(const Members& members) {
    const SetActivity* latest = nullptr;
    for (const auto& [rank, set] : members.all) {
      const bool waits = set->call.is_inside && set->call.kind != kTransferCall;
      if (waits && (latest == nullptr || set->call.number > latest->call.number)) latest = set;
    }
    if (latest == nullptr) return;
    double seconds = 0;
    Ranks missing, behind, waiting;
    for (const auto& [rank, set] : members.all) {
      const CallActivity& call = set->call;
      const bool has_come = call.number >= latest->call.number && call.kind != kTransferCall;
      if (!has_come) (call.is_inside && !rank->is_stopped ? behind : missing).push_back(rank);
      if (!has_come || !call.is_inside) continue;
      waiting.push_back(rank);
      seconds = std::max<double>(seconds, call.seconds);
    }
    // One that is in an earlier call waits there for the same ranks.
    if (missing.empty()) missing = behind;
    if (seconds >= least_seconds_)
      add(call_text(latest->call, *latest), latest->id, waiting, seconds, {missing, silent()},
          members.ranks());
  }

  void find_in_transfers(const Members& members) {
    for (const auto& [rank, set] : members.all) {
      if (!set->call.is_inside || set->call.kind != kTransferCall || set->call.seconds < least_seconds_)
        continue;
      const RankActivity* const peer = find(set->peer);
      if (peer == nullptr) continue;
      Stall stall;
      stall.what = call_text(set->call, *set);
      stall.key = stall.what + " " + std::to_string(rank->rank);
      stall.seconds = set->call.seconds;
      stall.sentence = fmt::format("{}: {} has waited for {} for {}", stall.what, label(*rank),
                                   seconds_text(stall.seconds), what_of({peer}));
      stall.waiting = {rank->rank};
      (is_silent(*peer) ? stall.unknown : stall.missing) = {peer->rank};
      stalls_.push_back(std::move(stall));
    }
  }

  /// A tensor that some members have submitted.
  struct Tensor {
    std::string name;
    std::int64_t digest = 0;
    double seconds = 0;
    std::size_t order = 0;  ///< in which they have done that
    std::set<int> ranks;
  };

  std::map<std::int64_t, Tensor> tensors_of(std::int64_t generation, const Members& members) const {
    std::map<std::int64_t, Tensor> tensors;
    for (const auto& [rank, set] : members.all) {
      for (std::size_t i = 0; i < rank->tensors.size(); ++i) {
        const TensorActivity& one = rank->tensors[i];
        if (one.generation != generation) continue;
        const auto [at, is_new] = tensors.try_emplace(one.digest);
        Tensor& tensor = at->second;
        tensor.name = one.name;
        tensor.digest = one.digest;
        tensor.seconds = std::max<double>(tensor.seconds, one.seconds);
        tensor.order = is_new ? i : std::min(tensor.order, i);
        tensor.ranks.insert(rank->rank);
      }
    }
    return tensors;
  }

  /// 'tensors "a", "b" and 2 more of process set 2'.
  static std::string names_of(const std::vector<const Tensor*>& tensors, const Members& members) {
    std::string names = tensors.size() == 1 ? "tensor " : "tensors ";
    for (std::size_t i = 0; i < std::min(tensors.size(), kMaxNames); ++i)
      names += (i > 0 ? ", \"" : "\"") + tensors[i]->name + "\"";
    if (tensors.size() > kMaxNames) names += " and " + std::to_string(tensors.size() - kMaxNames) + " more";
    return names + set_suffix(members.set().id);
  }

  /// Process sets agree on their tensors each by itself. So if a rank has submitted a tensor of the name to another
  /// set, only this can tell: "; rank 2 (node1, pid 7) has submitted a tensor "a" to process set 1".
  std::string elsewhere(const std::vector<const Tensor*>& tensors, const Ranks& missing) const {
    for (const Tensor* tensor : tensors) {
      for (const RankActivity* rank : missing) {
        const auto other =
            std::find_if(rank->tensors.begin(), rank->tensors.end(),
                         [&](const TensorActivity& one) { return one.digest == tensor->digest; });
        if (other == rank->tensors.end()) continue;
        const auto set = std::find_if(rank->sets.begin(), rank->sets.end(), [&](const SetActivity& one) {
          return one.generation == other->generation;
        });
        if (set == rank->sets.end()) continue;
        return "; " + label(*rank) + " has submitted a tensor \"" + tensor->name + "\" to " +
               (set->id == 0 ? "the process set of all ranks" : "process set " + std::to_string(set->id));
      }
    }
    return "";
  }

  void find_in_tensors(std::int64_t generation, const Members& members) {
    const auto tensors = tensors_of(generation, members);
    std::map<std::pair<Ranks, Ranks>, std::vector<const Tensor*>> by_awaited;  // missing, unknown
    for (const auto& [digest, tensor] : tensors) {
      if (tensor.seconds < least_seconds_) continue;
      Ranks missing, unknown = silent();
      for (const auto& [rank, set] : members.all) {
        if (tensor.ranks.contains(rank->rank) || set->has_joined) continue;
        const bool shows_all = rank->open_tensors == std::ssize(rank->tensors);
        (shows_all ? missing : unknown).push_back(rank);
      }
      by_awaited[{missing, unknown}].push_back(&tensor);
    }
    for (auto& [awaited, waiting] : by_awaited) {
      const auto& [missing, unknown] = awaited;
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](const Tensor* a, const Tensor* b) { return a->order < b->order; });
      double seconds = 0;
      for (const Tensor* tensor : waiting) seconds = std::max(seconds, tensor->seconds);
      Ranks ranks;
      for (const int rank : waiting.front()->ranks) ranks.push_back(by_rank_.at(rank));
      add(names_of(waiting, members), members.set().id, ranks, seconds, {missing, unknown}, members.ranks());
      stalls_.back().sentence += elsewhere(waiting, missing);
    }
  }

  const std::vector<std::string>& hosts_;
  double least_seconds_;
  std::map<int, const RankActivity*> by_rank_;  ///< that have answered
  std::vector<RankActivity> silent_;            ///< the others, by rank; only their numbers are known
  std::map<std::int64_t, Members> sets_;        ///< by generation
  std::vector<Stall> stalls_;
};

}  // namespace

std::vector<Stall> find_stalls(const std::vector<RankActivity>& ranks, const std::vector<std::string>& hosts,
                               double least_seconds) {
  return StallFinder(ranks, hosts, least_seconds).find();
}

}  // namespace ddl::launcher
