// An agent's way to the one that it is reached through.
#pragma once

#include <chrono>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/message/message.h"

namespace ddl::launcher {

/// Where and how to join, from a descriptor that ends behind it. Blocks until then. Error: it ended before, or is something else.
Result<message::Join> read_join(int fd);

/// Connects to the first of the addresses that answers. Blocks, for as long as patience at most. Error: none does, with what the
/// last one said.
Result<UniqueFd> connect_to_gatherer(const message::Join& join, std::chrono::milliseconds patience);

}  // namespace ddl::launcher
