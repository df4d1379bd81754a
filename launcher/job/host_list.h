// -H: hosts and their slots in one word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// More slots than this on one host are taken for a slip of the hand.
inline constexpr int kMaxSlots = 1'000'000;

/// What stands between two commas of -H, or first in a line of a hostfile.
struct HostEntry {
  std::vector<std::string> names;  ///< one at least; several if it has a bracket range
  std::optional<std::string> user;
  std::optional<int> slots;
};

/// "node1", "node1:2", "me@node1:2", "[2001:db8::1]:2", "node[1-3,7]:4", "n[01-16]-ib0". Pure.
/// most: how many names it may stand for.
Result<HostEntry> parse_host_entry(std::string_view text, std::size_t most);

/// The slots in a text. Error: `slots must be a positive integer, found "four"`; what: "slots", "max_slots".
Result<int> parse_slots(std::string_view text, std::string_view what);

/// Entries separated by commas, with blanks around them or not; the same host named twice is one node with the sum
/// of the slots. Pure. The error quotes the entry.
Result<std::vector<AllocatedNode>> parse_host_list(std::string_view text);

/// As parse_host_list, but names alone: no user and no slots. A name may stand there twice. Pure.
Result<std::vector<std::string>> parse_host_names(std::string_view text);

}  // namespace ddl::launcher
