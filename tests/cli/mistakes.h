// Tables of command lines that are wrong, and what ddlrun says about them.
#pragma once

#include <map>
#include <string>
#include <vector>

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

/// Reads each command line, and requires a refusal with exit code 2 that is one sentence and a hint, without the words
/// of a library.
void check_refused(const std::vector<Mistake>& mistakes, const MistakenFiles& files = {});

}  // namespace ddl::test
