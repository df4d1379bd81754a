#include "cli/binding_report.h"

#include "affinity/plan/planner.h"
#include "affinity/source/recorded_text.h"
#include "affinity/source/topology_source.h"
#include "base/text.h"

namespace ddl::cli {

namespace {

Result<affinity::Topology> topology_of(
    const BindingView& view, const std::function<Result<std::string>(const std::string&)>& read_file) {
  if (view.text_files.empty()) {
    return view.topology.empty()
               ? affinity::this_machine(view.topology_format ? affinity::Devices::kAll
                                                             : affinity::Devices::kBesideGpus)
                     ->load()
               : affinity::topology_named(view.topology)->load();
  }
  std::string all;
  for (const std::string& path : view.text_files) {
    auto text = read_file(path);
    if (!text) return fail(std::move(text.error()));
    all += *text + "\n";
  }
  return affinity::topology_of_text(all, join(view.text_files, ", "));
}

}  // namespace

Result<std::string> binding_report(const BindingView& view, const affinity::BindingPolicy& policy,
                                   const std::function<Result<std::string>(const std::string&)>& read_file) {
  const auto topology = topology_of(view, read_file);
  if (!topology) return fail(topology.error());
  // Without ranks there is nothing to plan, whatever the policy.
  const auto plan = affinity::plan_binding(*topology, policy, view.local_ranks);
  if (!plan) return fail(plan.error());
  if (view.topology_format) return affinity::format_topology(*topology, *plan, *view.topology_format);
  return affinity::format_binding(*topology, *plan, view.format);
}

}  // namespace ddl::cli
