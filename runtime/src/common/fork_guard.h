// Detects a forked child, which must not use what it inherited.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/src/common/failure.h"

namespace ddl::runtime {

/// How often this process and its ancestors have forked since libddl was first used in them: equal at two moments if
/// and only if no fork without exec lies between. getpid() would give the same information for a system call.
std::uint64_t fork_count();

/// What calls of a child forked without exec fail with.
Failure inherited_by_fork();

/// Descriptors that a child forked without exec closes at once, while this lives. A copy of a connection in a child
/// would keep it open when this process dies, and other hosts would not notice the death.
class ClosedInForkedChild {
 public:
  explicit ClosedInForkedChild(std::vector<int> fds);
  ~ClosedInForkedChild();
  ClosedInForkedChild(const ClosedInForkedChild&) = delete;
  ClosedInForkedChild& operator=(const ClosedInForkedChild&) = delete;

 private:
  std::vector<int> fds_;
};

}  // namespace ddl::runtime
