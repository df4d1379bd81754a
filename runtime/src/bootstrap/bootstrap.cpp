#include "runtime/src/bootstrap/bootstrap.h"

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace ddl::runtime {

Result<std::string> PutValues::get(int rank, std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  return fail(ErrorCode::kNotFound,
              "rank " + std::to_string(rank) + " put nothing under " + std::string(key));
}

std::string PutValues::text() const {
  return nlohmann::json(values_).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Status PutValues::add(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(ErrorCode::kProtocol, "a rank put something that is not JSON");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return fail(ErrorCode::kProtocol, "a rank put something under " + key);
    put(key, value.get<std::string>());
  }
  return {};
}

Result<std::vector<std::vector<int>>> groups_by_host_name(Bootstrap& bootstrap, const Membership& membership,
                                                          Deadline deadline) {
  const std::string key = "ddl.host." + std::to_string(membership.generation);
  DDL_TRY(bootstrap.put(key, membership.host));
  DDL_TRY(bootstrap.fence(deadline));
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (int rank = 0; rank < membership.size; ++rank) {
    DDL_ASSIGN(host, bootstrap.get(rank, key, deadline));
    ranks_of_host[std::move(host)].push_back(rank);
  }
  std::vector<std::vector<int>> groups;
  for (auto& [host, ranks] : ranks_of_host) groups.push_back(std::move(ranks));
  return groups;
}

}  // namespace ddl::runtime
