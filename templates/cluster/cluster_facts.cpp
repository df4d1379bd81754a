#include "templates/cluster/cluster_facts.h"

#include <map>
#include <tuple>

namespace ddl::templates {

std::vector<NodeKind> merged(const std::vector<NodeKind>& kinds) {
  std::vector<NodeKind> result;
  const auto looks = [](const NodeKind& kind) {
    return std::make_tuple(kind.partitions, kind.cpus, kind.gpus, kind.memory_mb, kind.features);
  };
  std::map<decltype(looks(kinds.front())), std::size_t> places;
  for (const NodeKind& kind : kinds) {
    const auto [place, is_new] = places.try_emplace(looks(kind), result.size());
    if (is_new) {
      result.push_back(kind);
    } else {
      result[place->second].count += kind.count;
    }
  }
  return result;
}

}  // namespace ddl::templates
