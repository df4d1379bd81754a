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

/// The maximal number of hosts of one allocation; more are treated as a typing error in a range.
inline constexpr std::size_t kMaxHosts = 65536;
/// How often hosts may be named in all: a PBS node file names one for each of its slots.
inline constexpr std::size_t kMaxTimesNamed = 1'000'000;

/// The meaning of a host that is named several times without slots: an error, because it is ambiguous, or one slot
/// for each time, as in the node files of PBS.
enum class NamedAgain { kRefused, kIsSlot };

/// The nodes of an allocation while it is being read. The same host named twice is one node.
class NodeList {
 public:
  explicit NodeList(NamedAgain named_again) : named_again_(named_again) {}

  /// Appends the node, or adds its slots to those of the node that has its name already. Error: two entries for the
  /// same host must both have slots (or, with kIsSlot, neither), must have the same user and port, and must both
  /// have max_slots or neither; and there may be at most kMaxHosts hosts, named kMaxTimesNamed times in total.
  Status add(AllocatedNode node);

  /// How many hosts the next word may name.
  std::size_t remaining() const { return std::min(kMaxHosts, kMaxTimesNamed - named_); }
  /// The nodes. If any was named several times without slots, as in PBS's node files, each time is one slot, also
  /// for the nodes that were named only once without slots.
  std::vector<AllocatedNode> take() &&;

 private:
  NamedAgain named_again_;
  std::vector<AllocatedNode> nodes_;
  std::vector<int> times_;                              // of each node: how often it was named
  std::unordered_map<std::string, std::size_t> index_;  // by host_key
  std::size_t named_ = 0;
};

/// More slots than this on one host are treated as a typing error.
inline constexpr int kMaxSlots = 1'000'000;

/// One entry of -H, or the first word in a line of a hostfile.
struct HostEntry {
  std::vector<std::string> names;  ///< one at least; several if it has a bracket range
  std::optional<std::string> user;
  std::optional<int> slots;
};

/// "node1", "node1:2", "me@node1:2", "[2001:db8::1]:2", "node[1-3,7]:4", "n[01-16]-ib0". Pure.
/// max_names: how many names the entry may expand to.
Result<HostEntry> parse_host_entry(std::string_view text, std::size_t max_names);

/// The slots in a text. Error: `slots must be a positive integer, found "four"`; what: "slots", "max_slots".
Result<int> parse_slots(std::string_view text, std::string_view what);

/// The nodes of -H: entries separated by commas, with or without blanks around them; or as LSF has them in
/// LSB_MCPU_HOSTS, "node1 4 node2 8". The same host named twice is one node with the sum of the slots. Pure. The error
/// quotes the entry.
Result<std::vector<AllocatedNode>> parse_host_list(std::string_view text);

/// As parse_host_list(), but only names, without users and slots. A name may occur twice. Pure.
Result<std::vector<std::string>> parse_host_names(std::string_view text);

/// The text of a hostfile or rankfile without the byte order mark that some programs of Windows write. Pure. Error: it
/// is encoded in UTF-16. name: of the file.
Result<std::string_view> without_byte_order_mark(std::string_view text, std::string_view name);

/// The nodes of a hostfile, in the order of its lines. A line is a host as in -H, and then any of `slots=4` (or "4"
/// alone), `max_slots=8`, `port=2222`, `user=me`, in any order, with Open MPI's other names of these; max_slots alone are
/// the slots, too. Also read are lines of Grid Engine's pe_hostfile ("node1 8 all.q@node1 UNDEFINED"), LSF's hosts with
/// their slots on one line ("node1 4 node2 8"), and `binding=VALUE` of MPICH and Intel MPI, which is kept and not used.
/// "#" begins a comment. Lines end with LF or CR LF; a byte order mark is skipped. The same host on several lines is one
/// node with the sum of the slots, or, if none of them has slots, with one slot for each line. Pure.
/// name: the name of the file in messages. Error: `hosts.txt:7: slots must be a positive integer, found "four"`.
Result<std::vector<AllocatedNode>> parse_hostfile(std::string_view text, std::string_view name);

}  // namespace ddl::launcher
