#include "runtime/src/bootstrap/host_groups.h"

#include <map>
#include <string>

namespace ddl::runtime {

Result<std::vector<std::vector<int>>> groups_by_host_name(Bootstrap& bootstrap, const Membership& membership,
                                                          Deadline deadline) {
  const std::string key = "ddl.host." + std::to_string(membership.generation);
  DDL_TRY(bootstrap.put(key, membership.host));
  DDL_TRY(bootstrap.fence(deadline));
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (int rank = 0; rank < membership.size; ++rank) {
    auto host = bootstrap.get(rank, key, deadline);
    if (!host) return fail(std::move(host.error()));
    ranks_of_host[*std::move(host)].push_back(rank);
  }
  std::vector<std::vector<int>> groups;
  for (auto& [host, ranks] : ranks_of_host) groups.push_back(std::move(ranks));
  return groups;
}

}  // namespace ddl::runtime
