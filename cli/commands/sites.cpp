// --list-sites, --explain, and the profile that --site and --show-site name.
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "contract/version.h"

namespace ddl::cli {

templates::SiteCatalog site_catalog(const Environment& environment) {
  return {config_folders(environment, "sites"), read_user_file};
}

templates::NodeRequest requested_nodes(const Request& request) {
  if (request.action != Action::kScript)
    return {request.allocation.job ? request.allocation.job->partition : "", "", ""};
  const templates::ScriptRequest& script = request.script.request;
  return {script.partition, script.constraint, script.qos};
}

Status find_site(Request& request, const templates::SiteCatalog& catalog,
                 const templates::NodeRequest& nodes) {
  if (request.site.empty()) return {};
  DDL_ASSIGN(found, catalog.text_of(request.site));
  DDL_ASSIGN(site, templates::read_site(found.text, found.file));
  request.text = std::move(found.text);
  if (!site.closed.empty() && request.action != Action::kShowSite && request.action != Action::kExplainSite)
    return fail(ErrorCode::kUnavailable, "there is no profile of " + request.site + ": " + site.closed);
  request.profile = templates::profile_of(site, nodes, found.variant);
  if (!request.script.request.container.image.empty()) templates::leave_to_containers(request.profile->setup);
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

namespace {

/// "2026-11-29" in UTC.
std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm day{};
  std::array<char, 16> text{};
  if (::gmtime_r(&now, &day) == nullptr) return "";
  return {text.data(), std::strftime(text.data(), text.size(), "%F", &day)};
}

std::string_view word_of(templates::SourceRead read) {
  switch (read) {
    case templates::SourceRead::kWhole: return "whole";
    case templates::SourceRead::kPart: return "part";
    case templates::SourceRead::kQuoted: return "quoted";
  }
  return "";
}

/// "2024-10, more than a year ago; read in part".
std::string date_text(const templates::SiteSource& source, const std::string& day) {
  std::string text = source.date;
  if (templates::is_older_than_a_year(source.date, day)) text += ", more than a year ago";
  if (source.read == templates::SourceRead::kPart) text += "; read in part";
  if (source.read == templates::SourceRead::kQuoted) text += "; as another text quotes it";
  return text;
}

using templates::SiteFact;
using templates::SiteSource;

std::string explanation_json(const Request& request, const std::vector<SiteFact>& facts,
                             const std::string& day) {
  nlohmann::ordered_json report = {{"ddlrun", contract::kVersion}, {"kind", "site"}, {"site", request.site}};
  auto& rows = report["facts"] = nlohmann::ordered_json::array();
  for (const SiteFact& fact : facts) {
    nlohmann::ordered_json row = {{"key", fact.key}, {"value", fact.value}};
    if (fact.source != nullptr) {
      row["title"] = fact.source->title;
      row["url"] = fact.source->url;
      row["date"] = fact.source->date;
      row["old"] = templates::is_older_than_a_year(fact.source->date, day);
      row["read"] = word_of(fact.source->read);
    }
    rows.push_back(std::move(row));
  }
  return report.dump() + "\n";
}

/// A line for each fact, with the number of its source; then the sources.
std::string explanation_text(const std::vector<SiteFact>& facts, const std::string& day) {
  TextTable table;
  std::vector<const SiteSource*> used;
  for (const SiteFact& fact : facts) {
    if (fact.source == nullptr) {
      table.add({fact.key, "", "without a source"}, fact.value);
      continue;
    }
    const auto known = std::find(used.begin(), used.end(), fact.source);
    const std::size_t number = known - used.begin() + 1;
    if (known == used.end()) used.push_back(fact.source);
    table.add({fact.key, "[" + std::to_string(number) + "]", date_text(*fact.source, day)}, fact.value);
  }
  std::string text = table.text();
  for (std::size_t i = 0; i < used.size(); ++i) {
    text += (i == 0 ? "\n[" : "[") + std::to_string(i + 1) + "] " + used[i]->title + ", " +
            date_text(*used[i], day) + ": " + used[i]->url + "\n";
  }
  return text;
}

}  // namespace

int explain_site(const Request& request, const Environment& environment, const Console& console) {
  const auto found = site_catalog(environment).text_of(request.site);
  if (!found) return console.refuse(Error(found.error()).with_hint(kSitesHint));
  const auto site = templates::read_site(found->text, found->file);
  if (!site) return console.refuse(site.error());
  const auto tree = templates::parse_yaml(found->text, found->file);
  if (!tree) return console.refuse(tree.error());
  const auto facts = templates::facts_of(*tree, site->sources, found->variant);
  const std::string day = today();
  return console.print(request.json ? explanation_json(request, facts, day) : explanation_text(facts, day));
}

}  // namespace ddl::cli
