// The keys of the sections "slurm" and "setup" of a profile: each with the reader of its value, and what documents say
// of it.
#pragma once

#include <string_view>
#include <vector>

#include "templates/profile/site_profile.h"
#include "templates/profile/yaml.h"

namespace ddl::templates {

/// The fields refer to the target, and to file: what errors call the text. A variable that the target has already gets
/// the new value.
std::vector<YamlField> slurm_fields(SiteSlurm& target);
std::vector<YamlField> setup_fields(SiteSetup& target, std::string_view file);
std::vector<YamlField> needed_fields(NeededEnvironment& target);

}  // namespace ddl::templates
