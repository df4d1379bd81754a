// The descriptor by which a rank inherits its job's key.
#pragma once

namespace ddl::contract {

/// The only descriptor besides 0, 1 and 2 that ddlrun leaves to a rank, and only in a job of several hosts. The
/// environment names it too (env::kJobKeyFd).
inline constexpr int kJobKeyFd = 3;

}  // namespace ddl::contract
