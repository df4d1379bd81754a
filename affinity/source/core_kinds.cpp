#include "affinity/source/core_kinds.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ddl::affinity {
namespace {

/// Cores of one design differ by less: those that the maker has chosen for a higher clock by a few percent.
bool is_near(int a, int b) {
  constexpr double kNearlySame = 0.8;
  return std::min(a, b) >= kNearlySame * std::max(a, b);
}

bool are_alike(const ListedKind& a, const ListedKind& b) {
  if (!a.type.empty() && !b.type.empty()) return a.type == b.type;
  if (a.capacity > 0 && b.capacity > 0) return is_near(a.capacity, b.capacity);
  return a.max_mhz == 0 || b.max_mhz == 0 || is_near(a.max_mhz, b.max_mhz);
}

}  // namespace

std::vector<CoreKind> kinds_of(std::vector<ListedKind> listed) {
  const auto speed = [](const ListedKind& kind) {
    return std::tuple(kind.efficiency, kind.capacity, kind.max_mhz);
  };
  std::stable_sort(listed.begin(), listed.end(),
                   [&](const ListedKind& a, const ListedKind& b) { return speed(a) > speed(b); });
  std::vector<ListedKind> kinds;
  for (ListedKind& one : listed) {
    const auto same = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const ListedKind& known) { return are_alike(known, one); });
    if (same == kinds.end()) {
      kinds.push_back(std::move(one));
    } else {
      same->cpus |= one.cpus;
    }
  }
  std::vector<CoreKind> named;
  if (kinds.size() < 2) return named;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string letter = i == 0 ? "P" : "E";
    named.push_back({kinds.size() == 2 ? letter : std::to_string(i + 1), std::move(kinds[i].cpus)});
  }
  return named;
}

void set_core_kinds(Topology& topology, std::vector<CoreKind> kinds) {
  std::vector<int> kind_of_core;
  for (const Core& core : topology.cores) {
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const CoreKind& kind) { return core.cpus.intersects(kind.cpus); });
    if (found == kinds.end()) return;
    kind_of_core.push_back(static_cast<int>(found - kinds.begin()));
  }
  for (std::size_t i = 0; i < kind_of_core.size(); ++i) topology.cores[i].kind = kind_of_core[i];
  topology.core_kinds = std::move(kinds);
}

}  // namespace ddl::affinity
