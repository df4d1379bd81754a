// The groups in which the ranks of one host synchronize, so that with many ranks no rank waits for all others. Groups
// are planned by which ranks' CPUs share a last-level cache, a NUMA node or a package.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// The plan, made once by the rank that makes the segment, and each rank's part in it.

/// The last-level cache, NUMA node and package, by number, that contain all CPUs that a rank may run on. -1: these
/// CPUs do not share one, or it is not known.
struct CpuPlace {
  int cache = -1;
  int node = -1;
  int package = -1;
};

/// From this number of ranks on a host, with a CPU for each, they synchronize in groups unless the user chooses
/// otherwise. It is larger than all that has been measured: on two cores groups are not faster
/// (docs/decisions/0016-ranks-of-a-host-may-meet-in-groups.md).
inline constexpr int kGroupsFrom = 128;

/// Whether the plan depends on the ranks' CPUs, so that these must be found out. cpus: the number of CPUs that the
/// members may run on, all together.
bool asks_for_places(const ExchangeConfig& config, int members, int cpus);

/// For each member the index of the leader of its group, its own index if it leads. If all wait for all, each member
/// leads only itself. Ranks that share a cache form a group. A rank that is alone with its cache is grouped with
/// others of its NUMA node, then of its package, then with all that are left. A group has at most config.width
/// members, or without a width the square root of their number, rounded up; larger ones are cut in the order of
/// ranks. place_of: empty, or one for each member.
std::vector<int> plan_groups(const ExchangeConfig& config, int members, int cpus,
                             std::span<const CpuPlace> place_of);

/// One member's part.
struct ExchangeRole {
  bool in_groups = false;          ///< false: all wait for all, and the other fields are not used
  int index = 0;                   ///< its own
  int leader = 0;                  ///< of its group
  std::vector<int> followers;      ///< of a leader, in its group
  std::vector<int> other_leaders;  ///< of a leader

  static ExchangeRole of(std::span<const int> leader_of, int index);
};

// How the members of a segment synchronize in groups, so that no member waits for all others.
//
// Every member publishes its sequence in its flag, as it does if all wait for all. Then
//
//   1. the leader of each group waits for the flags of its followers, and publishes it in its word "gathered";
//   2. it waits for "gathered" of the other leaders, and publishes it in its word "released";
//   3. its followers wait only for "released".
//
// Each of these words means that all members behind it have published the sequence, so a released member may read
// what all have published and staged: one publication happens before the next, along the words. A leader publishes a
// sequence in its words only inside that exchange, before it publishes the next one in its flag, so the words never
// lag behind a completed exchange.

/// words.flag(i), .gathered(i) and .released(i) are the words of member i. publish(word) publishes the sequence in a
/// word of this member; wait_for(word) waits for it in another member's word and returns an Outcome. The first
/// failure ends the rendezvous.
template <class Words, class Publish, class WaitFor>
auto rendezvous_in_groups(const ExchangeRole& role, Words words, Publish publish, WaitFor wait_for) {
  if (role.leader != role.index) return wait_for(words.released(role.leader));
  decltype(wait_for(words.released(role.index))) outcome{};
  for (const int follower : role.followers) {
    if (outcome = wait_for(words.flag(follower)); !outcome) return outcome;
  }
  if (!role.other_leaders.empty()) publish(words.gathered(role.index));
  for (const int leader : role.other_leaders) {
    if (outcome = wait_for(words.gathered(leader)); !outcome) return outcome;
  }
  if (!role.followers.empty()) publish(words.released(role.index));
  return outcome;
}

// Which CPUs share a last-level cache, a NUMA node or a package, as /sys reports it.

class CpuPlaces {
 public:
  /// Reads what /sys reports about these CPUs; missing or invalid entries count as not known. root: the directory to
  /// read.
  static CpuPlaces read(const CpuSet& cpus, const std::string& root = "/sys/devices/system");

  /// The cache, node and package that contain all of these CPUs; not known for an empty set.
  CpuPlace of(const CpuSet& cpus) const;

 private:
  void place(const std::string& list_file, int CpuPlace::*level);

  std::map<int, CpuPlace> place_of_;  ///< by CPU; a cache, node or package is named after its first CPU
};

}  // namespace ddl::runtime
