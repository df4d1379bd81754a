#include "python/kernels/jax/context.h"

#include <mutex>
#include <utility>

namespace ddl::jax {
namespace {

// XLA gives handlers no argument of ours, so what they share is here. It is never destroyed, because XLA's threads may
// run at the end of the process.
struct Shared {
  std::shared_mutex mutex;
  ddl_context* context = nullptr;
};
Shared& shared() {
  static Shared& kShared = *new Shared;
  return kShared;
}

}  // namespace

Joined joined() {
  std::shared_lock lock(shared().mutex);
  ddl_context* const context = shared().context;
  return {std::move(lock), context};
}

std::vector<std::uint64_t> scattered_counts(const Part& part, int ranks) {
  const std::uint64_t rows = part.shape.empty() ? 1 : part.shape.front();
  const std::uint64_t row = rows == 0 ? 0 : part.send_count / rows;
  std::vector<std::uint64_t> counts;
  for (std::uint64_t rank = 0, size = static_cast<std::uint64_t>(ranks); rank < size; ++rank)
    counts.push_back((rows / size + (rank < rows % size ? 1 : 0)) * row);
  return counts;
}

std::string problem_with(const Request& request, ddl_context* context) {
  const std::int32_t ranks = ddl_process_set_size(context, request.process_set);
  const std::int32_t rank = ddl_process_set_rank(context, request.process_set);
  if (rank < 0) return "this rank is not in the process set of the call \"" + request.name + "\"";
  if (request.parts.empty()) return "the call \"" + request.name + "\" has no array";
  const Part& part = request.parts.front();
  const bool fits =
      request.kind == Kind::kAlltoall
          ? part.send_count % static_cast<std::uint64_t>(ranks) == 0
          : request.kind != Kind::kReduceScatter ||
                scattered_counts(part, ranks)[static_cast<std::size_t>(rank)] == part.recv_count;
  if (fits) return "";
  return "the call \"" + request.name + "\" was traced for another number of ranks than the " +
         std::to_string(ranks) + " that there are now; trace it again";
}

}  // namespace ddl::jax

/// Python calls this after it has joined, and with null before it leaves; then no handler is inside libddl any more.
/// Calls in flight go on.
extern "C" DDL_API void ddl_jax_context(ddl_context* context) {
  ddl::jax::Shared& shared = ddl::jax::shared();
  const std::unique_lock lock(shared.mutex);
  shared.context = context;
}
