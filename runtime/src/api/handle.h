// What a ddl_context is.
#pragma once

#include <memory>

#include "ddl/ddl.h"
#include "runtime/src/context/context.h"

/// Owned by the program between ddl_init() and ddl_finalize(). Tests make theirs directly, several per process.
struct ddl_context {
  std::unique_ptr<ddl::runtime::Context> context;
  /// Made by ddl_init(), which allows one per process.
  bool is_the_process_context = false;
};

namespace ddl::runtime {

/// A process set that a caller names. An error if there is no context or no such set.
tl::expected<std::shared_ptr<ProcessSet>, Failure> set_of(const ddl_context* context, std::uint64_t id);

}  // namespace ddl::runtime
