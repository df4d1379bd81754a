// How somebody who posts learns that it has been handled.
#pragma once

namespace ddl::runtime {

/// Counts what was posted and has not been handled; lives until it is 0 again.
using Pending = int;

}  // namespace ddl::runtime
