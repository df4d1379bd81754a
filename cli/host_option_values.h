// The values of options about hosts and how they are reached: text in, a value or a sentence out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

Result<launcher::MapBy> parse_map_by(std::string_view text);
Result<launcher::LauncherChoice> parse_launcher(std::string_view text);
/// 1 to 65535.
Result<int> parse_port(std::string_view text);
/// A whole number from least to most.
Result<int> parse_count(std::string_view text, int least, int most);
/// An absolute path, meant from current_directory.
Result<std::string> parse_file(std::string_view text, std::string_view current_directory);
/// Words for ssh. Error: quotes that do not match, or no word at all.
Result<std::vector<std::string>> parse_ssh_args(std::string_view text);
/// The words of a command, one of which has %h.
Result<std::vector<std::string>> parse_launch_agent(std::string_view text);
/// An absolute path or a bare name, of letters, digits and "/._-+@:,=": every shell there is takes it as one word.
Result<std::string> parse_remote_path(std::string_view text);
/// Names of interfaces between commas.
Result<std::vector<std::string>> parse_interfaces(std::string_view text);

}  // namespace ddl::cli
