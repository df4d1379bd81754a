// The edge of libddl: nothing but a status leaves a C function.
#pragma once

#include <exception>
#include <new>

#include "runtime/src/api/last_error.h"

namespace ddl::runtime {

/// Runs body, which returns a status, and lets nothing out.
template <class Body>
ddl_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(DDL_ERROR_SYSTEM, "out of memory");
  } catch (const std::exception& error) {
    return report(DDL_ERROR_INTERNAL, error.what());
  } catch (...) {
    return report(DDL_ERROR_INTERNAL, "an unknown exception");
  }
}

}  // namespace ddl::runtime
