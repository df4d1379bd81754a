#include "cli/environment_change.h"

#include <algorithm>

namespace ddl::cli {

using launcher::Environment;

EnvironmentChange environment_change(const launcher::LaunchPlan& plan, const Environment& head_environment) {
  // What every rank would find in environ(7), but for PMIx's own.
  std::vector<Environment> ranks;
  for (const launcher::NodeLaunch& node : plan.nodes) {
    for (const launcher::RankLaunch& rank : node.ranks) {
      Environment whole = rank.environment;
      whole.insert(node.common_environment.begin(), node.common_environment.end());  // the rank's own win
      ranks.push_back(std::move(whole));
    }
  }

  EnvironmentChange change;
  change.own.resize(ranks.size());
  const auto shared = [&](const std::string& name, const std::string& value) {
    return std::all_of(ranks.begin(), ranks.end(), [&](const Environment& rank) {
      const auto it = rank.find(name);
      return it != rank.end() && it->second == value;
    });
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const auto& [name, value] : ranks[i]) {
      if (!shared(name, value)) {
        change.own[i].emplace(name, value);
        continue;
      }
      const auto head = head_environment.find(name);
      if (head == head_environment.end() || head->second != value) change.set.emplace(name, value);
    }
  }
  for (const auto& [name, value] : head_environment) {
    const bool kept = std::any_of(ranks.begin(), ranks.end(),
                                  [&name = name](const Environment& rank) { return rank.contains(name); });
    if (!kept) change.removed.push_back(name);
  }
  return change;
}

}  // namespace ddl::cli
