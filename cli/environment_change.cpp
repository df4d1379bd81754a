#include "cli/environment_change.h"

#include <map>

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

  // How many ranks have a variable, and whether with the same value: linear, as there may be many thousands of ranks.
  struct Use {
    const std::string* value;
    std::size_t ranks = 0;
    bool same = true;
  };
  std::map<std::string, Use> uses;
  for (const Environment& rank : ranks) {
    for (const auto& [name, value] : rank) {
      Use& use = uses.try_emplace(name, Use{&value}).first->second;
      ++use.ranks;
      if (*use.value != value) use.same = false;
    }
  }

  EnvironmentChange change;
  change.own.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const auto& [name, value] : ranks[i]) {
      const Use& use = uses.at(name);
      if (!use.same || use.ranks < ranks.size()) change.own[i].emplace(name, value);
    }
  }
  for (const auto& [name, use] : uses) {
    if (!use.same || use.ranks < ranks.size()) continue;
    const auto head = head_environment.find(name);
    if (head == head_environment.end() || head->second != *use.value) change.set.emplace(name, *use.value);
  }
  for (const auto& [name, value] : head_environment) {
    if (!uses.contains(name)) change.removed.push_back(name);
  }
  return change;
}

}  // namespace ddl::cli
