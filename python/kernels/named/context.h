// The context that Python has made, for kernels, which frameworks call on threads of their own.
#pragma once

#include <shared_mutex>

#include <ddl/ddl.h>

namespace ddl::kernels {

/// While it lives, the context is not left.
struct Joined {
  std::shared_lock<std::shared_mutex> lock;
  ddl_context* context;  ///< null: none; kNotJoined says what to do
};
Joined joined();
inline constexpr const char* kNotJoined =
    "this process has not joined the job, or has left it; call init() before the computation runs";

}  // namespace ddl::kernels
