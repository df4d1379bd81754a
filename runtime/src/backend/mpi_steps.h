// Steps of MPI, one at a time, the waits for them, and moves of blocks, which consist of such steps.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/call_agreement.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

// Memory that MPI reads and writes during a call.

/// Must stay valid while an operation is under way, and for ever if the operation was given up.
struct MpiBuffers {
  std::array<std::uint64_t, 2> own_print{};
  std::array<std::uint64_t, 2> min_print{};
  CallStamp own_stamp;
  std::vector<CallStamp> stamps;
  // Of move_blocks(), which never gets them as the caller's.
  std::vector<std::byte> send;
  std::vector<std::byte> recv;
  // Of reductions.
  std::vector<std::byte> inputs;
  std::vector<std::byte> packed;
  std::vector<std::byte> result;
};

// Steps of MPI, one at a time, and the waits for them.
//
// Nothing blocks in MPI: a waiting rank checks the group's abort, ranks that have left, and its deadline. An operation
// that is given up goes on inside MPI, which may still write to its buffers. The job cannot be used after that, the
// operation's buffers are never freed, and MPI is not finalised.

/// The maximum of bytes in one step; the same on all ranks.
struct MpiLimits {
  /// If MPI gets the caller's buffers themselves: its offsets into them are ints.
  std::uint64_t step_bytes = std::uint64_t{512} << 20;
  /// If the data go through MpiBuffers.
  std::uint64_t chunk_bytes = std::uint64_t{16} << 20;

  /// wanted: the value of both, from DDL_STAGING_BYTES.
  static MpiLimits of(std::optional<std::size_t> wanted) {
    return wanted ? MpiLimits{*wanted, *wanted} : MpiLimits{};
  }
};

/// What a process set has of its MPI. MPI has no call that makes a communicator of some ranks without waiting for them,
/// so that of the named tensors, which may never be needed, is made beside the first one.
struct MpiSet {
  std::shared_ptr<MpiWorld> world;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Communicator>
      for_duplicate;  ///< null: this is that of a duplicate, or the duplicate has it
};

/// The ranks that a wait is for.
struct MpiAwaited {
  bool may_be_missing = false;  ///< the call may not have begun everywhere
  int peer = -1;                ///< only this rank of the set
};

/// The steps of the call that the channel has begun.
class MpiSteps {
 public:
  /// connections outlive this.
  MpiSteps(Connections& connections, const MpiLimits& limits, MpiSet mpi);
  ~MpiSteps();
  MpiSteps(const MpiSteps&) = delete;
  MpiSteps& operator=(const MpiSteps&) = delete;

  Channel& channel() { return connections_.channel(); }
  const Channel& channel() const { return connections_.channel(); }
  const HostLayout& layout() const { return connections_.layout(); }
  EventLog* events() { return connections_.events(); }
  std::uint32_t generation() const { return connections_.membership().generation; }
  const std::vector<int>& job_ranks() const { return connections_.job_ranks(); }
  const MpiLimits& limits() const { return limits_; }
  int rank() const { return connections_.membership().rank; }
  int size() const { return connections_.membership().size; }
  MpiBuffers& buffers() { return *buffers_; }
  /// This rank's call as the other ranks see it.
  CallStamp stamp_of(const Call& call) const { return {self().rank, 0, HostField::of(self().host), call}; }
  /// Whether this thread may make steps.
  Status allows_call() const { return mpi_.communicator->allows_call(); }
  /// Whether several threads may call MPI at once, whatever the program does.
  bool takes_threads() const { return mpi_.world->takes_threads(); }
  /// For the steps of the duplicate, which are beside these. Once.
  MpiSet take_for_duplicate() { return {mpi_.world, std::move(mpi_.for_duplicate), nullptr}; }

  /// Synchronizes the ranks of this host, which then see each other's calls.
  Outcome synchronize_host();
  Outcome move(MpiMove move) { return finish(communicator().start(std::move(move)), {}); }
  /// The comparison: ranks of other hosts may not have begun the call. Fills buffers().min_print.
  Outcome min_prints() {
    return finish(communicator().start_min(buffers_->own_print, buffers_->min_print), {true});
  }
  /// may_be_missing: the peer may not have begun the transfer.
  Outcome exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv,
                   bool may_be_missing) {
    return finish(communicator().start_exchange(peer, send, recv), {may_be_missing, peer});
  }

 private:
  using Clock = Deadline::Clock;

  /// Waits until the started operation has completed.
  Outcome finish(Status started, MpiAwaited awaited);
  /// The reason to end the wait early, if there is one.
  std::optional<Failure> reason_to_stop(const MpiAwaited& awaited);
  /// An awaited rank that has left the job, if this was noticed long enough ago for its last messages to have
  /// arrived.
  std::optional<Member> who_left(const MpiAwaited& awaited);
  Failure give_up(const MpiAwaited& awaited);
  Failure broken(const Error& error);
  Failure aborted();
  Communicator& communicator() { return *mpi_.communicator; }
  const AbortDomain& abort() const { return connections_.abort(); }
  const Member& self() const { return connections_.channel().self(); }

  Connections& connections_;
  MpiLimits limits_;
  MpiSet mpi_;
  std::unique_ptr<MpiBuffers> buffers_;
  std::optional<Clock::time_point> left_since_;
};

// Collectives that only move elements, by MPI's functions for them.

/// Moves the blocks: in one step between the callers' buffers, or, if that exceeds MpiLimits::step_bytes, in chunks
/// through MpiBuffers.
Outcome move_blocks(MpiSteps& steps, const MoveInBuffers& here);

}  // namespace ddl::runtime
