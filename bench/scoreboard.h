// Memory that the harness shares with the ranks of a contender: where they meet before each call, and where they leave
// how long each call took. The same for every contender, so that no library's own barrier flatters or harms it.
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

/// How a rank waits for the others at a meeting; all ranks of a meeting wait alike.
enum class Wait {
  kSpin,   ///< a CPU for each rank: all leave within a fraction of a microsecond
  kYield,  ///< more ranks than CPUs: they take turns, and sleep after a millisecond
  kSleep,  ///< the library works in threads of its own: a rank that waits must not keep the CPU from them
};

/// The mapping. Ranks of one machine only, all with the same plan; hosts made of namespaces are one machine.
/// Layout: one cache line per rank for meetings, then for each rank the seconds of all calls, size after size; each
/// rank's part starts on a cache line of its own. A call that was not made has 0 seconds.
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

  /// Returns when every rank has arrived as often as this one.
  bool barrier(int rank, Wait wait, bool enough = false);

  /// Seconds of the rank's measured calls of the size with this index in the plan.
  double* seconds(int rank, std::size_t size_index) const;

  /// For every call of that size that was made: the longest of all ranks' times.
  std::vector<double> slowest_rank(std::size_t size_index) const;

 private:
  static Result<Scoreboard> create_in(UniqueFd fd, std::string path, int ranks,
                                      const std::vector<SizePlan>& plan);
  Scoreboard(UniqueFd fd, MappedMemory memory, std::string path, int ranks, std::vector<SizePlan> plan);
  struct Place;
  Place& place(int rank) const;

  UniqueFd fd_;
  MappedMemory memory_;
  std::string path_;
  int ranks_ = 0;
  std::vector<SizePlan> plan_;
};

}  // namespace ddl::bench
