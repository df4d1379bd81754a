// The context that Python has made, for handlers, which XLA calls on threads of its own.
#pragma once

#include <shared_mutex>
#include <string>
#include <vector>

#include <ddl/ddl.h>

#include "python/kernels/jax/call_frame.h"

namespace ddl::jax {

/// While it lives, the context is not left.
struct Joined {
  std::shared_lock<std::shared_mutex> lock;
  ddl_context* context;  ///< null: none; kNotJoined says what to do
};
Joined joined();
inline constexpr const char* kNotJoined =
    "this process has not joined the job, or has left it; call ddl.jax.init() before the computation runs";

/// What a request says about a call of libddl, and libddl does not check: that the result has room for what comes.
/// "": nothing is wrong.
std::string problem_with(const Request& request, ddl_context* context);

/// Of a reduce_scatter, how many elements each rank gets: whole rows, of which the first ranks get one more.
std::vector<std::uint64_t> scattered_counts(const Part& part, int ranks);

}  // namespace ddl::jax
