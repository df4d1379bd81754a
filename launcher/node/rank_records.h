// The memory in which the ranks of a node show their agent what they do (contract/rank_record.h), from the view of the
// agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "contract/elastic.h"
#include "contract/rank_record.h"
#include "launcher/job/job_report.h"
#include "launcher/protocol/messages.h"
#include "timeline/event_ring.h"

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
  std::int64_t phase_since = 0;     ///< in nanoseconds of CLOCK_MONOTONIC; 0: unknown
  std::uint32_t inits = 0;          ///< how often ddl_init has begun
  std::int64_t pid = 0;             ///< 0: unknown
  std::uint64_t pid_namespace = 0;  ///< of pid
  std::vector<Set> sets;
  std::vector<Tensor> tensors;
  std::uint64_t hidden_tensors = 0;
};

/// One record for each local rank, all in one memfd that the ranks inherit.
class RankRecords {
 public:
  /// Behind each record there is a ring with room for this number of events, a power of two, or for fewer if a limit of
  /// this process leaves no room; kept of them are kept, with exact times if is_exact. Error: there is no memory for
  /// them; ranks run without records.
  static Result<RankRecords> create(std::size_t local_ranks, std::uint32_t events, std::uint32_t kept,
                                    bool is_exact);
  ~RankRecords();
  RankRecords(RankRecords&& other) noexcept;
  RankRecords& operator=(RankRecords&&) = delete;

  /// For the ranks to inherit as contract::kRankRecordFd.
  int fd() const { return fd_.get(); }
  /// The value of contract::env::kRankRecord.
  std::string place_of(std::size_t local_rank) const;
  /// For the ranks to inherit as contract::kDoorbellFd.
  int doorbell() const { return doorbell_.get(); }
  /// Tells the ranks. False if none of them has joined by libddl, and so none can be reading it.
  bool tell(const message::HostLost& lost);
  /// Undoes tell(), and forgets gone_rank(). Only while none of the ranks is in a job.
  void forget_lost();
  /// RankRecord::pending_change, for all ranks.
  void show_change(contract::JobChange change);
  /// The rank whose end this rank has observed, as it wrote it: any number, to be checked. -1: none.
  int gone_rank(std::size_t local_rank) const;
  RankSnapshot read(std::size_t local_rank) const;
  /// What it has done by libddl so far.
  RankCalls calls(std::size_t local_rank) const;
  /// The latest events of its ring, at most this number; empty if the rank has destroyed it.
  timeline::RingSnapshot events(std::size_t local_rank, std::size_t latest) const;
  /// All ranks record exact times from now on, and this number of latest events as far as there is room; or no longer.
  void record_timeline(std::uint32_t events);
  void stop_timeline();

 private:
  RankRecords(UniqueFd fd, UniqueFd doorbell, void* memory, std::size_t local_ranks, std::size_t bytes_each);
  std::span<std::byte> part(std::size_t local_rank) const;
  std::span<std::byte> ring_part(std::size_t local_rank) const;
  /// Null if the rank has destroyed it.
  contract::RankRecord* record(std::size_t local_rank) const;

  UniqueFd fd_;
  UniqueFd doorbell_;
  void* memory_;  ///< mapped
  std::size_t local_ranks_;
  std::size_t bytes_each_;  ///< of a record and its ring
};

}  // namespace ddl::launcher
