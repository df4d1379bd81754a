// The site's MPI as libddl uses it: the world of this process, its communicators and the steps that they make. The
// on-demand modules libddl_mpi.so implement these interfaces; they are the only code that knows mpi.h.
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
  /// All blocks are as long as the first, and one after the other.
  bool is_even = false;
  /// This rank's own part stays where it is: in its place of recv, of a scatter's root in that of send.
  bool is_in_place = false;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  /// Of a broadcast or an allgather: one block. Of a gather likewise; of a scatter or an alltoall: one for each rank.
  Blocks sends;
  /// Of a broadcast or a scatter: one block. Of an allgather, a gather or an alltoall: one of each rank.
  Blocks receives;
};

// A communicator of the site's MPI, as libddl uses one: nothing blocks, so that whoever waits can look at what else
// happens. Implemented by the on-demand module libddl_mpi.so, the only code that knows mpi.h.

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
  virtual Status start_min(std::span<const std::uint64_t> own, std::span<std::uint64_t> minimum) = 0;
  /// Sends to a rank, and receives from it; either may be empty. At most INT_MAX bytes.
  virtual Status start_exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv) = 0;
  /// Moves what is under way; true when it has ended.
  virtual Result<bool> is_done() = 0;
  /// Moves what has ended for this rank, and not for others: some MPIs do so only while they are called.
  virtual Status progress() = 0;
};

// The MPI of this process, in which every rank of the job is. Implemented by the on-demand module libddl_mpi.so.

class MpiWorld {
 public:
  MpiWorld() = default;
  virtual ~MpiWorld() = default;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  /// This process's place in the job.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Of these ranks of the job, in their order. Collective over them; generation tells apart sets that are made at the same
  /// time. Blocks until all of them have come.
  virtual Result<std::unique_ptr<Communicator>> communicator(const std::vector<int>& job_ranks,
                                                             std::uint32_t generation) = 0;
  /// Whether several threads may call MPI at once.
  virtual bool takes_threads() const = 0;
  /// "Open MPI v4.1.4".
  virtual const std::string& library() const = 0;
  /// MPI_Abort() of all ranks. From any thread, whatever threads MPI takes: the process is about to end.
  virtual void abort_job(int code) = 0;
  /// Something is under way that will not end: MPI must not be finalised by us any more.
  virtual void abandon() = 0;
};

// What libddl and its on-demand modules libddl_mpi.so agree on. There is one for each MPI that was found when libddl was
// built, in a folder of that MPI's name; only they link an MPI.

/// Both sides are C++ of one build: a module of another version or layout is refused by this number and the version.
inline constexpr std::uint32_t kMpiInterface = 3;
inline constexpr char kMpiModuleFile[] = "libddl_mpi.so";
inline constexpr char kMpiFactorySymbol[] = "ddl_mpi_world_create";

/// A rank of a job.
struct MpiIdentity {
  int rank = 0;
  int size = 1;
};

/// Initialises MPI unless the program has, and stores its world, or the error, in *result. place: as the job's bootstrap
/// says, with which MPI's size must agree; null: as MPI has it. Returns 1; 0 without storing anything if the module was built
/// for another interface or version of libddl. Collective over the job.
using MpiFactory = int (*)(std::uint32_t interface, const char* version, const MpiIdentity* identity,
                           Result<std::unique_ptr<MpiWorld>>* result);

}  // namespace ddl::runtime
