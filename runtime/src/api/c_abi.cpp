#include "runtime/src/api/c_abi.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ddl::runtime {
namespace {

// A plain array: it has no destructor that could run before the thread's last call, and storing cannot fail.
thread_local std::array<char, 4096> sentence{};

}  // namespace

ddl_status report(ddl_status status, std::string_view message) noexcept {
  const std::size_t length = std::min(message.size(), sentence.size() - 1);
  std::memcpy(sentence.data(), message.data(), length);
  sentence[length] = '\0';
  return status;
}

const char* last_error() noexcept { return sentence.data(); }

Failure no_set(std::uint64_t id) {
  return {DDL_ERROR_INVALID_ARGUMENT,
          "process set " + std::to_string(id) + " does not exist, or this rank is not in it"};
}

tl::expected<ddl_dtype, Failure> known_dtype(ddl_dtype given, ddl_op op) {
  const ddl_dtype dtype = current_dtype(given);
  if (is_reserved_dtype(dtype)) {
    return failed(DDL_ERROR_UNSUPPORTED, "dtype " + std::to_string(dtype) +
                                             " is reserved for an 8-bit float that libddl " + ddl_version() +
                                             " does not offer");
  }
  if (element_size(dtype) == 0)
    return failed(DDL_ERROR_INVALID_ARGUMENT, "dtype " + std::to_string(given) + " does not exist");
  if (op_name_or_null(op) == nullptr)
    return failed(DDL_ERROR_INVALID_ARGUMENT, "op " + std::to_string(op) + " does not exist");
  return dtype;
}

tl::expected<std::shared_ptr<ProcessSet>, Failure> set_of(const ddl_context* context, std::uint64_t id) {
  if (context == nullptr) return failed(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (auto set = context->context->set(id)) return set;
  return tl::unexpected(no_set(id));
}

}  // namespace ddl::runtime
