#include "runtime/src/collective/algorithm.h"

#include <sstream>

#include "base/core_distance.h"
#include "runtime/src/collective/canonical_tree.h"
#include "runtime/src/collective/cluster_call.h"
#include "runtime/src/collective/small_call.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/store_choice.h"

namespace ddl::runtime {
namespace {

enum class Where : std::uint8_t { kOneHost, kHosts };

/// The last rule that applies holds.
struct Rule {
  std::uint64_t min_bytes_per_part;
  int min_parts;
  int max_hosts;
  CallKind kind;
  Where where;
  Algorithm algorithm;
};

constexpr int kAnyHosts = 1 << 30;

constexpr Rule kRules[] = {
    {0, 1, 1, CallKind::kAllreduce, Where::kOneHost, Algorithm::kWhole},
    // Two ranks read the same number of bytes with both algorithms, and the whole one takes half the exchanges.
    {4 << 10, 3, 1, CallKind::kAllreduce, Where::kOneHost, Algorithm::kSlices},
    {0, 1, kAnyHosts, CallKind::kAllreduce, Where::kHosts, Algorithm::kTree},
    // By a model, not measured: halving takes 2 log2(P) steps after the comparison, on which a tree is piggybacked.
    // At 50 us per step and 1 Gbit/s, the two break even at 19 to 28 KiB for 17 to 32 hosts, at 10 Gbit/s at ten
    // times as much.
    {64 << 10, 1, kAnyHosts, CallKind::kAllreduce, Where::kHosts, Algorithm::kHalving},
    // The tree goes with the comparison, units take two steps after it.
    {64 << 10, 1, kMeshHosts, CallKind::kAllreduce, Where::kHosts, Algorithm::kUnits},
    // Two hosts send each other the same number of bytes with both algorithms, and the tree takes half the steps;
    // large values gain because both hosts combine.
    {0, 1, 2, CallKind::kAllreduce, Where::kHosts, Algorithm::kTree},
    {192 << 10, 1, 2, CallKind::kAllreduce, Where::kHosts, Algorithm::kUnits},
    {0, 1, 1, CallKind::kReduce, Where::kOneHost, Algorithm::kWhole},
    {4 << 10, 3, 1, CallKind::kReduce, Where::kOneHost, Algorithm::kSlices},
    {0, 1, kAnyHosts, CallKind::kReduce, Where::kHosts, Algorithm::kTree},
    {64 << 10, 1, kAnyHosts, CallKind::kReduce, Where::kHosts, Algorithm::kHalving},
    {64 << 10, 1, kMeshHosts, CallKind::kReduce, Where::kHosts, Algorithm::kUnits},
    {0, 1, 2, CallKind::kReduce, Where::kHosts, Algorithm::kTree},
    {192 << 10, 1, 2, CallKind::kReduce, Where::kHosts, Algorithm::kUnits},
};

bool is_for(Algorithm algorithm, int hosts) {
  return (algorithm == Algorithm::kWhole || algorithm == Algorithm::kSlices) == (hosts == 1);
}

}  // namespace

Algorithm choose(const Situation& situation) {
  Algorithm chosen = Algorithm::kAuto;
  const Where where = situation.hosts == 1 ? Where::kOneHost : Where::kHosts;
  for (const Rule& rule : kRules) {
    if (rule.kind == situation.kind && rule.where == where && situation.parts >= rule.min_parts &&
        situation.hosts <= rule.max_hosts &&
        situation.bytes >= rule.min_bytes_per_part * static_cast<std::uint64_t>(situation.parts)) {
      chosen = rule.algorithm;
    }
  }
  return chosen;
}

Algorithm algorithm_of(const Call& call, const Situation& situation) {
  const bool is_named = call.algorithm != Algorithm::kAuto && is_for(call.algorithm, situation.hosts);
  return is_named ? call.algorithm : choose(situation);
}

std::string explain_choices() {
  std::ostringstream text;
  for (const Rule& rule : kRules) {
    text << call_kind_name(rule.kind) << (rule.where == Where::kOneHost ? ", one host" : ", several hosts");
    if (rule.min_parts > 1) text << ", " << rule.min_parts << " ranks or more";
    if (rule.where == Where::kHosts && rule.max_hosts != kAnyHosts) text << ", up to " << rule.max_hosts;
    if (rule.min_bytes_per_part > 0) {
      text << ", from " << rule.min_bytes_per_part / 1024 << " KiB a "
           << (rule.where == Where::kOneHost ? "rank" : "lane");
    }
    text << ": " << algorithm_name(rule.algorithm) << "\n";
  }
  text
      << "allreduce, reduce_scatter, broadcast, allgather and alltoall, one host, up to "
      << SmallCall::kMostBytes
      << " bytes that a rank stages, the same as one of the last eight such calls, without options: only "
         "their "
         "buffers are checked\n"
      << "every call, one host, " << kGroupsFrom
      << " ranks or more with a CPU each: the ranks synchronize in groups\n"
      << "calls that only move data, several hosts, up to " << kMaxPiggybackBytes / 1024
      << " KiB in all, an alltoall for each host, and a reduce_scatter up to half of it: with the comparison "
         "of the calls\n"
      << "calls in which both of two ranks give and take data, one host: chunks of up to "
      << kMostSwapped / 1024
      << " KiB, staged where a rank has read the other's last; from 16 KiB on maybe in turns, whichever is "
         "faster\n"
      << "every call, one host, chunks from 1 KiB: staged with plain or with streaming stores, whichever are "
         "faster; first with streaming ones if a cache line takes "
      << kFarCores.count() << " ns or more to another rank and back\n";
  return text.str();
}

}  // namespace ddl::runtime
