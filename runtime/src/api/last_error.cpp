#include "runtime/src/api/last_error.h"

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

}  // namespace ddl::runtime
