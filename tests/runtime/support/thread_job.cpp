#include "runtime/support/thread_job.h"

#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "contract/environment.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/wire/tcp_transport.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/in_process_transport.h"

namespace ddl::runtime::test {

void ThreadJob::run(const std::function<void(ddl_context*& context)>& body) const {
  Board board(ranks);
  const Hosts layout = hosts.empty() ? hosts_of_sizes({ranks}) : hosts;
  InProcessMemory memory(spin.count() > 0 ? ranks : 1);
  Settings settings;
  settings.timeout_seconds = timeout_seconds;
  settings.network_interfaces = {"lo"};
  settings.spin = spin;
  settings.staging_bytes = slot_bytes;
  settings.algorithms = algorithms;
  settings.exchange = exchange;
  settings.stores = stores;
  settings.batch_patience = batch_patience;
  settings.gpu_chunk_bytes = gpu_chunk_bytes;
  settings.agrees_first = agrees_first;
  const char* const operations = std::getenv(contract::env::kGpuOperations);
  settings.gpu_operations = gpu_operations.value_or(
      contract::parse_gpu_operations(operations == nullptr ? "auto" : operations).value());
  settings.fusion_bytes = fusion_bytes.value_or(settings.fusion_bytes);
  if (mpi) settings.cpu_operations = contract::CpuOperations::kMpi;
  ThreadMpi all_mpi(ranks, mpi.value_or(MpiThreads::kMultiple));

  std::mutex mutex;
  std::string failures;
  const auto run_rank = [&](int rank) {
    try {
      auto bootstrap = std::make_unique<BoardBootstrap>(board, rank, 1, layout);
      TransportMaker transports;
      transports.within_host = [&memory](const Membership&, FaultInjector&) {
        return std::make_unique<InProcessTransport>(memory);
      };
      transports.between_hosts = [this](const Membership&, FaultInjector& fault) {
        TcpSettings tcp_settings;
        tcp_settings.interfaces = {"lo"};
        tcp_settings.sockets = sockets_per_peer;
        return std::make_unique<TcpTransport>(tcp_settings, fault);
      };
      Settings own = settings;
      if (rank == 1) own.gpu_operations = gpu_operations_of_rank_1.value_or(own.gpu_operations);
      if (rank == 1 && gpu_chunk_bytes_of_rank_1) own.gpu_chunk_bytes = *gpu_chunk_bytes_of_rank_1;
      if (!records.empty()) own.rank_record = records.at(static_cast<std::size_t>(rank));
      auto joined =
          Context::join(own, std::move(bootstrap), std::move(transports), FaultInjector(std::nullopt, rank),
                        first_sequence, mpi ? all_mpi.join(rank) : nullptr);
      if (!joined) throw std::runtime_error(joined.error().message());
      auto* context = new ddl_context{*std::move(joined), false};
      try {
        body(context);
      } catch (...) {
        ddl_finalize(context);
        throw;
      }
      if (ddl_finalize(context) != DDL_OK) throw std::runtime_error(ddl_last_error());
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      failures += "rank " + std::to_string(rank) + ": " + error.what() + "\n";
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  if (const std::string wrong = all_mpi.error(); !wrong.empty()) failures += "MPI: " + wrong + "\n";
  if (!failures.empty()) throw std::runtime_error(failures);
}

ThreadJob job_on(const Hosts& hosts) {
  ThreadJob job;
  job.hosts = hosts;
  job.ranks = 0;
  for (const auto& ranks : hosts) job.ranks += static_cast<int>(ranks.size());
  return job;
}

}  // namespace ddl::runtime::test
