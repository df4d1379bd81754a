#include "cli/host_option_values.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/option_values.h"
#include "cli/shell_words.h"

namespace ddl::cli {

namespace {

using launcher::LauncherChoice;
using launcher::MapBy;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

Result<MapBy> parse_map_by(std::string_view text) {
  if (text == "slot") return MapBy::kSlot;
  if (text == "node") return MapBy::kNode;
  if (text.starts_with("ppr:")) return refuse(in_quotes(text) + " is mpirun's; use --ranks-per-node N");
  return refuse(in_quotes(text) + " is none of slot, node");
}

Result<LauncherChoice> parse_launcher(std::string_view text) {
  if (text == "auto") return LauncherChoice::kAuto;
  if (text == "local") return LauncherChoice::kLocal;
  if (text == "ssh") return LauncherChoice::kSsh;
  if (text == "srun") return LauncherChoice::kSrun;
  if (text == "mpirun") return LauncherChoice::kMpirun;
  return refuse(in_quotes(text) + " is none of auto, local, ssh, srun, mpirun");
}

Result<int> parse_port(std::string_view text) {
  constexpr int kLargestPort = 65535;
  return parse_count(text, 1, kLargestPort);
}

Result<int> parse_count(std::string_view text, int least, int most) {
  const bool whole = !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  const auto number = whole ? parse_integer(text) : std::nullopt;
  if (!number || *number < least || *number > most) {
    return refuse(in_quotes(text) + " is not a whole number from " + std::to_string(least) + " to " +
                  std::to_string(most));
  }
  return static_cast<int>(*number);
}

Result<std::string> parse_file(std::string_view text, std::string_view current_directory) {
  if (text.empty()) return refuse("the name of the file is empty");
  return (std::filesystem::path(current_directory) / text).string();
}

Result<std::vector<std::string>> parse_ssh_args(std::string_view text) {
  auto words = split_shell_words(text);
  if (!words) return fail(std::move(words.error()).during(in_quotes(text)));
  if (words->empty()) return refuse("there is no word in it");
  return words;
}

Result<std::vector<std::string>> parse_launch_agent(std::string_view text) {
  auto words = parse_ssh_args(text);
  if (!words) return words;
  if (words->front().empty()) return refuse("the command is an empty word");
  const bool has_host = std::any_of(words->begin(), words->end(), [](const std::string& word) {
    return word.find("%h") != std::string::npos;
  });
  if (!has_host) return refuse(in_quotes(text) + " does not say with %h where the host's name stands");
  return words;
}

Result<std::string> parse_remote_path(std::string_view text) {
  constexpr std::string_view kPlain = "/._-+@:,=";
  const bool plain = std::all_of(text.begin(), text.end(), [kPlain](char c) {
    return is_alphanumeric(c) || kPlain.find(c) != std::string_view::npos;
  });
  if (text.empty() || !plain) {
    return refuse(in_quotes(text) + " is not a path of letters, digits and \"" + std::string(kPlain) + "\"");
  }
  if (text.starts_with('-')) return refuse(in_quotes(text) + " begins with a dash");
  if (!text.starts_with('/') && text.find('/') != std::string_view::npos) {
    return refuse(in_quotes(text) + " is neither an absolute path nor a bare name");
  }
  return std::string(text);
}

Result<std::vector<std::string>> parse_interfaces(std::string_view text) {
  constexpr std::size_t kLongestName = 15;  // IFNAMSIZ less its zero
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trim(part);
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '/' && c != ':' && c != '\x7f';
    });
    if (name.empty() || name.size() > kLongestName || !plain) {
      return refuse(in_quotes(name) + " is not the name of a network interface");
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

}  // namespace ddl::cli
