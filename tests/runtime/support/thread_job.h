// A job whose ranks are threads of the test.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/src/collective/algorithm.h"
#include "runtime/src/common/settings.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/thread_mpi.h"

namespace ddl::runtime::test {

struct ThreadJob {
  int ranks = 1;
  /// The ranks of each host, which speak to each other by TCP over loopback; empty: all on one.
  Hosts hosts;
  /// Of one rank and exchange: on several hosts, of its input and of its result.
  std::size_t slot_bytes = 32 << 10;
  std::uint32_t first_sequence = 0;
  AlgorithmOverrides algorithms;
  /// Data connections between two ranks of different hosts.
  int sockets_per_peer = 1;
  ExchangeConfig exchange;
  std::optional<Stores> stores;
  /// Named tensors go together up to this number of bytes, and larger ones are cut.
  std::optional<std::uint64_t> fusion_bytes;
  /// Who executes collectives on memory of GPUs; nullopt: as DDL_GPU_OPERATIONS says.
  std::optional<contract::GpuOperations> gpu_operations;
  std::optional<contract::GpuOperations> gpu_operations_of_rank_1;
  bool agrees_first = false;  ///< ranks compare their calls before data move between GPUs
  /// Chunks in which memory of a GPU goes through CPU memory.
  std::size_t gpu_chunk_bytes = kUsualGpuChunkBytes;
  std::optional<std::size_t> gpu_chunk_bytes_of_rank_1;  ///< a mistake of the user's
  /// How long a named tensor may wait for the rest of its predicted batch.
  std::chrono::milliseconds batch_patience{500};
  /// 0: a wait sleeps at once after its yields, as with more ranks than CPUs.
  std::chrono::microseconds spin{0};
  /// Ends a call that would hang, so that the test fails instead.
  double timeout_seconds = 60.0;
  /// Where each rank is to show what it does, as under ddlrun; empty: nowhere.
  std::vector<RankRecordLocation> records;
  /// MPI, whose ranks are these threads, executes the collectives.
  std::optional<MpiThreads> mpi;

  /// Runs body(context) on one thread per rank and finalizes each context (unless body did and set it to null).
  /// Throws the first exception of any rank, with its rank, or what MPI found wrong.
  void run(const std::function<void(ddl_context*& context)>& body) const;
};

/// A job of the hosts' ranks.
ThreadJob job_on(const Hosts& hosts);

}  // namespace ddl::runtime::test
