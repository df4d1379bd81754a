// --show-bind, --explain-bind and --show-topology: loads a topology, plans the binding on it, and prints both.
#include "affinity/plan/binding_plan.h"
#include "affinity/source/node_model.h"
#include "affinity/source/topology_source.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"

namespace ddl::cli {

namespace {

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

Result<affinity::Topology> topology_of_files(const std::vector<std::string>& paths,
                                             const ReadFile& read_file) {
  std::string all;
  for (const std::string& path : paths) {
    auto text = read_file(path);
    if (!text) return fail(std::move(text.error()).during("--topology-text"));
    all += *text + "\n";
  }
  return affinity::topology_of_text(all, join(paths, ", "));
}

Result<affinity::Topology> topology_of_site(const templates::SiteProfile& site) {
  if (!site.node) {
    return fail(ErrorCode::kUnavailable, "the profile of " + site.name +
                                             " has no model of its nodes; run it on a node there, or give "
                                             "the node's hwloc file with --topology");
  }
  return affinity::topology_of_model(*site.node, site.name);
}

/// The topology of the site's nodes, of recorded text, of a file, or of this machine.
Result<affinity::Topology> topology_of(const Request& request, const ReadFile& read_file) {
  const BindingView& view = request.binding_view;
  if (request.profile) return topology_of_site(*request.profile);
  if (!view.text_files.empty()) return topology_of_files(view.text_files, read_file);
  if (!view.topology.empty()) {
    auto topology = affinity::topology_named(view.topology)->load();
    if (!topology) return fail(std::move(topology.error()).during("--topology"));
    return topology;
  }
  const auto devices = view.topology_format ? affinity::Devices::kAll : affinity::Devices::kBesideGpus;
  return affinity::this_machine(devices)->load();
}

}  // namespace

Result<std::string> binding_report(const Request& request, const ReadFile& read_file) {
  const BindingView& view = request.binding_view;
  DDL_ASSIGN(topology, topology_of(request, read_file));
  // Without ranks the plan is empty for every policy.
  DDL_ASSIGN(plan, affinity::plan_binding(topology, request.job.binding, view.local_ranks));
  if (view.topology_format) return affinity::format_topology(topology, plan, *view.topology_format);
  return affinity::format_binding(topology, plan, view.format);
}

int show_bind(const Request& request, const Environment& /*environment*/, const Console& console) {
  const auto report = binding_report(request, read_user_file);
  if (!report)
    return console.refuse(report.error().with_hint("ddlrun --help binding lists the options of binding"));
  return console.print(*report);
}

}  // namespace ddl::cli
