#include "templates/profile/site_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace ddl::templates {
namespace {

using Kind = YamlNode::Kind;

constexpr std::size_t kMaxSources = 256;
/// Of the profile and of a variant: names and texts that are no facts about the site.
constexpr std::string_view kNoFacts[] = {"name", "title", "default-variant", "sources", "variants"};

/// "2026", "2026-08" or "2026-08-20".
Result<std::string> source_date(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-dd", kMonth = "dddd-dd", kYear = "dddd";
  const bool is_date =
      (text.size() == kForm.size() || text.size() == kMonth.size() || text.size() == kYear.size()) &&
      std::equal(text.begin(), text.end(), kForm.begin(),
                 [](char c, char form) { return form == 'd' ? c >= '0' && c <= '9' : c == form; });
  if (!is_date) return refuse("'" + text + "' is no date: 2026-08-20, 2026-08 or 2026");
  return text;
}

/// Whether the key is that of the fact, or of a map that has it.
bool covers(std::string_view key, std::string_view fact) {
  return fact.starts_with(key) && (fact.size() == key.size() || fact[key.size()] == '.');
}

const SiteSource* source_of(std::string_view fact, const std::vector<SiteSource>& sources) {
  const SiteSource* nearest = nullptr;
  std::size_t length = 0;
  for (const SiteSource& source : sources) {
    for (const std::string& key : source.facts) {
      if (!covers(key, fact) || key.size() <= length) continue;
      nearest = &source;
      length = key.size();
    }
  }
  return nearest;
}

/// "[3, 1]" of a list.
std::string list_text(const YamlNode& list) {
  std::vector<std::string> items;
  for (const YamlNode& item : list.items) items.push_back(item.text);
  return join(items, ", ");
}

void add_facts(const YamlNode& node, const std::string& key, std::vector<SiteFact>& facts) {
  const bool is_of_notes = key == "notes" || key.ends_with(".notes");
  if (node.kind == Kind::kScalar) facts.push_back({key, node.text});
  if (node.kind == Kind::kSequence && !is_of_notes) facts.push_back({key, list_text(node)});
  if (node.kind == Kind::kSequence && is_of_notes) {
    for (std::size_t i = 0; i < node.items.size(); ++i)
      facts.push_back({key + "." + std::to_string(i + 1), node.items[i].text});
  }
  if (node.kind != Kind::kMap) return;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2)
    add_facts(node.items[i + 1], key + "." + node.items[i].text, facts);
}

/// Of the profile, or of a variant, whose keys begin with its name and a ".".
void add_profile(const YamlNode& map, const std::string& prefix, std::vector<SiteFact>& facts) {
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const std::string& key = map.items[i].text;
    if (std::find(std::begin(kNoFacts), std::end(kNoFacts), key) == std::end(kNoFacts))
      add_facts(map.items[i + 1], prefix + key, facts);
  }
}

/// Whether a variant, whose keys begin with prefix, has something in place of the profile's fact. A node is replaced as a
/// whole, and notes are added.
bool is_replaced(const std::string& key, const std::string& prefix, const std::vector<SiteFact>& facts) {
  constexpr std::string_view kNode = "node.";
  if (key.starts_with("notes.")) return false;
  const std::string own = prefix + (key.starts_with(kNode) ? std::string(kNode) : key);
  return std::any_of(facts.begin(), facts.end(), [&](const SiteFact& one) {
    return own.ends_with('.') ? one.key.starts_with(own) : one.key == own;
  });
}

}  // namespace

std::vector<SiteFact> facts_of(const YamlNode& profile, const std::vector<SiteSource>& sources,
                               std::string_view variant) {
  std::vector<SiteFact> facts;
  add_profile(profile, "", facts);
  for (std::size_t i = 0; i + 1 < profile.items.size(); i += 2) {
    if (profile.items[i].text != "variants") continue;
    const YamlNode& variants = profile.items[i + 1];
    for (std::size_t j = 0; j + 1 < variants.items.size(); j += 2) {
      const std::string& name = variants.items[j].text;
      if (variant.empty() || name == variant) add_profile(variants.items[j + 1], name + ".", facts);
    }
  }
  if (!variant.empty()) {
    const auto replaced = [&, all = facts](const SiteFact& fact) {
      return is_replaced(fact.key, std::string(variant) + ".", all);
    };
    std::erase_if(facts, replaced);
  }
  for (SiteFact& fact : facts) fact.source = source_of(fact.key, sources);
  return facts;
}

bool is_older_than_a_year(std::string_view date, std::string_view today) {
  const auto year = parse_integer(today.substr(0, 4));
  if (!year) return false;
  const std::string last = std::to_string(*year - 1) + std::string(today.substr(4));
  return date < std::string_view(last).substr(0, date.size());
}

std::vector<YamlField> source_fields(SiteSource& target) {
  return {
      {"title", into(target.title), "whose text it is, and its heading", ""},
      {"url", into(target.url), "where it is", ""},
      {"date", into("date: `2026-08-20`, `2026-08`, `2026`", target.date, source_date),
       "of its text, or when it was read if the text has no date", ""},
      {"read",
       into_choice(
           target.read,
           {{"whole", SourceRead::kWhole}, {"part", SourceRead::kPart}, {"quoted", SourceRead::kQuoted}}),
       "how much of it was read; `quoted`: only what another text quotes", "`whole`"},
      {"facts", into(target.facts),
       "which keys of the profile it is the source of, each with all below it: `slurm`, `slurm.partition`; "
       "`g.node` of the variant `g`, `notes.2` of the second note. The longest one counts",
       ""},
  };
}

YamlReader into_sources(std::vector<SiteSource>& target, std::string_view file) {
  return {"list of maps, below", [&target, file](const YamlNode& list) -> Status {
            if (list.kind != Kind::kSequence || list.items.size() > kMaxSources)
              return refuse("it takes a list of documents, each with title, url, date and facts");
            for (const YamlNode& item : list.items)
              DDL_TRY(read_fields(item, file, source_fields(target.emplace_back())));
            return {};
          }};
}

}  // namespace ddl::templates
