// Steps of MPI, one after the other, the waits for them, and the moves of blocks that are made of such steps.
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

// Memory that MPI reads and writes on a call's way.

/// Stays as it is while an operation is under way, and for ever if that was given up.
struct MpiBuffers {
  std::array<std::uint64_t, 2> own_print{};
  std::array<std::uint64_t, 2> min_print{};
  CallStamp own_stamp;
  std::vector<CallStamp> stamps;
  std::vector<std::byte> send;
  std::vector<std::byte> recv;
  std::vector<std::byte> result;
};

// Steps of MPI, one after the other, and the waits for them.
//
// Nothing blocks in MPI: who waits looks at the group's abort, at who has left and at its deadline. An operation that is
// given up goes on inside MPI, which may still write to its buffers; the job is of no more use then, what is under way is
// kept for ever, and MPI is not finalised.

/// How much goes in one step; the same on all ranks.
struct MpiLimits {
  /// Of a rank's buffers, where MPI is given these themselves: an int says where in them something is.
  std::uint64_t step_bytes = std::uint64_t{512} << 20;
  /// Of a rank's buffer, where it goes through memory that is put aside.
  std::uint64_t piece_bytes = std::uint64_t{16} << 20;

  /// wanted: for both, as DDL_STAGING_BYTES says it.
  static MpiLimits of(std::optional<std::size_t> wanted) {
    return wanted ? MpiLimits{*wanted, *wanted} : MpiLimits{};
  }
};

/// Whom a wait is for.
struct MpiAwaited {
  bool may_be_missing = false;  ///< the call may not have begun everywhere
  int peer = -1;                ///< only this rank of the set
};

/// Of the call that the channel has begun.
class MpiSteps {
 public:
  /// connections outlive this.
  MpiSteps(Connections& connections, const MpiLimits& limits, std::shared_ptr<MpiWorld> world,
           std::unique_ptr<Communicator> communicator);
  ~MpiSteps();
  MpiSteps(const MpiSteps&) = delete;
  MpiSteps& operator=(const MpiSteps&) = delete;

  Channel& channel() { return connections_.channel(); }
  const HostLayout& layout() const { return connections_.layout(); }
  const std::vector<int>& job_ranks() const { return connections_.job_ranks(); }
  const MpiLimits& limits() const { return limits_; }
  int rank() const { return connections_.membership().rank; }
  int size() const { return connections_.membership().size; }
  MpiBuffers& buffers() { return *buffers_; }
  /// What this rank shows to others of a call.
  CallStamp stamp_of(const Call& call) const { return {self().rank, 0, HostField::of(self().host), call}; }
  /// Whether this thread may make steps.
  Status allows_call() const { return communicator_->allows_call(); }

  /// The ranks of this host come together, and see each other's calls.
  Outcome synchronize_host();
  Outcome move(MpiMove move) { return finish(communicator_->start(std::move(move)), {}); }
  /// The comparison: other hosts' ranks may not have come. Fills buffers().min_print.
  Outcome min_prints() {
    return finish(communicator_->start_min(buffers_->own_print, buffers_->min_print), {true});
  }
  /// may_be_missing: the peer may not have begun the transfer.
  Outcome exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv,
                   bool may_be_missing) {
    return finish(communicator_->start_exchange(peer, send, recv), {may_be_missing, peer});
  }

 private:
  using Clock = Deadline::Clock;

  /// Waits until what was started has ended.
  Outcome finish(Status started, MpiAwaited awaited);
  /// Why the wait is to end early, if it is.
  std::optional<Failure> reason_to_stop(const MpiAwaited& awaited);
  /// Who is awaited and has left the job, if that was seen some time ago: what it had sent is here by now.
  std::optional<Member> departed(const MpiAwaited& awaited);
  Failure give_up(const MpiAwaited& awaited);
  Failure broken(const Error& error);
  Failure aborted();
  const AbortDomain& abort() const { return connections_.abort(); }
  const Member& self() const { return connections_.channel().self(); }

  Connections& connections_;
  MpiLimits limits_;
  std::shared_ptr<MpiWorld> world_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<MpiBuffers> buffers_;
  std::optional<Clock::time_point> left_since_;
};

// Collectives that move elements and combine none, by MPI's functions for them.

/// Moves the blocks: in one step between the callers' buffers, or, where MPI's int would not do, in pieces through memory
/// that is put aside.
Outcome move_blocks(MpiSteps& steps, const MoveInBuffers& here);

}  // namespace ddl::runtime
