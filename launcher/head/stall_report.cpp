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

/// A process set and its members.
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

  std::string label(const RankActivity& rank) const {
    const auto index = static_cast<std::size_t>(rank.rank);
    return "rank " + std::to_string(rank.rank) + " (" + (index < hosts_.size() ? hosts_[index] : "") +
           (rank.pid == 0 ? "" : ", pid " + std::to_string(rank.pid)) + ")";
  }

  /// "is stopped (SIGSTOP)".
  static std::string doing(const RankActivity& rank) {
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

  /// "rank 3 (node2, pid 4242), which is stopped (SIGSTOP)", or several with what each does.
  std::string what_of(const Ranks& ranks) const {
    if (ranks.size() == 1) return label(*ranks.front()) + ", which " + doing(*ranks.front());
    std::string text = std::to_string(ranks.size()) + " ranks: ";
    for (std::size_t i = 0; i < std::min(ranks.size(), kMaxRanks); ++i)
      text += (i > 0 ? ", " : "") + label(*ranks[i]) + " " + doing(*ranks[i]);
    if (ranks.size() > kMaxRanks) text += " and " + std::to_string(ranks.size() - kMaxRanks) + " more";
    return text;
  }

  /// subject: 'allreduce #812'. waiting: those of all these ranks that wait for the missing ones.
  void add(const std::string& subject, const Ranks& waiting, double seconds, const Ranks& missing,
           const Ranks& all) {
    Stall stall;
    stall.what = subject;
    stall.seconds = seconds;
    stall.sentence = fmt::format("{}: {} of {} ranks {} waited for {}", subject, waiting.size(), all.size(),
                                 waiting.size() == 1 ? "has" : "have", seconds_text(seconds));
    Ranks culprits = missing;
    if (!missing.empty()) {
      stall.sentence += " for " + what_of(missing);
    } else {
      for (const RankActivity* rank : all) {
        if (rank->is_stopped || rank->pid == 0) culprits.push_back(rank);
      }
      stall.sentence += culprits.empty() ? ", and none is missing" : "; among them " + what_of(culprits);
    }
    for (const RankActivity* rank : waiting) stall.waiting.push_back(rank->rank);
    for (const RankActivity* rank : culprits) stall.missing.push_back(rank->rank);
    stall.key = subject;
    for (const int rank : stall.missing) stall.key += " " + std::to_string(rank);
    stalls_.push_back(std::move(stall));
  }

  void find_in_init() {
    Ranks all, missing, waiting;
    double seconds = 0;
    for (const auto& [number, rank] : by_rank_) {
      all.push_back(rank);
      if (rank->phase == RankActivity::Phase::kNone) missing.push_back(rank);
      if (rank->phase != RankActivity::Phase::kJoining) continue;
      waiting.push_back(rank);
      seconds = std::max<double>(seconds, rank->seconds);
    }
    if (!waiting.empty() && seconds >= least_seconds_) add("ddl_init", waiting, seconds, missing, all);
  }

  void find_in_join(const Members& members) {
    Ranks missing, waiting;
    double seconds = 0;
    for (const auto& [rank, set] : members.all) {
      (set->has_joined ? waiting : missing).push_back(rank);
      if (set->has_joined) seconds = std::max<double>(seconds, rank->seconds);
    }
    if (seconds >= least_seconds_ && !missing.empty())
      add("ddl_join" + set_suffix(members.set().id), waiting, seconds, missing, members.ranks());
  }

  void find_in_calls(const Members& members) {
    const SetActivity* latest = nullptr;
    for (const auto& [rank, set] : members.all) {
      const bool waits = set->call.is_inside && set->call.kind != kTransferCall;
      if (waits && (latest == nullptr || set->call.number > latest->call.number)) latest = set;
    }
    if (latest == nullptr) return;
    double seconds = 0;
    Ranks missing, waiting;
    for (const auto& [rank, set] : members.all) {
      const CallActivity& call = set->call;
      const bool has_come = call.number >= latest->call.number && call.kind != kTransferCall;
      if (!has_come) missing.push_back(rank);
      if (!has_come || !call.is_inside) continue;
      waiting.push_back(rank);
      seconds = std::max<double>(seconds, call.seconds);
    }
    if (seconds >= least_seconds_)
      add(call_text(latest->call, *latest), waiting, seconds, missing, members.ranks());
  }

  void find_in_transfers(const Members& members) {
    for (const auto& [rank, set] : members.all) {
      if (!set->call.is_inside || set->call.kind != kTransferCall || set->call.seconds < least_seconds_)
        continue;
      const auto peer = by_rank_.find(set->peer);
      if (peer == by_rank_.end()) continue;
      const std::string subject = call_text(set->call, *set);
      const std::string sentence = fmt::format("{}: {} has waited for {} for {}", subject, label(*rank),
                                               seconds_text(set->call.seconds), what_of({peer->second}));
      stalls_.push_back({subject + " " + std::to_string(rank->rank),
                         subject,
                         set->call.seconds,
                         sentence,
                         {rank->rank},
                         {peer->first}});
    }
  }

  /// A tensor that some members have handed over.
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

  /// Process sets agree on their tensors each by itself. So if a rank has handed over a tensor of the name to another
  /// set, only this can tell: "; rank 2 (node1, pid 7) has handed over a tensor "a" to process set 1".
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
        return "; " + label(*rank) + " has handed over a tensor \"" + tensor->name + "\" to " +
               (set->id == 0 ? "the process set of all ranks" : "process set " + std::to_string(set->id));
      }
    }
    return "";
  }

  void find_in_tensors(std::int64_t generation, const Members& members) {
    const auto tensors = tensors_of(generation, members);
    std::map<Ranks, std::vector<const Tensor*>> by_missing;
    for (const auto& [digest, tensor] : tensors) {
      if (tensor.seconds < least_seconds_) continue;
      Ranks missing;
      for (const auto& [rank, set] : members.all) {
        const bool is_complete = rank->open_tensors == static_cast<std::int64_t>(rank->tensors.size());
        if (!tensor.ranks.contains(rank->rank) && !set->has_joined && is_complete) missing.push_back(rank);
      }
      by_missing[missing].push_back(&tensor);
    }
    for (auto& [missing, waiting] : by_missing) {
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](const Tensor* a, const Tensor* b) { return a->order < b->order; });
      double seconds = 0;
      for (const Tensor* tensor : waiting) seconds = std::max(seconds, tensor->seconds);
      Ranks ranks;
      for (const int rank : waiting.front()->ranks) ranks.push_back(by_rank_.at(rank));
      add(names_of(waiting, members), ranks, seconds, missing, members.ranks());
      stalls_.back().sentence += elsewhere(waiting, missing);
    }
  }

  const std::vector<std::string>& hosts_;
  double least_seconds_;
  std::map<int, const RankActivity*> by_rank_;
  std::map<std::int64_t, Members> sets_;  ///< by generation
  std::vector<Stall> stalls_;
};

}  // namespace

std::vector<Stall> find_stalls(const std::vector<RankActivity>& ranks, const std::vector<std::string>& hosts,
                               double least_seconds) {
  return StallFinder(ranks, hosts, least_seconds).find();
}

}  // namespace ddl::launcher
