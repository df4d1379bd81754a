#include "runtime/src/api/c_abi.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

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

ddl_status report_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return report(DDL_ERROR_SYSTEM, "out of memory");
  } catch (const std::exception& error) {
    return report(DDL_ERROR_INTERNAL, error.what());
  } catch (...) {
    return report(DDL_ERROR_INTERNAL, "an unknown exception");
  }
}

const char* last_error() noexcept { return sentence.data(); }

Failure no_set(std::uint64_t id) {
  return {DDL_ERROR_INVALID_ARGUMENT,
          "process set " + std::to_string(id) + " does not exist, or this rank is not in it"};
}

Outcome complete_call(Request& request, double prescale, double postscale) {
  Call& call = request.call;
  const ddl_dtype dtype = current_dtype(call.dtype);
  if (is_reserved_dtype(dtype)) {
    return fail(DDL_ERROR_UNSUPPORTED, "dtype " + std::to_string(dtype) +
                                           " is reserved for an 8-bit float that libddl " + ddl_version() +
                                           " does not offer");
  }
  if (element_size(dtype) == 0)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "dtype " + std::to_string(call.dtype) + " does not exist");
  if (op_name_or_null(call.op) == nullptr)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "op " + std::to_string(call.op) + " does not exist");
  call.dtype = dtype;
  request.element_size = element_size(dtype);
  if (has_op(call.kind)) {
    call.prescale = prescale;
    call.postscale = postscale;
  }
  return {};
}

tl::expected<std::shared_ptr<ProcessSet>, Failure> set_of(const ddl_context* context, std::uint64_t id) {
  if (context == nullptr) return fail(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (auto set = context->context->set(id)) return set;
  return fail(no_set(id));
}

}  // namespace ddl::runtime
