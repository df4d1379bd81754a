#include "runtime/support/thread_job.h"

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/src/api/handle.h"
#include "runtime/support/board_bootstrap.h"
#include "runtime/support/in_process_transport.h"

namespace ddl::runtime::test {

void ThreadJob::run(const std::function<void(ddl_context*& context)>& body) const {
  Board board(ranks);
  SegmentWish wish;
  wish.slot_bytes = slot_bytes;
  wish.first_sequence = first_sequence;
  InProcessTransport transport(ranks, wish, spin.count() > 0 ? ranks : 1);
  Settings settings;
  settings.timeout_seconds = timeout_seconds;
  settings.spin = spin;

  std::mutex mutex;
  std::string failures;
  const auto run_rank = [&](int rank) {
    try {
      auto joined = Context::join(settings, std::make_unique<BoardBootstrap>(board, rank), transport,
                                  FaultInjector(std::nullopt, rank));
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
