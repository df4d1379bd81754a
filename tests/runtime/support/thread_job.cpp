#include "runtime/support/thread_job.h"

#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/src/api/handle.h"
#include "runtime/src/cluster/slot_areas.h"
#include "runtime/src/transport/tcp/tcp_transport.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/in_process_transport.h"

namespace ddl::runtime::test {

void ThreadJob::run(const std::function<void(ddl_context*& context)>& body) const {
  Board board(ranks);
  const Hosts layout = hosts.empty() ? hosts_of_sizes({ranks}) : hosts;
  SegmentWish wish;
  wish.slot_bytes = layout.size() == 1 ? slot_bytes : SlotAreas::of(slot_bytes, ranks).slot_bytes();
  wish.first_sequence = first_sequence;
  std::deque<InProcessTransport> hosts_memory;
  for (const auto& members : layout) hosts_memory.emplace_back(members, wish, spin.count() > 0 ? ranks : 1);
  Settings settings;
  settings.timeout_seconds = timeout_seconds;
  settings.spin = spin;

  std::mutex mutex;
  std::string failures;
  const auto run_rank = [&](int rank) {
    try {
      auto bootstrap = std::make_unique<BoardBootstrap>(board, rank, 1, layout);
      FaultInjector fault(std::nullopt, rank);
      TcpSettings tcp_settings;
      tcp_settings.interfaces = {"lo"};
      TcpTransport tcp(tcp_settings, fault);
      const auto host = static_cast<std::size_t>(bootstrap->membership().layout.own);
      auto joined = Context::join(settings, std::move(bootstrap), {hosts_memory[host], tcp}, fault);
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
  if (!failures.empty()) throw std::runtime_error(failures);
}

}  // namespace ddl::runtime::test
