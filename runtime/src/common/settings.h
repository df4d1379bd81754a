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
#include "contract/elastic.h"
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
  enum class Mode { kAuto, kFlat, kGroups };
  Mode mode = Mode::kAuto;
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

/// What the variables mean for a user is in the table of settings.cpp, beside their names, and in
/// docs/reference/environment.md, which has the same rows. Here is what else their readers need.
struct Settings {
  double timeout_seconds = 0.0;          ///< 0 = no deadline
  double start_timeout_seconds = 600.0;  ///< A rank may not be notified that another one failed before.
  Deadline start_deadline() const { return Deadline::after_seconds(start_timeout_seconds); }
  std::chrono::microseconds spin{200};
  /// The local leader's value holds for its host.
  std::optional<std::size_t> staging_bytes;
  /// So large that staged data have moved to a cache that the ranks share before they are overwritten: taking a line
  /// out of another core's private cache, and back, costs two to three times as much.
  static constexpr std::size_t kHostStagingBytes = std::size_t{512} << 10;
  static constexpr std::size_t kClusterStagingBytes = std::size_t{256} << 10;
  AlgorithmOverrides algorithms;
  /// The same on all ranks.
  contract::CpuOperations cpu_operations = contract::CpuOperations::kDdl;
  /// By its module's folder; empty = the one that fits the program and its launcher.
  std::string mpi;
  /// Where wheels put an MPI's libraries, in its folder "lib".
  std::string python_environment;
  bool finalizes_mpi = true;
  /// The local leader's value holds for its host.
  ExchangeConfig exchange;
  /// nullopt = as measured. The local leader's value holds for its host.
  std::optional<Stores> stores;
  std::uint64_t fusion_bytes = std::uint64_t{64} << 20;
  /// What one rank forces, all do.
  contract::GpuOperations gpu_operations = contract::GpuOperations::kAuto;
  bool agrees_first = false;
  /// NCCL is made to do it by its own variables.
  bool is_deterministic = false;
  std::size_t gpu_chunk_bytes = kUsualGpuChunkBytes;
  /// How long a named tensor may wait for the rest of its predicted batch before its rank asks to agree. A program that
  /// only computes, or sleeps until it is called back, says nothing by which the engine would notice that the rest does
  /// not come. Tests set it.
  std::chrono::milliseconds batch_patience{500};
  /// The same on all ranks. Empty: none is recorded.
  std::string timeline_file;
  /// Before the file is compressed. Rank 0's holds.
  std::uint64_t timeline_bytes = contract::kUsualTimelineBytes;
  std::string module_directory;
  bool allow_singleton = false;
  std::vector<std::string> network_interfaces;
  int sockets_per_peer = 1;
  std::optional<int> job_key_fd;
  std::optional<RankRecordLocation> rank_record;  ///< nullopt also if the value is not understood
  /// What this rank has put for the others may have been put before, by another process. Not known without a record.
  bool is_successor = false;
  bool verbose = false;
  bool report_start = false;
  /// The launcher takes the process into the job again.
  bool elastic = false;
  /// How: not from the environment.
  contract::JoinReason join_reason = contract::JoinReason::kFirst;
  std::uint64_t commits = 0;
  std::optional<FaultPlan> fault;
  /// In builds with DDL_FAULT_INJECTION: how wrong the clock of events is.
  ClockSkew clock_skew;

  /// A launcher claims to serve PMIx.
  bool pmix_promised = false;
  /// HOME is not set, and this process's user has no entry in passwd.
  bool has_no_home = false;
  /// A launcher claims to speak PMI-1.
  std::optional<PmiParameters> pmi;
  /// MPI_LOCALNRANKS is set, too: that launcher is hydra, which leaves PMIX_* of an outer launcher to its ranks.
  bool pmi_is_hydras = false;
  /// A variable that indicates that several processes were started, if there is one.
  std::optional<WorldHint> several_started;

  /// Reads all of the above. An invalid value is an error that names the variable.
  static Result<Settings> read(const Environment& environment);
  /// The rows of the variables in docs/reference/environment.md.
  static std::string table();
};

}  // namespace ddl::runtime
