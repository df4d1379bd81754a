// The C functions of ddl.h that return descriptions as text.
#include <string>
#include <string_view>

#include "contract/ddl_names.h"
#include "contract/version.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/backend/device_backend.h"
#include "runtime/src/collective/algorithm.h"
#include "runtime/src/common/call.h"

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

extern "C" {

const char* ddl_last_error(void) { return last_error(); }

const char* ddl_status_name(ddl_status status) {
  using ddl::contract::kStatusNames;
  static_assert(kStatusNames.size() == DDL_ERROR_INTERRUPTED + 1);
  static_assert(kStatusNames[DDL_ERROR_PEER_LOST] == std::string_view("peer lost"));
  const char* name = ddl::contract::name_or_null(kStatusNames, static_cast<std::size_t>(status));
  return name == nullptr ? "unknown status" : name;
}

uint64_t ddl_dtype_size(ddl_dtype dtype) { return element_size(current_dtype(dtype)); }

const char* ddl_algorithm_table(void) {
  static const std::string kTable = explain_choices() + explain_device_choices();
  return kTable.c_str();
}

const char* ddl_version(void) { return ddl::contract::kVersion; }

}  // extern "C"
