// The C functions of ddl.h that return descriptions as text.
#include <string>

#include "contract/version.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/collective/algorithm.h"
#include "runtime/src/common/call.h"

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

extern "C" {

const char* ddl_last_error(void) { return last_error(); }

const char* ddl_status_name(ddl_status status) {
  switch (status) {
    case DDL_OK: return "ok";
    case DDL_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case DDL_ERROR_MISMATCH: return "mismatch";
    case DDL_ERROR_BUSY: return "busy";
    case DDL_ERROR_TIMEOUT: return "timeout";
    case DDL_ERROR_PEER_LOST: return "peer lost";
    case DDL_ERROR_ABORTED: return "aborted";
    case DDL_ERROR_BOOTSTRAP: return "bootstrap";
    case DDL_ERROR_UNSUPPORTED: return "unsupported";
    case DDL_ERROR_SYSTEM: return "system";
    case DDL_ERROR_INTERNAL: return "internal";
    default: return "unknown status";
  }
}

uint64_t ddl_dtype_size(ddl_dtype dtype) { return element_size(current_dtype(dtype)); }

const char* ddl_algorithm_table(void) {
  static const std::string kTable = explain_choices();
  return kTable.c_str();
}

const char* ddl_version(void) { return ddl::contract::kVersion; }

}  // extern "C"
