// Hosts and their slots as the user gives them, with -H or in a hostfile. A host that is named twice is one node.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

// The nodes of an allocation while it is being read: the same host named twice is one node.

/// Most hosts of one allocation; more is taken for a slip in a range.
inline constexpr std::size_t kMaxHosts = 65536;
/// How often hosts may be named in all: a PBS node file names one for each of its slots.
inline constexpr std::size_t kMaxTimesNamed = 1'000'000;

/// What it means that a host is named several times without slots: nothing certain, or a slot each time, as in the node
/// files of PBS.
enum class NamedAgain { kRefused, kIsSlot };

class NodeList {
 public:
  explicit NodeList(NamedAgain named_again) : named_again_(named_again) {}

  /// Appends the node, or adds its slots to those of the node that has its name already. Error: of two that are the
  /// same host both must say how many slots (or, with kIsSlot, neither), and they must agree on the user, the port, and whether
  /// there are max_slots; and there may be kMaxHosts at most, named kMaxTimesNamed times in all.
  Status add(AllocatedNode node);

  /// How many more hosts the next word may name.
  std::size_t room() const { return std::min(kMaxHosts, kMaxTimesNamed - named_); }
  /// The nodes. Where one was named several times without slots, as PBS's node files do, each time is a slot, also of
  /// the nodes that were named once without them.
  std::vector<AllocatedNode> take() &&;

 private:
  NamedAgain named_again_;
  std::vector<AllocatedNode> nodes_;
  std::vector<int> times_;                              // of each node: how often it was named
  std::unordered_map<std::string, std::size_t> index_;  // by host_key
  std::size_t named_ = 0;
};

// -H: hosts and their slots in one word.

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

// Hosts and their slots, one a line.

/// The nodes of a hostfile, in the order of its lines. A line is a host as in -H, and then any of `slots=4` (or "4"
/// alone), `max_slots=8`, `port=2222`, `user=me`, in any order; "#" begins a comment. Lines end with LF or CR LF; a
/// byte order mark is skipped. The same host on several lines is one node with the sum of the slots, or, where none of
/// them has slots, with one for each line. Pure.
/// name: what messages call the file. Error: `hosts.txt:7: slots must be a positive integer, found "four"`.
Result<std::vector<AllocatedNode>> parse_hostfile(std::string_view text, std::string_view name);

}  // namespace ddl::launcher
