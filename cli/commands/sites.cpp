// --list-sites, and the profile that --site and --show-site name.
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "contract/version.h"

namespace ddl::cli {

templates::SiteCatalog site_catalog(const Environment& environment) {
  return {config_folders(environment, "sites"), read_user_file};
}

Status find_site(Request& request, const templates::SiteCatalog& catalog) {
  if (request.site.empty()) return {};
  DDL_ASSIGN(found, catalog.text_of(request.site));
  DDL_ASSIGN(profile, templates::read_site_profile(found.text, found.file));
  request.text = std::move(found.text);
  request.profile = std::move(profile);
  const affinity::RankOrder order = request.profile->rank_order;
  if (request.has_rank_order || order == affinity::RankOrder::kGpu) return {};
  request.job.binding.rank_order = request.script.request.binding.rank_order = order;
  const std::vector<std::string> words = {"--rank-order", "cpu"};
  request.script.request.ddlrun_options.push_back(words);
  if (request.mpi.options.binding_args.empty())
    request.mpi.rank_options.insert(request.mpi.rank_options.end(), words.begin(), words.end());
  return {};
}

int list_sites(const Request& request, const Environment& environment, const Console& console) {
  const auto sites = site_catalog(environment).list();
  nlohmann::ordered_json report = {{"ddlrun", contract::kVersion}, {"kind", "sites"}};
  auto& rows = report["sites"] = nlohmann::ordered_json::array();
  TextTable table;
  for (const auto& site : sites) {
    rows.push_back({{"name", site.name}, {"title", site.title}, {"file", site.file}});
    table.add({site.name, site.title});
  }
  return console.print(request.json ? report.dump() + "\n" : table.text());
}

}  // namespace ddl::cli
