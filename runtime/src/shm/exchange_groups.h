// In which groups the ranks of one host meet, so that with many ranks nobody waits for everybody. The groups are planned by
// which ranks' CPUs share a last-level cache, a NUMA node or a package.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// In which groups the ranks of one host meet: a plan made once by the rank that makes their segment, and each rank's part
// in it.

/// Where all CPUs lie that a rank may run on: the numbers of one last-level cache, one NUMA node and one package. -1: not
/// in one, or not known.
struct CpuPlace {
  int cache = -1;
  int node = -1;
  int package = -1;
};

/// From so many ranks on a host, with a CPU for each, they meet in groups unless the user says otherwise. It lies above all
/// that has been measured: on two cores groups do not win (docs/decisions/0016-ranks-of-a-host-may-meet-in-groups.md).
inline constexpr int kGroupsFrom = 128;

/// Whether the plan depends on where the ranks are, so that it is worth finding out. cpus: that they may run on, all
/// together.
bool asks_for_places(const ExchangeConfig& config, int members, int cpus);

/// For each member the index of the one that leads its group, itself if it leads. Everybody leads itself alone where all
/// wait for all. Ranks with one cache make a group; those that are alone with theirs look for others of their NUMA
/// node, then of their package, then among all that are left. A group has at most about as many members as there
/// are groups, the square root of all: larger ones are cut in the order of ranks. place_of: empty, or one for each member.
std::vector<int> plan_groups(const ExchangeConfig& config, int members, int cpus,
                             std::span<const CpuPlace> place_of);

/// One member's part.
struct ExchangeRole {
  bool in_groups = false;          ///< false: all wait for all, and the rest says nothing
  int index = 0;                   ///< its own
  int leader = 0;                  ///< of its group
  std::vector<int> followers;      ///< of a leader, in its group
  std::vector<int> other_leaders;  ///< of a leader

  static ExchangeRole of(std::span<const int> leader_of, int index);
};

// How the members of a segment meet in groups, so that nobody waits for everybody.
//
// Every member shows its sequence in its flag, as it does where all wait for all. Then
//
//   1. the leader of each group waits for the flags of its followers, and shows the sequence in its word "gathered";
//   2. it waits for "gathered" of the other leaders, and shows the sequence in its word "released";
//   3. its followers wait for nothing else.
//
// Each of these words says that everybody behind it has shown the sequence, so who is released may read what all have
// shown and staged: one publication happens before the next, along the words. A leader publishes a sequence in them only
// inside that exchange, before it shows the next one in its flag, so the words never lag behind an exchange that is over.

/// words.flag(i), .gathered(i) and .released(i) are the words of member i; publish(word) shows the sequence in an own
/// one, wait_for(word) waits for it in another's and gives an Outcome. The first that fails ends the rendezvous.
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

// The CPUs that a process may run on, small enough to be sent.

/// One bit per CPU of the kernel's numbering. Plain data.
struct CpuSet {
  static constexpr std::size_t kMaxCpus = 8192;
  std::array<std::uint64_t, kMaxCpus / 64> bits{};

  /// The calling thread's; CPU 0 alone if the kernel does not say.
  static CpuSet of_this_thread();

  CpuSet& operator|=(const CpuSet& other) {
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= other.bits[i];
    return *this;
  }
  int count() const {
    int total = 0;
    for (const std::uint64_t word : bits) total += std::popcount(word);
    return total;
  }
};

// Which CPUs share a last-level cache, a NUMA node or a package, as the kernel says it in /sys.

class CpuPlaces {
 public:
  /// Reads what there is of these CPUs; what is missing or makes no sense is not known. root: instead of it.
  static CpuPlaces read(const CpuSet& cpus, const std::string& root = "/sys/devices/system");

  /// Where all of these CPUs lie; not known if there are none.
  CpuPlace of(const CpuSet& cpus) const;

 private:
  void place(const std::string& list_file, int CpuPlace::*level);

  std::vector<CpuPlace> place_of_;  ///< by CPU; a cache, node or package is named after its first CPU
};

/// The numbers in a list as the kernel writes them, "0-3,8,10-11\n"; empty unless it is one of CPUs below
/// CpuSet::kMaxCpus.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace ddl::runtime
