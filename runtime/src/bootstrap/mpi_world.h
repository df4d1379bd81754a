// The interfaces to the MPI of the site: the world of this process, its communicators and their operations. The
// on-demand modules libddl_mpi.so implement them; they are the only code that includes mpi.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/version.h"

namespace ddl::runtime {

// A step in which MPI moves bytes between all ranks.

struct MpiMove {
  enum class Kind : std::uint8_t { kBroadcast, kAllgather, kGather, kScatter, kAlltoall };

  /// A rank's blocks in one buffer, by rank: how long each is, and where it begins. Bytes.
  struct Blocks {
    std::vector<int> bytes;
    std::vector<int> offsets;
  };

  Kind kind = Kind::kBroadcast;
  int root = 0;
  /// All blocks are as long as the first and contiguous.
  bool is_even = false;
  /// This rank's own part is not moved: it is in its position of recv, or for a scatter's root of send
  /// (MPI_IN_PLACE).
  bool is_in_place = false;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  /// For an allgather or a gather: one block. For a scatter or an alltoall: one for each rank.
  Blocks sends;
  /// For a broadcast or a scatter: one block. For an allgather, a gather or an alltoall: one from each rank.
  Blocks receives;
};

// A communicator of the site's MPI, as libddl uses one: nothing blocks, so that a waiting rank can check for aborts
// and deadlines. Implemented by the on-demand module libddl_mpi.so, the only code that includes mpi.h.

/// One operation at a time; its buffers must stay valid until is_done() returns true. One thread at a time may call
/// the functions; different threads may use different communicators if allows_call().
class Communicator {
 public:
  Communicator() = default;
  /// Frees the communicator without waiting for the other ranks. Not while an operation is under way.
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Whether MPI may be called by this thread; kUnavailable with the reason if the program has initialised it
  /// otherwise.
  virtual Status allows_call() const = 0;

  virtual Status start(MpiMove move) = 0;
  /// The minimum of all ranks' numbers, element by element.
  virtual Status start_min(std::span<const std::uint64_t> own, std::span<std::uint64_t> minimum) = 0;
  /// Sends to a rank, and receives from it; either may be empty. At most INT_MAX bytes.
  virtual Status start_exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv) = 0;
  /// Progresses the operation; true when it has completed.
  virtual Result<bool> is_done() = 0;
  /// Progresses operations that have completed for this rank but not for others: some MPIs do so only while they are
  /// called.
  virtual Status progress() = 0;
};

// The MPI of this process, of which all ranks of the job are part. Implemented by the on-demand module libddl_mpi.so.

class MpiWorld {
 public:
  MpiWorld() = default;
  virtual ~MpiWorld() = default;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  /// This process's rank in the job, and the number of ranks.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// A communicator of these ranks of the job, in this order. Collective over them; generation distinguishes sets
  /// that are made at the same time. Blocks until all of them have called it.
  virtual Result<std::unique_ptr<Communicator>> communicator(const std::vector<int>& job_ranks,
                                                             std::uint32_t generation) = 0;
  /// Whether several threads may call MPI at once.
  virtual bool takes_threads() const = 0;
  /// "Open MPI v4.1.4".
  virtual const std::string& library() const = 0;
  /// MPI_Abort() of all ranks. From any thread, whatever thread level MPI has: the process is about to end.
  virtual void abort_job(int code) = 0;
  /// An operation was started that will not complete: libddl must not finalise MPI any more.
  virtual void abandon() = 0;
};

// The ABI between libddl and its on-demand modules libddl_mpi.so. There is one for the standard ABI of MPI 5, and one
// for each MPI that was found when libddl was built, in a folder of that MPI's name; only the modules link an MPI.

/// Both sides are C++ of one build: a module of another version or layout is refused by this number and the version.
inline constexpr std::uint32_t kMpiInterface = 4;
inline constexpr char kMpiModuleStart[] = "libddl_mpi";  ///< of the names of the files
inline constexpr char kMpiEnterFirstSymbol[] = "ddl_mpi_enter_first";
inline constexpr char kMpiFactorySymbol[] = "ddl_mpi_world_create";

/// This process's rank in a job, and the number of the job's ranks.
struct MpiIdentity {
  int rank = 0;
  int size = 1;
};

/// Before this process calls PMIx: initialises MPI, unless the program has, if it must be initialised before PMIx, and
/// stores success or the error in *result. Returns 1, or 0 as MpiFactory. Collective over the job.
using MpiEnterFirst = int (*)(std::uint32_t interface, const char* version, Status* result);

/// Initialises MPI unless the program has, and stores its world, or the error, in *result. identity: as the job's
/// bootstrap says, and MPI's size must equal its size; null: as MPI says. Returns 1; 0 without storing anything if
/// the module was built for another interface or version of libddl. Collective over the job.
using MpiFactory = int (*)(std::uint32_t interface, const char* version, const MpiIdentity* identity,
                           Result<std::unique_ptr<MpiWorld>>* result);

}  // namespace ddl::runtime
