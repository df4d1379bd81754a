// A communicator of the site's MPI, as libddl uses one: nothing blocks, so that whoever waits can look at what else
// happens. Implemented by the on-demand module libddl_mpi.so, the only code that knows mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "runtime/src/backend/mpi/mpi_move.h"

namespace ddl::runtime {

/// One operation at a time; what it is given stays as it is until is_done() says so. Functions may be called by one thread
/// at a time, different communicators by different threads if allows_call().
class Communicator {
 public:
  Communicator() = default;
  /// Gives the communicator back, without waiting for the others. Not while an operation is under way.
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Whether MPI may be called by this thread; kUnavailable with the reason if the program has initialised it otherwise.
  virtual Status allows_call() const = 0;

  virtual Status start(MpiMove move) = 0;
  /// The least of every rank's numbers, place by place.
  virtual Status start_least(std::span<const std::uint64_t> own, std::span<std::uint64_t> least) = 0;
  /// Sends to a rank, and receives from it; either may be empty. At most INT_MAX bytes.
  virtual Status start_exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv) = 0;
  /// Moves what is under way; true when it has ended.
  virtual Result<bool> is_done() = 0;
  /// Moves what has ended for this rank, and not for others: some MPIs do so only while they are called.
  virtual Status progress() = 0;
};

}  // namespace ddl::runtime
