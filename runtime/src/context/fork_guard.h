// Tells a forked child that what it inherited is not its own.
#pragma once

#include <cstdint>

namespace ddl::runtime {

/// How often this process and its ancestors have forked since libddl was first used in them: equal at two moments if
/// and only if no fork without exec lies between. getpid() would say the same, at the price of a system call.
std::uint64_t fork_count();

}  // namespace ddl::runtime
