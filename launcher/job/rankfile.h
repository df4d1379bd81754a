// Rankfiles of Open MPI: the host and the cores of each rank, as the user names them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/plan/named_cores.h"
#include "base/error.h"

namespace ddl::launcher {

struct Allocation;

/// Where one rank runs.
struct RankfileEntry {
  std::string host;               ///< as in the file; "" with host_index
  std::optional<int> host_index;  ///< of "+n2": the host of this index in the allocation
  affinity::NamedCores cores;     ///< not empty
  std::string origin;             ///< for messages: "ranks.txt:3"
  int node = 0;                   ///< index into Allocation::nodes; of resolve_hosts()
  bool operator==(const RankfileEntry&) const = default;
};

/// By rank.
using Rankfile = std::vector<RankfileEntry>;

/// Lines "rank N=HOST slot=LIST", in any order, blanks anywhere; "#" begins a comment. HOST is a name, or "+n2". LIST
/// has parts with ";" between them: cores by their logical indices, "10-12" or "0,1,4"; cores of a package, "1:0-2",
/// "1:0,2" or "1:*", also "S1:C0-2" or "S1"; "*", all of the node; or "p0-3,8", the cores of these CPUs of the operating
/// system. In a part with a package all cores belong to it, unless another package is written before them: "0:1,1:0-2".
/// Every rank from 0 on occurs once. A byte order mark is skipped. Pure. name: of the file, in messages.
/// Error: "ranks.txt:3: rank 1 was placed already, in line 2", and the like.
Result<Rankfile> parse_rankfile(std::string_view text, std::string_view name);

/// Sets each entry's node. Pure. hostname: of this machine, to which "localhost" refers. Error: a host that the
/// allocation does not have, or one with more ranks than its max_slots.
Status resolve_hosts(Rankfile& ranks, const Allocation& allocation, const std::string& hostname);

/// The names of the hosts, each once, in the order of ranks; all names of this machine are one host. Error: "+n2" counts
/// hosts that only -H, a hostfile or a scheduler's job can give.
Result<std::vector<std::string>> hosts_of(const Rankfile& ranks, const std::string& hostname);

}  // namespace ddl::launcher
