// Memory that the harness shares with the ranks of a contender. It holds a barrier, which they pass before each call,
// and the seconds that each call took. It is the same for every contender, so that no library's own barrier affects
// the result.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "bench/workload.h"

namespace ddl::bench {

/// How a rank waits for the others at a barrier; all ranks of a barrier wait in the same way.
enum class Wait {
  kSpin,   ///< a CPU for each rank: all leave within a fraction of a microsecond
  kYield,  ///< more ranks than CPUs: they yield, and sleep after a millisecond
  kSleep,  ///< the library has threads of its own, from which a waiting rank must not take the CPU
};

/// The mapping. All ranks have the same plan and run on one machine; hosts that are namespaces are one machine.
/// Layout: one cache line per rank for the barrier, then for each rank the seconds of all calls, size after size;
/// each rank's part starts on a cache line of its own. A call that was not made has 0 seconds.
class Scoreboard {
 public:
  /// A new one in anonymous memory. Its path() is valid for other processes of this user while this object lives.
  static Result<Scoreboard> create(int ranks, const std::vector<SizePlan>& plan);
  /// A new one in a file, for ranks that see this process's files, but not its /proc. The caller removes the file.
  static Result<Scoreboard> create_file(const std::string& path, int ranks,
                                        const std::vector<SizePlan>& plan);
  /// One that another process created.
  static Result<Scoreboard> open(const std::string& path, int ranks, const std::vector<SizePlan>& plan);

  const std::string& path() const { return path_; }

  /// Returns when every rank has called it as often as this one. The result is the enough of rank 0, on all ranks.
  bool barrier(int rank, Wait wait, bool enough = false);

  /// Seconds of the rank's measured calls of the size with this index in the plan.
  double* seconds(int rank, std::size_t size_index) const;

  /// For every call of that size that was made: the longest of all ranks' times.
  std::vector<double> slowest_rank(std::size_t size_index) const;

 private:
  static Result<Scoreboard> create_in(UniqueFd fd, std::string path, int ranks,
                                      const std::vector<SizePlan>& plan);
  Scoreboard(UniqueFd fd, MappedMemory memory, std::string path, int ranks, std::vector<SizePlan> plan);
  struct RankLine;
  RankLine& rank_line(int rank) const;

  UniqueFd fd_;
  MappedMemory memory_;
  std::string path_;
  int ranks_ = 0;
  std::vector<SizePlan> plan_;
};

}  // namespace ddl::bench
