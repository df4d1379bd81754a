// What the ranks of a job are for, where a framework distinguishes that: TensorFlow's tasks, MXNet's roles. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

struct RankRole {
  std::string name;     ///< as the framework has it: "chief", "worker", "ps"
  int count = 0;        ///< of its ranks
  bool serves = false;  ///< its ranks serve the others, and the job ends them when the others have ended
  bool takes_slots =
      true;  ///< false: its ranks are started beside those that the user asked for, and are not bound
  bool operator==(const RankRole&) const = default;
};

/// The roles of a job, in the order of its ranks; empty: all ranks do the same.
using RankRoles = std::vector<RankRole>;

/// Each task is told the addresses of all, so that the whole grows with the square of their number.
inline constexpr int kMaxTensorflowTasks = 1000;

/// From "chief:1,worker:4,ps:2", whose ranks are numbered in this order. A ps serves; if there is a chief, too, the
/// workers serve it, as TensorFlow's ParameterServerStrategy has them. Error: a sentence about what is wrong.
Result<RankRoles> parse_tensorflow_roles(std::string_view text);

/// The workers, and beside them a scheduler and the servers.
RankRoles mxnet_roles(int workers, int servers);

/// How many ranks they are.
int num_ranks_of(const RankRoles& roles);

/// How many of them, the last ones, take no slots.
int num_without_slots(const RankRoles& roles);

struct RoleOfRank {
  std::string_view name;  ///< lives as long as the roles
  int index = 0;          ///< among the ranks of this role
  bool serves = false;
};
/// Without roles every rank is a "worker".
RoleOfRank role_of(const RankRoles& roles, int rank);

}  // namespace ddl::launcher
