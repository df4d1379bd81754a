// Every shipped profile can be read, says where its facts come from, gives the bindings that its site publishes, and
// scripts in which --lint finds nothing; docs/reference/sites.md has a line for each.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "base/fd.h"
#include "base/text.h"
#include "support/catch.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_catalog.h"
#include "templates/script/batch_job.h"
#include "templates/script/script_renderer.h"

using namespace ddl::affinity;
using ddl::templates::SiteCatalog;
using ddl::templates::SiteProfile;

namespace {

SiteCatalog shipped_catalog() {
  return {{}, [](const std::string& path) { return ddl::read_file(path); }};
}

SiteProfile site_named(const std::string& name) {
  auto site = shipped_catalog().find(name);
  INFO((site ? std::string() : site.error().message()));
  REQUIRE(site);
  return *std::move(site);
}

struct ShippedSite {
  std::string name;
  std::string text;
  ddl::templates::Site site;
};

std::vector<ShippedSite> shipped() {
  std::vector<ShippedSite> all;
  for (const std::string& name : ddl::templates::shipped_sites()) {
    const auto text = shipped_catalog().text_of(name);
    REQUIRE(text);
    auto site = ddl::templates::read_site(text->text, text->file);
    INFO((site ? std::string() : site.error().message()));
    REQUIRE(site);
    all.push_back({name, text->text, *std::move(site)});
  }
  return all;
}

/// What jobs there may get: each variant, or the site where it has none.
std::vector<std::pair<std::string, SiteProfile>> kinds_of(const ShippedSite& one) {
  std::vector<std::pair<std::string, SiteProfile>> kinds;
  for (const auto& variant : one.site.variants) kinds.emplace_back(variant.name, variant.profile);
  if (kinds.empty()) kinds.emplace_back("", one.site.all);
  return kinds;
}

BindingPlan plan_of(const SiteProfile& site, int ranks, int gpus_per_rank = 0) {
  REQUIRE(site.node);
  const auto topology = topology_of_model(*site.node, site.name);
  REQUIRE(topology);
  CHECK(is_consistent(*topology));
  BindingPolicy policy;
  policy.rank_order = site.rank_order;
  policy.gpus_per_rank = gpus_per_rank;
  auto plan = plan_binding(*topology, policy, ranks);
  REQUIRE(plan);
  return *std::move(plan);
}

std::string map_cpu(const SiteProfile& site, int ranks) {
  const auto topology = topology_of_model(*site.node, site.name);
  return std::string(ddl::trim(format_binding(*topology, plan_of(site, ranks), BindingFormat::kMapCpu)));
}

std::string map_cpu(const std::string& name, int ranks) { return map_cpu(site_named(name), ranks); }

std::string gpus_of(const std::string& name, int ranks) {
  std::vector<std::string> gpus;
  for (const RankBinding& rank : plan_of(site_named(name), ranks).ranks)
    gpus.push_back(std::to_string(rank.gpus.front().index));
  return ddl::join(gpus, ",");
}

/// What a user gives who wants these nodes, and nothing that the profile says itself.
ddl::templates::ScriptRequest request_for(const SiteProfile& site, int nodes) {
  using ddl::templates::GpuRequest;
  ddl::templates::ScriptRequest request;
  request.nodes = nodes;
  request.command = {"./train"};
  request.time_limit = "30:00";
  if (site.slurm.account_required) request.account = "p" + site.slurm.account_suffix;
  if (site.slurm.memory_required) request.memory_per_cpu = "2G";
  if (site.setup.needed) request.modules = {site.setup.needed->module + "/1.0"};
  if (request.modules == std::vector<std::string>{"/1.0"}) request.modules.clear();
  const bool has_gpus = site.slurm.gpus_per_node > 0 || (site.node && !site.node->gpu_numa.empty());
  if (has_gpus) return request;
  request.ranks_per_node = 4;
  if (site.slurm.gpu_request != GpuRequest::kNone) request.gpus_per_node = 4;
  return request;
}

}  // namespace

TEST_CASE("every shipped profile has the name of its file, titles, and nodes that can be planned on") {
  std::set<std::string> names;
  for (const ShippedSite& one : shipped()) {
    INFO(one.name);
    CHECK(one.site.all.name == one.name);
    CHECK_FALSE(one.site.all.title.empty());
    CHECK(names.insert(one.name).second);
    for (const auto& [variant, site] : kinds_of(one)) {
      INFO(variant);
      CHECK_FALSE(site.title.empty());
      if (!variant.empty()) CHECK(names.insert(site.name).second);
      if (!site.node) continue;
      const int gpus = static_cast<int>(site.node->gpu_numa.size());
      const BindingPlan plan = plan_of(site, std::max(gpus, 4));
      for (const RankBinding& rank : plan.ranks) CHECK(rank.gpus.size() == (gpus > 0 ? 1 : 0));
    }
  }
  CHECK(std::count_if(names.begin(), names.end(), [](const std::string& name) {
          return name.find("generic") == std::string::npos;
        }) >= 25);
}

TEST_CASE("each fact of a shipped profile has a source with a date") {
  for (const ShippedSite& one : shipped()) {
    if (one.name.starts_with("generic-")) continue;  // no site, and so no facts
    INFO(one.name);
    CHECK_FALSE(one.site.sources.empty());
    for (const auto& source : one.site.sources) {
      INFO(source.title);
      CHECK_FALSE(source.title.empty());
      CHECK(source.url.starts_with("http"));
      CHECK_FALSE(source.date.empty());
    }
    const auto tree = ddl::templates::parse_yaml(one.text, one.name);
    REQUIRE(tree);
    for (const auto& fact : ddl::templates::facts_of(*tree, one.site.sources)) {
      INFO(fact.key);
      CHECK(fact.source != nullptr);
    }
    // Not one that is never the nearest: its facts would all be shown as another's.
    for (const auto& source : one.site.sources) {
      const auto facts = ddl::templates::facts_of(*tree, one.site.sources);
      INFO(source.title);
      CHECK(
          std::any_of(facts.begin(), facts.end(), [&](const auto& fact) { return fact.source == &source; }));
    }
  }
}

TEST_CASE("the scripts for all sites, with one node and with two, pass --lint") {
  using namespace ddl::templates;
  const auto templates = find_templates("", {}, {});
  REQUIRE(templates);
  for (const ShippedSite& one : shipped()) {
    if (!one.site.closed.empty()) continue;
    for (const auto& [variant, site] : kinds_of(one)) {
      for (const int nodes : {1, 2}) {
        for (const ScriptLauncher launcher : {ScriptLauncher::kDdlrun, ScriptLauncher::kSrun}) {
          ScriptRequest request = request_for(site, nodes);
          request.launcher = launcher;
          INFO(one.name << " " << variant << ", " << nodes << " nodes");
          const auto job = make_batch_job(request, &site);
          INFO((job ? std::string() : job.error().message()));
          REQUIRE(job);
          const auto script = render_script(*templates, request, *job, &site, {});
          REQUIRE(script);
          INFO(*script);
          for (const LintFinding& finding : lint_script(*script, &site)) {
            INFO(finding.sentence);
            CHECK(finding.rule == "");
          }
          // The script itself says which nodes it is for.
          CHECK(profile_of(one.site, nodes_of_script(*script), variant).title == site.title);
        }
      }
    }
  }
}

TEST_CASE("the bindings that sites publish") {
  CHECK(map_cpu("lumi-g", 8) == "map_cpu:49,57,17,25,1,9,33,41");
  CHECK(map_cpu("lumi-c", 8) == "map_cpu:0,16,32,48,64,80,96,112");
  CHECK(map_cpu("frontier", 8) == "map_cpu:1,9,17,25,33,41,49,57");
  CHECK(gpus_of("frontier", 8) == "4,5,2,3,6,7,0,1");
  CHECK(map_cpu("setonix", 8) == "map_cpu:0,8,16,24,32,40,48,56");
  CHECK(gpus_of("setonix", 8) == "4,5,2,3,6,7,0,1");
  CHECK(map_cpu("juwels-booster", 4) == "map_cpu:18,6,42,30");
  CHECK(map_cpu("perlmutter-gpu", 4) == "map_cpu:48,32,16,0");
  CHECK(map_cpu("alps-gh200", 4) == "map_cpu:0,72,144,216");
  CHECK(map_cpu("nris-olivia", 4) == "map_cpu:0,72,144,216");
  CHECK(map_cpu("jupiter", 4) == "map_cpu:0,72,144,216");
  CHECK(map_cpu("marenostrum5", 4) == "map_cpu:0,20,40,60");
  CHECK(map_cpu("leonardo", 4) == "map_cpu:0,8,16,24");
}

TEST_CASE("the request of a job decides which nodes of a shipped site it gets") {
  const auto title = [](const std::string& name, const ddl::templates::NodeRequest& nodes) {
    return shipped_catalog().find(name, nodes).value().title;
  };
  CHECK(title("lumi-g", {"standard", "", ""}) == site_named("lumi-c").title);
  CHECK(title("lumi", {"small-g", "", ""}) == site_named("lumi-g").title);
  CHECK(title("perlmutter-gpu", {"", "cpu", ""}) == site_named("perlmutter-cpu").title);
  CHECK(title("perlmutter", {"", "gpu&hbm80g", ""}) == site_named("perlmutter-gpu").title);
  CHECK(title("marenostrum5", {"", "", "gp_ehpc"}) == site_named("marenostrum5-gpp").title);
  CHECK(title("jean-zay", {"", "a100", ""}) == site_named("jean-zay-a100").title);
  CHECK(title("nris-saga", {"a100", "", ""}) == site_named("nris-saga-a100").title);
  // Of these nothing is said but what holds for all.
  CHECK_FALSE(shipped_catalog().find("lumi-g", {"largemem", "", ""})->node);
  using ddl::templates::is_for;
  CHECK(is_for(site_named("lumi-g"), {"small-g", "", ""}));
  CHECK_FALSE(is_for(site_named("lumi-g"), {"standard", "", ""}));
  CHECK_FALSE(is_for(site_named("perlmutter-gpu"), {"", "cpu", ""}));
  CHECK(is_for(site_named("frontier"), {"extended", "nvme", ""}));
  CHECK_FALSE(shipped_catalog().find("adastra", {"", "GENOA", ""})->node);
}

TEST_CASE("what sites publish of their Slurm and their networks") {
  using ddl::templates::gives_whole_nodes;
  using ddl::templates::SlurmCpus;
  const auto variables = [](const std::string& name) {
    std::vector<std::string> all;
    for (const auto& one : site_named(name).setup.variables) all.push_back(one.name + "=" + one.value);
    return all;
  };
  using Catch::Matchers::VectorContains;
  const auto perlmutter = site_named("perlmutter-gpu");
  CHECK(perlmutter.slurm.qos == "regular");
  CHECK(perlmutter.slurm.account_suffix == "_g");
  CHECK(perlmutter.slurm.cpus_are == SlurmCpus::kThreads);
  CHECK_THAT(perlmutter.slurm.directives, VectorContains(std::string("--gpu-bind=none")));
  CHECK_THAT(variables("perlmutter-gpu"), VectorContains(std::string("MPICH_OFI_NIC_POLICY=GPU")));
  CHECK(gives_whole_nodes(perlmutter.slurm, "", ""));
  CHECK_FALSE(gives_whole_nodes(perlmutter.slurm, "", "shared"));

  // Each is of use with the other only.
  CHECK_THAT(site_named("frontier").slurm.directives,
             VectorContains(std::string("--network=disable_rdzv_get")));
  CHECK_THAT(variables("frontier"), VectorContains(std::string("FI_CXI_RDZV_PROTO=alt_read")));
  CHECK_THAT(variables("frontier"), VectorContains(std::string("NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3")));
  CHECK_THAT(variables("frontier"), VectorContains(std::string("FI_CXI_RX_MATCH_MODE=hybrid")));
  REQUIRE(site_named("frontier").setup.needed);
  CHECK(site_named("frontier").setup.needed->module == "rccl-net-plugin");
  // Programs without RCCL have neither.
  CHECK(site_named("frontier-mpi").slurm.directives.empty());
  CHECK(variables("frontier-mpi") == std::vector<std::string>{"MPICH_GPU_SUPPORT_ENABLED=1"});
  CHECK_THAT(variables("alps-gh200"), VectorContains(std::string("NCCL_NET=AWS Libfabric")));
  CHECK_THAT(variables("alps-gh200"), VectorContains(std::string("FI_CXI_RX_MATCH_MODE=software")));
  CHECK_FALSE(site_named("alps-gh200").setup.variables_in_containers);

  CHECK(site_named("juwels-booster").slurm.cpus_are == SlurmCpus::kUnknown);
  CHECK_THAT(site_named("juwels-booster").slurm.srun_only, VectorContains(std::string("--hint")));
  CHECK_THAT(variables("juwels-booster"), VectorContains(std::string("CUDA_VISIBLE_DEVICES=0,1,2,3")));
  const auto lumi = site_named("lumi-g");
  CHECK(gives_whole_nodes(lumi.slurm, "", ""));
  CHECK(gives_whole_nodes(lumi.slurm, "standard-g", ""));
  CHECK_FALSE(gives_whole_nodes(lumi.slurm, "small-g", ""));
  CHECK_FALSE(gives_whole_nodes(lumi.slurm, "standard-g,small-g", ""));
}

TEST_CASE("the adapters of LUMI-G's GPUs") {
  std::vector<std::string> nics;
  for (const RankBinding& rank : plan_of(site_named("lumi-g"), 8).ranks)
    nics.push_back(ddl::join(rank.nics, "+"));
  CHECK(ddl::join(nics, ",") == "hsn0,hsn0,hsn1,hsn1,hsn2,hsn2,hsn3,hsn3");
  // A rank with several GPUs has the adapters of all of them.
  nics.clear();
  for (const RankBinding& rank : plan_of(site_named("juwels-booster"), 2, 2).ranks)
    nics.push_back(ddl::join(rank.nics, "+"));
  CHECK(ddl::join(nics, ",") == "mlx5_0+mlx5_1,mlx5_2+mlx5_3");
}

namespace {

std::string in_code(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) all.push_back("`" + word + "`");
  return ddl::join(all, ", ");
}

/// "| `lumi-g` | LUMI-G at ... | `standard-g`, `small-g` | 56 cores, 8 MI250X | `49,57,...` | 2024-03-28 to 2026-04-22 |"
std::string table_row(const ShippedSite& one, const ddl::templates::SiteVariant* variant) {
  const SiteProfile& site = variant != nullptr ? variant->profile : one.site.all;
  std::vector<std::string> requests;
  if (variant != nullptr) {
    for (const auto* words : {&site.partitions, &site.constraints, &site.qos})
      if (!words->empty()) requests.push_back(in_code(*words));
  }
  std::string node, map;
  if (site.node) {
    const auto topology = topology_of_model(*site.node, site.name);
    const int gpus = static_cast<int>(site.node->gpu_numa.size());
    node = std::to_string(usable_cores(*topology, {}).cores.size()) + " cores";
    if (gpus > 0) node += ", " + std::to_string(gpus) + " GPUs";
    if (gpus > 0) map = "`" + map_cpu(site, gpus).substr(std::string("map_cpu:").size()) + "`";
  } else if (site.slurm.gpus_per_node > 0) {
    node = std::to_string(site.slurm.gpus_per_node) + " GPUs";
  }
  std::string first, last;
  const auto tree = ddl::templates::parse_yaml(one.text, one.name);
  for (const auto& fact :
       ddl::templates::facts_of(*tree, one.site.sources, variant != nullptr ? variant->name : "")) {
    if (fact.source == nullptr) continue;
    if (first.empty() || fact.source->date < first) first = fact.source->date;
    last = std::max(last, fact.source->date);
  }
  const std::string dates = first == last ? first : first + " to " + last;
  const std::string cells[] = {
      "`" + site.name + "`", site.title, ddl::join(requests, "; "), node, map, dates};
  std::string row;
  for (const std::string& cell : cells) row += cell.empty() ? "| " : "| " + cell + " ";
  return row + "|\n";
}

}  // namespace

TEST_CASE("sites.md has a line for each kind of nodes of each shipped site") {
  const std::string file = std::string(DDL_SOURCE_DIR) + "/docs/reference/sites.md";
  auto page = ddl::read_file(file);
  REQUIRE(page);
  std::string expected = "|---|---|---|---|---|---|\n";
  for (const ShippedSite& one : shipped()) {
    if (!one.site.closed.empty()) continue;
    if (one.site.variants.empty()) expected += table_row(one, nullptr);
    for (const auto& variant : one.site.variants) expected += table_row(one, &variant);
  }
  const std::size_t begin = page->find("|---|");
  REQUIRE(begin != std::string::npos);
  // DDL_WRITE_GOLDEN=1 writes the table; check the difference.
  if (std::getenv("DDL_WRITE_GOLDEN") != nullptr) {
    *page = page->substr(0, begin) + expected;
    std::ofstream(file) << *page;
  }
  CHECK(page->substr(begin) == expected);
}
