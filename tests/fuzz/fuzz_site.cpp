// Site profiles with arbitrary text. A binding can be planned on the node of an accepted profile; a refusal names the
// file.
#include <cstdint>
#include <string>

#include "affinity/plan/binding_plan.h"
#include "fuzz/require.h"
#include "templates/profile/site_profile.h"

namespace {

void plan_on(const ddl::templates::SiteProfile& site) {
  if (!site.node) return;
  const auto topology = ddl::affinity::topology_of_model(*site.node, site.name);
  require(topology.has_value() && ddl::affinity::is_consistent(*topology));
  for (const int ranks : {1, 3}) {
    const auto plan = ddl::affinity::plan_binding(*topology, {}, ranks);
    if (!plan) continue;
    for (const auto& rank : plan->ranks)
      require(!rank.cpus.is_empty() && rank.cpus.is_subset_of(topology->allowed));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto site = ddl::templates::read_site(text, "f.yaml");
  if (!site) {
    require(site.error().message().starts_with("f.yaml:"));
    return 0;
  }
  plan_on(site->all);
  for (const auto& variant : site->variants) {
    plan_on(variant.profile);
    const ddl::templates::NodeRequest request{variant.name, variant.name, variant.name};
    plan_on(ddl::templates::profile_of(*site, request, variant.name));
  }
  return 0;
}
