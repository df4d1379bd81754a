// Where the facts of a profile come from: its documents with their dates, and which of its keys each of them is for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "templates/profile/yaml.h"

namespace ddl::templates {

/// How much of a document was read for the profile.
enum class SourceRead {
  kWhole,
  kPart,    ///< what else it says is not known here
  kQuoted,  ///< nothing: another text quotes it
};

struct SiteSource {
  std::string title;
  std::string url;
  std::string date;  ///< of its text: "2026-08-20", "2026-08" or "2026"
  SourceRead read = SourceRead::kWhole;
  /// Keys, each with all below it: "slurm", "slurm.partition", "g.node" of the variant g, "notes.2" of the second note.
  std::vector<std::string> facts;
};

/// A value of a profile.
struct SiteFact {
  std::string key;  ///< "slurm.partition"
  std::string value;
  const SiteSource* source = nullptr;  ///< null: none is given
};

/// All but names and titles, in the order of the file. Pure. profile: as read_site() accepts it. variant: "" for the
/// whole profile, or only what holds for this one. A fact has the source that names the longest part of its key. The
/// sources must outlive the facts.
std::vector<SiteFact> facts_of(const YamlNode& profile, const std::vector<SiteSource>& sources,
                               std::string_view variant = {});

/// Pure. today: "2026-11-29". A date without a day or a month is the whole month or year.
bool is_older_than_a_year(std::string_view date, std::string_view today);

std::vector<YamlField> source_fields(SiteSource& target);
/// A list of maps with these keys.
YamlReader into_sources(std::vector<SiteSource>& target, std::string_view file);

}  // namespace ddl::templates
