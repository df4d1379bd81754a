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

tl::expected<std::shared_ptr<ProcessSet>, Failure> set_of(const ddl_context* context, std::uint64_t id) {
  if (context == nullptr) return failed(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (auto set = context->context->set(id)) return set;
  return tl::unexpected(no_set(id));
}

}  // namespace ddl::runtime
