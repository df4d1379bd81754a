// The memory in which the ranks of a node show their agent what they do (contract/rank_record.h), from the view of the
// agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "contract/rank_record.h"

namespace ddl::launcher {

/// A record as it was at one moment, checked.
struct RankSnapshot {
  struct Set {
    std::uint32_t generation = 0, id = 0;
    std::uint64_t call = 0, named_call = 0;  ///< contract::CallWord
    int peer = -1;
    bool has_joined = false, waits = false;
  };
  struct Tensor {
    std::uint64_t state = 0;  ///< greater than that of all earlier tensors of the rank
    std::uint32_t generation = 0;
    std::uint64_t digest = 0;
    std::string name;  ///< its beginning
  };
  contract::RankRecord::Phase phase = contract::RankRecord::Phase::kNone;
  std::int64_t pid = 0;             ///< 0: unknown
  std::uint64_t pid_namespace = 0;  ///< of pid
  std::vector<Set> sets;
  std::vector<Tensor> tensors;
  std::uint64_t hidden_tensors = 0;
};

/// One record for each local rank, all in one memfd that the ranks inherit.
class RankRecords {
 public:
  /// Error: there is no memory for them; ranks run without records.
  static Result<RankRecords> create(std::size_t local_ranks);
  ~RankRecords();
  RankRecords(RankRecords&& other) noexcept;
  RankRecords& operator=(RankRecords&&) = delete;

  /// For the ranks to inherit as contract::kRankRecordFd.
  int fd() const { return fd_.get(); }
  /// The value of contract::env::kRankRecord.
  static std::string place_of(std::size_t local_rank);
  /// The rank whose end this rank has observed, as it wrote it: any number, to be checked. -1: none.
  int gone_rank(std::size_t local_rank) const;
  RankSnapshot read(std::size_t local_rank) const;

 private:
  RankRecords(UniqueFd fd, void* memory, std::size_t local_ranks);
  /// Null if the rank has destroyed it.
  const contract::RankRecord* record(std::size_t local_rank) const;

  UniqueFd fd_;
  void* memory_;  ///< mapped, to be read
  std::size_t local_ranks_;
};

}  // namespace ddl::launcher
