// The calling thread's last error, as ddl_last_error() returns it.
#pragma once

#include <string_view>

#include "runtime/src/failure.h"

namespace ddl::runtime {

/// Keeps the sentence for this thread, cut if it is very long, and returns the status. Allocates nothing.
ddl_status report(ddl_status status, std::string_view message) noexcept;
inline ddl_status report(const Failure& failure) noexcept { return report(failure.status, failure.message); }
inline ddl_status report(const Outcome& outcome) noexcept {
  return outcome ? DDL_OK : report(outcome.error());
}

/// This thread's last sentence; "" if there was none.
const char* last_error() noexcept;

}  // namespace ddl::runtime
