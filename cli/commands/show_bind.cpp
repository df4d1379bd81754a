// --show-bind, --explain-bind and --show-topology: loads a topology, plans the binding on it, and prints both.
#include "affinity/plan/binding_plan.h"
#include "affinity/source/node_model.h"
#include "affinity/source/topology_source.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "templates/profile/site_catalog.h"

namespace ddl::cli {

namespace {

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

/// The topology of this machine, of a file or of recorded text.
Result<affinity::Topology> topology_of(const BindingView& view, const ReadFile& read_file) {
  if (!view.text_files.empty()) return topology_of_files(view.text_files, read_file);
  if (!view.topology.empty()) {
    auto topology = affinity::topology_named(view.topology)->load();
    if (!topology) return fail(std::move(topology.error()).during("--topology"));
    return topology;
  }
  const auto devices = view.topology_format ? affinity::Devices::kAll : affinity::Devices::kBesideGpus;
  return affinity::this_machine(devices)->load();
}

Result<std::string> report_on(const affinity::Topology& topology, const affinity::BindingPolicy& policy,
                              const BindingView& view) {
  // Without ranks the plan is empty for every policy.
  DDL_ASSIGN(plan, affinity::plan_binding(topology, policy, view.local_ranks));
  if (view.topology_format) return affinity::format_topology(topology, plan, *view.topology_format);
  return affinity::format_binding(topology, plan, view.format);
}

}  // namespace

Result<std::string> binding_report(const BindingView& view, affinity::BindingPolicy policy,
                                   const ReadFile& read_file, const std::vector<std::string>& sites_folders) {
  if (view.site.empty()) {
    DDL_ASSIGN(topology, topology_of(view, read_file));
    return report_on(topology, policy, view);
  }
  DDL_ASSIGN(site, templates::SiteCatalog(sites_folders, read_file).find(view.site));
  if (!view.has_rank_order) policy.rank_order = site.rank_order;
  DDL_ASSIGN(topology, topology_of_site(site));
  return report_on(topology, policy, view);
}

int show_bind(const Request& request, const Environment& environment, const Console& console) {
  const auto report = binding_report(request.binding_view, request.job.binding, read_user_file,
                                     config_folders(environment, "sites"));
  if (!report) {
    const bool is_known = known_site(request.binding_view.site, environment).has_value();
    return console.refuse(report.error().with_hint(
        is_known ? "ddlrun --help binding lists the options of binding" : kSitesHint));
  }
  return console.print(*report);
}

}  // namespace ddl::cli
