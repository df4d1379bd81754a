// Buffers that all ranks of a host see.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "bench/entrants/rank_job.h"

namespace ddl::bench {

/// Memory for measure() whose counterparts on the other ranks are mapped here too. Nothing of it is left when the ranks
/// have ended.
class SharedMemory {
 public:
  /// job: outlives this.
  explicit SharedMemory(RankJob& job) : job_(job) {}

  /// On all ranks in the same order: the ranks meet.
  Result<float*> allocate(std::size_t bytes);

  /// Where another rank's element lies that corresponds to own, an element of this rank's memory.
  float* of_rank(int rank, const float* own) const;

 private:
  struct Region {
    UniqueFd fd;
    std::vector<MappedMemory> by_rank;
  };
  RankJob& job_;
  std::vector<Region> regions_;
};

}  // namespace ddl::bench
