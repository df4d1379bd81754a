#include "runtime/support/conformance/trial.h"

#include <numeric>
#include <sstream>

namespace ddl::conformance {

const char* name_of(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce: return "allreduce";
    case Collective::kReduce: return "reduce";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kScan: return "scan";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kAllgather: return "allgather";
    case Collective::kAllgatherv: return "allgatherv";
    case Collective::kGather: return "gather";
    case Collective::kScatter: return "scatter";
    case Collective::kAlltoall: return "alltoall";
    case Collective::kAlltoallv: return "alltoallv";
  }
  return "?";
}

std::string describe(const Communicator& comm, const Trial& trial) {
  std::ostringstream text;
  text << name_of(trial.collective) << " of ";
  if (has_counts(trial.collective)) {
    for (std::size_t i = 0; i < trial.counts.size(); ++i) text << (i == 0 ? "" : ",") << trial.counts[i];
  } else {
    text << trial.count;
  }
  text << " elements of type " << trial.dtype;
  if (has_op(trial.collective)) text << ", op " << trial.op;
  if (trial.scales.before != 1.0) text << ", prescale " << trial.scales.before;
  if (trial.scales.after != 1.0) text << ", postscale " << trial.scales.after;
  if (has_root(trial.collective)) text << ", root " << trial.root;
  if (trial.shift != 0) text << ", shifted by " << trial.shift;
  if (trial.in_heap) text << ", in the heap";
  text << ", on " << comm.size << " ranks";
  if (comm.set != DDL_WORLD) {
    text << " (of the job:";
    for (const std::int32_t rank : comm.ranks) text << ' ' << rank;
    text << ')';
  }
  text << ", rank " << comm.rank;
  return text.str();
}

void check(const Communicator& comm, const Trial& trial) {
  const auto check_once = [&](const Trial& one) {
    has_op(one.collective) ? check_reduction(comm, one) : check_movement(comm, one);
  };
  check_once(trial);
  // A small call that repeats the one before it takes a shorter way.
  constexpr std::uint64_t kSmall = 300;
  const std::uint64_t elements = std::accumulate(trial.counts.begin(), trial.counts.end(), trial.count);
  if (elements == 0 || elements > kSmall) return;
  Trial again = trial;
  again.seed += 1;
  check_once(again);
}

}  // namespace ddl::conformance
