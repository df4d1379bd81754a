#include "launcher/job/rank_work.h"

#include <algorithm>

#include <fmt/format.h>

namespace ddl::launcher {
namespace {

std::string call_text(const std::string& kind, std::int64_t number, std::int64_t peer, std::int64_t set) {
  if (kind == kTransferCall) return "a transfer with rank " + std::to_string(peer) + set_suffix(set);
  return kind + " #" + std::to_string(number) + set_suffix(set);
}

void take_call(CurrentWork& work, const SetActivity& set) {
  work.call = set.call.kind;
  work.number = set.call.number;
  work.set = set.id;
  if (set.call.kind == kTransferCall) work.peer = set.peer;
}

/// The set whose call the rank has left last; null if it has made none.
const SetActivity* last_called(const RankActivity& rank) {
  const SetActivity* last = nullptr;
  for (const SetActivity& set : rank.sets) {
    if (set.call.number > 0 && (last == nullptr || set.call.seconds < last->call.seconds)) last = &set;
  }
  return last;
}

}  // namespace

CurrentWork current_work(const RankActivity& rank) {
  using enum CurrentWork::Kind;
  CurrentWork work;
  work.seconds = rank.seconds;
  switch (rank.phase) {
    case RankActivity::Phase::kNone: return work;
    case RankActivity::Phase::kJoining: work.kind = kInit; return work;
    case RankActivity::Phase::kLeft: work.kind = kFinalized; return work;
    case RankActivity::Phase::kJoined: break;
  }
  for (const SetActivity& set : rank.sets) {
    if (!set.call.is_inside) continue;
    work.kind = kCall;
    work.seconds = set.call.seconds;
    take_call(work, set);
    return work;
  }
  for (const SetActivity& set : rank.sets) {
    if (set.has_joined) {
      work.kind = kJoin;
      work.set = set.id;
      return work;
    }
    const auto tensor =
        std::find_if(rank.tensors.begin(), rank.tensors.end(),
                     [&](const TensorActivity& one) { return one.generation == set.generation; });
    if (set.waits && tensor != rank.tensors.end()) {
      work.kind = kTensor;
      work.set = set.id;
      work.tensor = tensor->name;
      work.seconds = tensor->seconds;
      return work;
    }
  }
  work.kind = kUserCode;
  if (const SetActivity* const last = last_called(rank)) take_call(work, *last);
  return work;
}

std::string set_suffix(std::int64_t set) { return set == 0 ? "" : " of process set " + std::to_string(set); }

std::string call_text(const CallActivity& call, const SetActivity& set) {
  return call_text(call.kind, call.number, set.peer, set.id);
}

std::string work_text(const CurrentWork& work) {
  const auto call = [&] { return call_text(work.call, work.number, work.peer, work.set); };
  switch (work.kind) {
    case CurrentWork::Kind::kNone: return "";
    case CurrentWork::Kind::kInit: return "ddl_init";
    case CurrentWork::Kind::kCall: return call();
    case CurrentWork::Kind::kJoin: return "ddl_join" + set_suffix(work.set);
    case CurrentWork::Kind::kTensor: return "waits for tensor \"" + work.tensor + "\"" + set_suffix(work.set);
    case CurrentWork::Kind::kUserCode: return work.call.empty() ? "user code" : "user code after " + call();
    case CurrentWork::Kind::kFinalized: return "has called ddl_finalize";
  }
  return "";
}

std::string process_text(const ProcessActivity& process) {
  constexpr double kComputes = 0.5;
  if (process.cpu_share >= kComputes) return fmt::format("uses {:.0f} % of a CPU", 100 * process.cpu_share);
  if (process.state == "R") return "runs";
  const auto& [system_call, channel] = process.wait;
  if (system_call.empty() && channel.empty()) return "";
  return "waits in " + (system_call.empty() ? "the kernel" : "the system call " + system_call) +
         (channel.empty() ? "" : " (" + channel + ")");
}

}  // namespace ddl::launcher
