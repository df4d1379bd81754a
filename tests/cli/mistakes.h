// Tables of command lines that are wrong, and what ddlrun says about them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "support/catch.h"

namespace ddl::test {

struct Mistake {
  std::vector<std::string> words;  ///< after "ddlrun"
  std::string message;             ///< a part of the sentence
  std::string hint;                ///< a part of what to do next
};

struct MistakenFiles {
  std::map<std::string, std::string> texts;      ///< by the name in the command line
  std::map<std::string, std::string> variables;  ///< of the environment
};

/// Reads each command line, and requires a refusal that is one sentence and a hint, without the words
/// of a library.
inline void check_refused(const std::vector<Mistake>& mistakes, const MistakenFiles& files = {}) {
  const auto read = [&files](const std::string& path) -> Result<std::string> {
    const auto found = files.texts.find(path);
    return found == files.texts.end() ? cli::read_user_file(path) : Result<std::string>(found->second);
  };
  cli::CommandLineContext context{"/home/me", 6, "head", read};
  for (const auto& [name, value] : files.variables) context.environment.emplace(name, value);
  for (const Mistake& mistake : mistakes) {
    INFO("ddlrun " << join(mistake.words, " "));
    const auto request = cli::parse_command_line(mistake.words, context);
    CHECK_FALSE(request);
    if (request) continue;
    const Error& error = request.error();
    CHECK_THAT(error.message(), Catch::Contains(mistake.message));
    CHECK_THAT(error.hint(), Catch::Contains(mistake.hint));
    CHECK(error.message().find("yaml-cpp") == std::string::npos);
    CHECK(error.message().find("CLI::") == std::string::npos);
    CHECK_FALSE(error.message().ends_with('.'));
    CHECK(error.hint().size() > 5);
  }
}

}  // namespace ddl::test
