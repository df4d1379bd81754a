// The table of all calls with all algorithms, for tests in which ranks die or stop during them.
//
// A new collective needs a row (fault_rows()), which a test checks; a new algorithm is included automatically.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/collective/algorithm.h"
#include "runtime/src/common/call.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/passed_points.h"

namespace ddl::runtime::test {

/// The arguments and buffers of one rank of a process set.
class FaultArguments {
 public:
  /// in_heap: the buffers lie in the shared heap, which is given back by ddl_finalize(). passed outlives the context.
  FaultArguments(ddl_context* context, std::uint64_t set, std::uint64_t count, bool in_heap,
                 PassedPoints& passed);

  ddl_context* context;
  std::uint64_t set;
  int rank, size;  ///< in the set
  std::uint64_t count;
  std::vector<std::uint64_t> counts;  ///< count for every rank
  std::vector<std::uint64_t> received_counts;
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  float* send = nullptr;  ///< count elements for every rank, as value() says
  float* recv = nullptr;  ///< the same number
  int made_size = 0;      ///< of the process set that was made last; it has been freed
  PassedPoints& passed;   ///< by this rank
  int named = 0;          ///< how often named tensors have been submitted
  /// Tensors are submitted when those before them are complete. Otherwise ranks may sleep because all of them have
  /// told what they have, and wait for what a rank that is stopped has not told: no timeout ends that.
  bool one_by_one = false;

  /// Not the first, so that the root's part differs from the others'.
  int root() const { return 1 % size; }
  /// A small integer, so that every sum is exact.
  static float value(int rank, std::uint64_t i) {
    return static_cast<float>(rank * 8 + static_cast<int>(i % 7));
  }
  /// The sum over ranks 0 to ranks - 1.
  static float sum(int ranks, std::uint64_t i) {
    float total = 0;
    for (int rank = 0; rank < ranks; ++rank) total += value(rank, i);
    return total;
  }
  /// Whether recv, from first on, is expected(i) for i from 0 on.
  bool received(std::uint64_t first, std::uint64_t length,
                const std::function<float(std::uint64_t)>& expected) const;
  /// Whether recv holds a part from every rank, the part of rank being expected(rank, i).
  bool received_from_all(const std::function<float(int, std::uint64_t)>& expected) const;

 private:
  std::vector<float> private_send_, private_recv_;
};

/// One collective.
struct FaultRow {
  std::string name;
  CallKind kind = CallKind::kNone;  ///< kNone: joining the job
  bool can_be_direct = false;       ///< on the shared heap
  std::function<ddl_status(FaultArguments&)> call;
  std::function<bool(const FaultArguments&)> is_right;  ///< after it has succeeded
};

const std::vector<FaultRow>& fault_rows();
/// The row of named tensors of all kinds but allreduces.
inline constexpr char kOtherNamedTensors[] = "named tensors of other kinds";
/// The row of an allreduce in several steps, which has no algorithms of its own.
inline constexpr char kAdasum[] = "allreduce by adasum";
/// The row of small calls that repeat the one before them.
inline constexpr char kRepeated[] = "allreduces that repeat a small one";
/// The rows of named tensors.
std::vector<FaultRow> named_fault_rows();

/// One collective with one algorithm, on one set of hosts.
struct FaultScene {
  const FaultRow* row = nullptr;
  Algorithm algorithm = Algorithm::kAuto;  ///< kAuto: there is only one algorithm
  Hosts hosts;                             ///< empty: one
  int ranks = 3;
  bool in_set = false;    ///< of a process set of all ranks, in another order
  bool in_heap = false;   ///< direct
  bool is_first = false;  ///< no earlier call has made the connections that the call under test needs

  bool joins() const { return row->kind == CallKind::kNone; }
  bool submits() const { return row->kind == CallKind::kAgree; }
  /// "allreduce by slices on one host, in a process set".
  std::string name() const;
};

/// All of them.
std::vector<FaultScene> fault_scenes();

}  // namespace ddl::runtime::test
