// Memory that the harness shares with the ranks of a contender. It holds a barrier, which they pass before each call,
// and the seconds that each call took. It is the same for every contender, so that no library's own barrier affects
// the result.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "bench/machine.h"
#include "bench/workload.h"

namespace ddl::bench {

/// How a rank waits for the others at a barrier; all ranks of a barrier wait in the same way.
enum class Wait {
  kSpin,   ///< a CPU for each rank: all leave within a fraction of a microsecond
  kYield,  ///< more ranks than CPUs: they yield, and sleep after a millisecond
  kSleep,  ///< the library has threads of its own, from which a waiting rank must not take the CPU
};

/// The measured calls of one size, as all ranks have made them.
struct TimedCalls {
  std::vector<double> seconds;      ///< the longest of all ranks' times
  std::vector<Distance> distances;  ///< from rank 0, before and after each call
};

/// The mapping. All ranks have the same plan and run on one machine; hosts that are namespaces are one machine.
/// Layout: two cache lines per rank, for the barrier and for distances, then for each rank the seconds of all calls,
/// size after size; each rank's part starts on a cache line of its own. A call that was not made has 0 seconds. Then
/// the distances at the beginning of each call, and at the end of the last one of each size.
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
  /// For a library that goes on sending only inside calls, as MPI may: called about every millisecond while this rank
  /// waits at a barrier, where another one may wait for what this one has not sent yet.
  void on_long_wait(std::function<void()> progress) { progress_ = std::move(progress); }

  /// Measures how far apart the ranks are, each of which has a CPU of its own, and records it for the time before this
  /// call of the size with this index, counted with its warm-ups. Every rank calls it at the same time.
  void record_distance(int rank, std::size_t size_index, std::uint64_t call);
  Distance distance_before(std::size_t size_index, std::uint64_t call) const {
    return distances(size_index)[call];
  }

  /// Seconds of the rank's measured calls of the size with this index in the plan.
  double* seconds(int rank, std::size_t size_index) const;

  /// The calls of that size that every rank has made.
  TimedCalls timed_calls(std::size_t size_index) const;

 private:
  static Result<Scoreboard> create_in(UniqueFd fd, std::string path, int ranks,
                                      const std::vector<SizePlan>& plan);
  Scoreboard(UniqueFd fd, MappedMemory memory, std::string path, int ranks, std::vector<SizePlan> plan);
  struct RankLine;
  RankLine& rank_line(int rank) const;
  std::atomic<std::uint32_t>& ping(int rank) const;
  Distance measure_distance(int rank);
  /// At the beginning of the calls of that size, its warm-ups included, and one more.
  Distance* distances(std::size_t size_index) const;

  UniqueFd fd_;
  MappedMemory memory_;
  std::string path_;
  int ranks_ = 0;
  std::vector<SizePlan> plan_;
  std::function<void()> progress_;
};

}  // namespace ddl::bench
