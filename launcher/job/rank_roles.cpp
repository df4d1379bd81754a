#include "launcher/job/rank_roles.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {
namespace {

constexpr std::array<std::string_view, 4> kTensorflowRoles = {"chief", "worker", "ps", "evaluator"};

Result<int> parse_role_count(std::string_view role, std::string_view text) {
  const auto count = parse_integer(text);
  if (!count || *count < 1 || *count > kMaxRanks)
    return fail(ErrorCode::kInvalidArgument,
                "'" + std::string(text) + "' is not a number of tasks of the role " + std::string(role));
  const bool is_single = role == "chief" || role == "evaluator";
  if (is_single && *count > 1)
    return fail(ErrorCode::kInvalidArgument, "TensorFlow has one " + std::string(role) + " at most");
  return static_cast<int>(*count);
}

Result<RankRole> parse_role(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (std::find(kTensorflowRoles.begin(), kTensorflowRoles.end(), name) == kTensorflowRoles.end())
    return fail(ErrorCode::kInvalidArgument,
                "'" + std::string(name) + "' is not one of chief, worker, ps, evaluator");
  if (colon == std::string_view::npos)
    return fail(ErrorCode::kInvalidArgument,
                "the number of tasks is missing, as in " + std::string(name) + ":1");
  DDL_ASSIGN(count, parse_role_count(name, text.substr(colon + 1)));
  return RankRole{std::string(name), count};
}

bool has_role(const RankRoles& roles, std::string_view name) {
  return std::any_of(roles.begin(), roles.end(), [&](const RankRole& role) { return role.name == name; });
}

}  // namespace

Result<RankRoles> parse_tensorflow_roles(std::string_view text) {
  RankRoles roles;
  for (const std::string_view part : split(text, ',')) {
    DDL_ASSIGN(role, parse_role(trim(part)));
    if (has_role(roles, role.name))
      return fail(ErrorCode::kInvalidArgument, "the role " + role.name + " occurs twice");
    if (role.count > kMaxRanks - num_ranks_of(roles))
      return fail(ErrorCode::kInvalidArgument, "there are more than " + std::to_string(kMaxRanks) + " tasks");
    roles.push_back(std::move(role));
  }
  const bool has_chief = has_role(roles, "chief");
  if (!has_chief && !has_role(roles, "worker"))
    return fail(ErrorCode::kInvalidArgument, "there is neither a chief nor a worker, so nobody trains");
  for (RankRole& role : roles)
    role.serves = role.name == "ps" || (role.name == "worker" && has_chief && has_role(roles, "ps"));
  return roles;
}

RankRoles mxnet_roles(int workers, int servers) {
  return {{"worker", workers},
          {.name = "scheduler", .count = 1, .serves = true, .takes_slots = false},
          {.name = "server", .count = servers, .serves = true, .takes_slots = false}};
}

int num_ranks_of(const RankRoles& roles) {
  int sum = 0;
  for (const RankRole& role : roles) sum += role.count;
  return sum;
}

int num_without_slots(const RankRoles& roles) {
  int sum = 0;
  for (const RankRole& role : roles) sum += role.takes_slots ? 0 : role.count;
  return sum;
}

RoleOfRank role_of(const RankRoles& roles, int rank) {
  int first = 0;
  for (const RankRole& role : roles) {
    if (rank < first + role.count) return {role.name, rank - first, role.serves};
    first += role.count;
  }
  return {"worker", rank - first, false};
}

}  // namespace ddl::launcher
