#include "runtime/src/api/handle.h"

namespace ddl::runtime {

tl::expected<std::shared_ptr<ProcessSet>, Failure> set_of(const ddl_context* context, std::uint64_t id) {
  if (context == nullptr) return failed(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (auto set = context->context->set(id)) return set;
  return failed(DDL_ERROR_INVALID_ARGUMENT,
                "process set " + std::to_string(id) + " does not exist, or this rank is not in it");
}

}  // namespace ddl::runtime
