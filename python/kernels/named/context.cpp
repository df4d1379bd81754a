#include "python/kernels/named/context.h"

#include <mutex>
#include <utility>

namespace ddl::kernels {
namespace {

// Frameworks give kernels no argument of ours, so what they share is here. It is never destroyed, because threads of the
// framework may run at the end of the process.
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

}  // namespace ddl::kernels

/// Python calls this after it has joined, and with null before it leaves; then no kernel is inside libddl any more.
/// Calls in flight go on.
extern "C" DDL_API void ddl_kernels_context(ddl_context* context) {
  ddl::kernels::Shared& shared = ddl::kernels::shared();
  const std::unique_lock lock(shared.mutex);
  shared.context = context;
}
