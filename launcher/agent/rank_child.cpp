#include "launcher/agent/rank_child.h"

#include <fcntl.h>

#include <cstdlib>

#include "contract/environment.h"
#include "contract/rank_process.h"

namespace ddl::launcher {
namespace {

void take_own_variables(const std::vector<std::string>& names, Environment& environment) {
  for (const std::string& name : names) {
    const char* own = std::getenv(name.c_str());
    if (own != nullptr) {
      environment[name] = own;
    } else {
      environment.erase(name);
    }
  }
}

}  // namespace

ChildSpec rank_child(const NodeLaunch& node, const RankLaunch& launch, const Environment& agent_environment,
                     std::vector<int> inherited_fds) {
  Environment environment = node.common_environment;
  take_own_variables(node.login_variables, environment);
  for (const auto& [name, value] : launch.environment) environment[name] = value;
  for (const auto& [name, value] : agent_environment) environment[name] = value;

  ChildSpec child;
  child.rank = launch.rank;
  child.inherited_fds = std::move(inherited_fds);
  child.cpus = launch.cpus;
  child.memory_nodes = launch.memory_nodes;
  child.reports_binding = node.reports_bindings;
  child.strict_binding = node.strict_binding;
  child.argv = node.command;
  child.workdir = node.workdir;
  child.environment = environment_entries(environment);
  return child;
}

std::string search_path_of(const ChildSpec& child) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string& entry : child.environment) {
    if (entry.starts_with(kName)) return entry.substr(kName.size());
  }
  return "";
}

Result<RankStreams> make_rank_streams(bool reads_stdin) {
  auto out = make_pipe();
  if (!out) return fail(out.error());
  auto err = make_pipe();
  if (!err) return fail(err.error());
  RankStreams streams;
  streams.out = std::move(out->first);
  streams.rank_out = std::move(out->second);
  streams.err = std::move(err->first);
  streams.rank_err = std::move(err->second);
  if (reads_stdin) {
    auto in = make_pipe();
    if (!in) return fail(in.error());
    streams.rank_in = std::move(in->first);
    streams.in = std::move(in->second);
  } else {
    streams.rank_in = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!streams.rank_in) return fail_errno("open /dev/null");
  }
  return streams;
}

}  // namespace ddl::launcher
