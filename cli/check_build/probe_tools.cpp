#include "cli/check_build/probe_tools.h"

#include <sys/wait.h>

#include <cstdlib>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "cli/command_output.h"
#include "launcher/output/stderr_tail.h"

namespace ddl::cli {

Finding works(std::string version, std::string file, std::string detail) {
  return {true, std::move(version), std::move(file), std::move(detail), {}};
}

Finding fails(std::string detail, std::string remedy) {
  return {false, {}, {}, std::move(detail), std::move(remedy)};
}

Command command_in_path(const std::string& name, const std::string& remedy) {
  const char* path = std::getenv("PATH");
  if (auto file = find_in_path(name, path != nullptr ? path : "/usr/bin:/bin")) return {*std::move(file), {}};
  return {{}, fails("there is no " + name + " in PATH", remedy)};
}

namespace {

/// The first line with words in it: libpmix frames its own with dashes.
std::string first_words(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.find_first_not_of("-=* \t\r") != std::string_view::npos)
      return launcher::printable_line(trim(line));
  }
  return {};
}

}  // namespace

FirstLine first_line_of(const std::vector<std::string>& argv) {
  const auto said = command_output(argv, {}, kCommandPatience);
  if (!said) return {{}, fails(said.error().message())};
  std::string line = first_words(trim(said->out).empty() ? said->err : said->out);
  if (!WIFEXITED(said->wait_status) || WEXITSTATUS(said->wait_status) != 0) {
    const std::string ended = WIFSIGNALED(said->wait_status)
                                  ? "was killed by " + signal_text(WTERMSIG(said->wait_status))
                                  : "exits with " + std::to_string(WEXITSTATUS(said->wait_status));
    return {{}, fails(join(argv, " ") + " " + ended + (line.empty() ? "" : ": " + line))};
  }
  if (line.empty()) return {{}, fails(join(argv, " ") + " prints nothing")};
  return {std::move(line), {}};
}

}  // namespace ddl::cli
