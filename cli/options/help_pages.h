// What ddlrun prints about itself for people, from the table of options: --help and --version; and what its manual page
// has of that. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/options/option_table.h"

namespace ddl::cli {

/// The page of a topic of --help, at most 100 columns wide. "": how ddlrun is used, in 25 lines; "all": every topic.
/// Error: there is no such topic, with those that there are.
Result<std::string> help_text(std::string_view topic = {});
/// "ranks", ..., "all".
std::vector<std::string> help_topics();
/// "ddlrun 0.2.0\n"
std::string version_text();

struct OptionHeading {
  OptionGroup group;
  std::string_view text;
  std::string_view topic;  ///< of --help
};
struct OptionExample {
  std::string_view command;
  std::string_view effect;  ///< "": the command says it
};
/// What --help consists of, beside the table of options.
struct HelpText {
  std::string_view description;
  std::span<const OptionHeading> headings;
  std::string_view exit_codes;
  std::span<const OptionExample> examples;
};
HelpText help_parts();

/// The pages of --manual: ddlrun(1), ddl(3), ddl-hostfile(5), ddl-site(5).
enum class ManualPage { kDdlrun, kLibrary, kHostfile, kSite };
/// "" is the first. Error: the name of no page, with the names that exist.
Result<ManualPage> parse_manual_page(std::string_view name);
/// "ddlrun", "ddl", "ddl-hostfile", "ddl-site".
std::vector<std::string> manual_page_names();

}  // namespace ddl::cli
