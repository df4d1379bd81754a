// Hosts and their slots, one a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// The nodes of a hostfile, in the order of its lines. A line is a host as in -H, and then any of `slots=4` (or "4"
/// alone), `max_slots=8`, `port=2222`, `user=me`, in any order; "#" begins a comment. Lines end with LF or CR LF; a
/// byte order mark is skipped. The same host on several lines is one node with the sum of the slots, or, where none of
/// them has slots, with one for each line. Pure.
/// name: what messages call the file. Error: `hosts.txt:7: slots must be a positive integer, found "four"`.
Result<std::vector<AllocatedNode>> parse_hostfile(std::string_view text, std::string_view name);

}  // namespace ddl::launcher
