// Shared memory without a name: a memfd whose size is sealed, so that no holder can make another fault.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace ddl::runtime {

/// Zeroed memory of size bytes, sealed against shrinking, growing and unsealing. Pages are charged when first written.
Result<UniqueFd> make_sealed_memory(std::size_t size);

/// The size of sealed memory that somebody else made; an error if it could change under us.
Result<std::size_t> check_sealed_memory(int fd);

}  // namespace ddl::runtime
