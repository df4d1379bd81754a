// Everything that libddl reads from the environment, in one struct that is read in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/environment.h"
#include "base/error.h"
#include "contract/operations.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/event_log.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/rank_record.h"

namespace ddl::runtime {

/// More bring no gain on either side; each is a descriptor on both sides.
inline constexpr int kMaxSocketsPerPeer = 8;

// How the ranks of one host synchronize, as the user chooses it.

struct ExchangeConfig {
  enum class Way { kAuto, kFlat, kGroups };
  Way way = Way::kAuto;
  /// For kGroups: this number of consecutive ranks is a group; 0 = the ranks that share a cache, a node or a package.
  int width = 0;

  /// "flat", "groups", or the width as a number from 2 to 1024.
  static std::optional<ExchangeConfig> parse(std::string_view text);
};

/// How a rank stores data that other ranks of its host read.
enum class Stores : std::uint8_t {
  kPlain,     ///< through the caches of its core
  kStreaming  ///< past them: fast where the lines lie in a cache that is far away (shm/store_choice.h)
};

// The guard against an accidental world of one: the number of started processes that the environment indicates.

/// A variable that says that this process is one of several, and what to do if no launcher answers nevertheless.
struct WorldHint {
  std::string variable;  ///< "SLURM_NTASKS"
  std::string value;     ///< "4"
  std::string remedy;    ///< "start the program with ddlrun or srun --mpi=pmix"

  /// "SLURM_NTASKS=4 says that this process is one of several: start ...".
  std::string sentence() const;
};

/// The first such variable; nullopt if the environment indicates one process or gives no number. Pure.
std::optional<WorldHint> hinted_world(const Environment& environment);

// The settings.

/// What a launcher that speaks PMI-1 passes to a process: the descriptor of the connection, and the process's rank.
struct PmiParameters {
  int fd = 0;
  int rank = 0;
  int size = 1;
};

struct Settings {
  /// DDL_TIMEOUT_SECONDS: deadline of a collective that names none; 0 = no deadline.
  double timeout_seconds = 0.0;
  /// DDL_START_TIMEOUT_SECONDS: until all ranks have called init; 0 = no deadline. A rank may not be notified that
  /// another one failed before.
  double start_timeout_seconds = 600.0;
  Deadline start_deadline() const { return Deadline::after_seconds(start_timeout_seconds); }
  /// DDL_SPIN_MICROSECONDS: how long a wait polls memory before it sleeps, if there is a CPU for every rank.
  std::chrono::microseconds spin{200};
  /// DDL_STAGING_BYTES: the chunk in which buffers travel. Multiple of 64; the local leader's value holds for its
  /// host, and must be the same on all hosts.
  std::optional<std::size_t> staging_bytes;
  /// So large that staged data have moved to a cache that the ranks share before they are overwritten: taking a line
  /// out of another core's private cache, and back, costs two to three times as much.
  static constexpr std::size_t kHostStagingBytes = std::size_t{512} << 10;
  static constexpr std::size_t kClusterStagingBytes = std::size_t{256} << 10;
  /// DDL_ALGORITHM: algorithms that are taken instead of the table's choice; the same on all ranks.
  AlgorithmOverrides algorithms;
  /// DDL_CPU_OPERATIONS: the backend of the collectives; the same on all ranks.
  contract::CpuOperations cpu_operations = contract::CpuOperations::kDdl;
  /// DDL_MPI: the MPI to take, by its module's folder; empty = the one that fits the program and its launcher.
  std::string mpi;
  /// DDL_MPI_FINALIZE=0: an MPI that libddl has initialised is not finalised.
  bool finalizes_mpi = true;
  /// DDL_EXCHANGE: how the ranks of a host synchronize. The local leader's value holds for its host.
  ExchangeConfig exchange;
  /// DDL_STORES: how ranks store what they stage for others of their host; nullopt = as measured. The local leader's
  /// value holds for its host.
  std::optional<Stores> stores;
  /// DDL_FUSION_BYTES, or HOROVOD_FUSION_THRESHOLD: named tensors go together up to this number of bytes. The value of
  /// the process set's first rank holds.
  std::uint64_t fusion_bytes = std::uint64_t{64} << 20;
  /// DDL_GPU_OPERATIONS, or HOROVOD_GPU_OPERATIONS: who carries out collectives on memory of GPUs. What one rank forces,
  /// all do.
  contract::GpuOperations gpu_operations = contract::GpuOperations::kAuto;
  /// DDL_CHECK=1: ranks compare their calls before data move between GPUs, not beside it. The same on all ranks.
  bool agrees_first = false;
  /// DDL_DETERMINISTIC=1: the user wants the same bits in every run, also by NCCL, which its own variables make it do.
  bool is_deterministic = false;
  /// DDL_GPU_PIECE_BYTES: pieces in which memory of a GPU goes by way of the host. A power of two; the same on all ranks.
  std::size_t gpu_piece_bytes = kUsualGpuPieceBytes;
  /// How long a named tensor may wait for the rest of its predicted batch before its rank asks to agree. A program that
  /// only computes, or sleeps until it is called back, says nothing by which the engine would notice that the rest does
  /// not come. Tests set it.
  std::chrono::milliseconds batch_patience{500};
  /// DDL_TIMELINE, or HOROVOD_TIMELINE: where rank 0 writes a timeline, if no agent of ddlrun does; the same on all
  /// ranks. Empty: none is recorded.
  std::string timeline_file;
  /// DDL_TIMELINE_MAX_MB: the size of that file before it is compressed. Rank 0's holds.
  std::uint64_t timeline_bytes = contract::kUsualTimelineBytes;
  /// DDL_MODULE_DIR: where on-demand modules lie; empty = the folder "ddl" beside libddl.so.
  std::string module_directory;
  /// DDL_ALLOW_SINGLETON=1: a world of one is intended, although the environment indicates several processes.
  bool allow_singleton = false;
  /// DDL_NETWORK_INTERFACES: the interfaces by which ranks of other hosts may reach this one; empty = all but
  /// loopback.
  std::vector<std::string> network_interfaces;
  /// DDL_SOCKETS_PER_PEER: data connections between two ranks of different hosts; the same on all ranks.
  int sockets_per_peer = 1;
  /// DDL_JOB_KEY_FD: inherited descriptor of the job's key.
  std::optional<int> job_key_fd;
  /// DDL_RANK_RECORD: where this rank shows its launcher what it does; nullopt if the value is not understood.
  std::optional<RankRecordLocation> rank_record;
  /// DDL_VERBOSE=1: report how the ranks are connected.
  bool verbose = false;
  /// DDL_REPORT_START=1: the launcher wants to know when the first collective has ended.
  bool report_start = false;
  /// DDL_FAULT: where to die, in builds with DDL_FAULT_INJECTION.
  std::optional<FaultPlan> fault;
  /// DDL_CLOCK_SKEW, in such builds: how wrong the clock of events is.
  ClockSkew clock_skew;

  /// PMIX_NAMESPACE and PMIX_RANK are set: a launcher claims to serve PMIx.
  bool pmix_promised = false;
  /// HOME is not set, and this process's user has no entry in passwd.
  bool has_no_home = false;
  /// PMI_FD, PMI_RANK and PMI_SIZE: a launcher claims to speak PMI-1.
  std::optional<PmiParameters> pmi;
  /// MPI_LOCALNRANKS is set, too: that launcher is hydra, which leaves PMIX_* of an outer launcher to its ranks.
  bool pmi_is_hydras = false;
  /// A variable that indicates that several processes were started, if there is one.
  std::optional<WorldHint> several_started;

  /// Reads all of the above. An invalid value is an error that names the variable.
  static Result<Settings> read(const Environment& environment);
};

}  // namespace ddl::runtime
