// The sites that ddlrun knows here: its own, the host's and the user's.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "launcher/job/environment.h"
#include "templates/profile/site_profile.h"

namespace ddl::cli {

/// The profile of a site by name or file; nullopt for "". Error: it is not known or not right, and where.
Result<std::optional<templates::SiteProfile>> known_site(const std::string& name,
                                                         const launcher::Environment& environment);

/// --list-sites: names and titles. Returns ddlrun's exit code.
int list_sites(const Request& request, const launcher::Environment& environment, const Console& console);
/// --show-site: a profile, as its file has it. Returns ddlrun's exit code.
int show_site(const Request& request, const launcher::Environment& environment, const Console& console);

/// What to do about a site that is not known.
inline constexpr char kSitesHint[] = "ddlrun --list-sites lists them";

}  // namespace ddl::cli
