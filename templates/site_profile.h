// What is known of a site: its nodes, how ranks are bound there, and how its Slurm is asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/plan/binding_policy.h"
#include "affinity/source/node_model.h"
#include "base/error.h"
#include "templates/site_slurm.h"

namespace ddl::templates {

struct SiteProfile {
  std::string name;   ///< "lumi-g": as --site has it
  std::string title;  ///< "LUMI-G, HPE Cray EX with MI250X": for a person
  /// Of a whole node; nothing where nobody has published enough.
  std::optional<affinity::NodeModel> node;
  /// What the site advises; options of the user's win.
  affinity::RankOrder rank_order = affinity::RankOrder::kGpu;
  SiteSlurm slurm;
  SiteSetup setup;
  std::vector<std::string> notes;  ///< sentences: what is not known, and what a user should know
};

/// From YAML as docs/reference/site-schema.md has it. Pure. file: what errors call the text. Error kInvalidArgument, with
/// file and line: no YAML, an unknown key, a value of the wrong kind, or a node that cannot be.
Result<SiteProfile> read_site_profile(std::string_view text, std::string_view file);

}  // namespace ddl::templates
