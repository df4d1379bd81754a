// --list-sites, --show-site, and the profile that --site names.
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "contract/version.h"
#include "templates/profile/site_catalog.h"

namespace ddl::cli {

namespace {

templates::SiteCatalog catalog(const Environment& environment) {
  return {config_folders(environment, "sites"), read_user_file};
}

}  // namespace

Result<std::optional<templates::SiteProfile>> known_site(const std::string& name,
                                                         const Environment& environment) {
  if (name.empty()) return std::nullopt;
  DDL_ASSIGN(found, catalog(environment).find(name));
  return found;
}

int list_sites(const Request& request, const Environment& environment, const Console& console) {
  const auto sites = catalog(environment).list();
  nlohmann::ordered_json report = {{"ddlrun", contract::kVersion}, {"kind", "sites"}};
  auto& rows = report["sites"] = nlohmann::ordered_json::array();
  TextTable table;
  for (const auto& site : sites) {
    rows.push_back({{"name", site.name}, {"title", site.title}, {"file", site.file}});
    table.add({site.name, site.title});
  }
  return console.print(request.json ? report.dump() + "\n" : table.text());
}

int show_site(const Request& request, const Environment& environment, const Console& console) {
  const auto text = catalog(environment).text_of(request.script.site);
  if (!text) return console.refuse(text.error().with_hint(kSitesHint));
  // A file that is no profile, such as a program, is not for a terminal.
  const auto profile = templates::read_site_profile(text->text, text->file);
  if (!profile) return console.refuse(profile.error().with_hint(kSitesHint));
  return console.print(text->text);
}

}  // namespace ddl::cli
