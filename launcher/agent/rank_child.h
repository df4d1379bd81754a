// What the spawner is given to start one rank.
#pragma once

#include "base/error.h"
#include "base/fd.h"
#include "launcher/message/message.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

/// The command and environment of one rank: the job's, then the rank's, then the agent's, each on top of the one
/// before. Variables that describe the login are this node's own where the job asks for that.
ChildSpec rank_child(const NodeLaunch& node, const RankLaunch& launch, const Environment& agent_environment,
                     std::vector<int> inherited_fds = {});

/// Both ends of a rank's three standard streams.
struct RankStreams {
  UniqueFd rank_in, rank_out, rank_err;
  UniqueFd in;  ///< empty unless the rank reads ddlrun's input
  UniqueFd out, err;
};
/// Pipes; without reads_stdin the input is /dev/null. Error: no descriptors are left.
Result<RankStreams> make_rank_streams(bool reads_stdin);

/// PATH in its environment; "" if it has none.
std::string search_path_of(const ChildSpec& child);

}  // namespace ddl::launcher
