// Rules for the text of the repository itself.
#include <algorithm>
#include <regex>

#include "base/text.h"
#include "structure/source_tree.h"
#include "support/catch.h"

using ddl::test::SourceFile;

namespace {

const std::vector<SourceFile>& files() {
  static const std::vector<SourceFile> kFiles = ddl::test::project_files(DDL_SOURCE_DIR);
  return kFiles;
}

bool is_binary(const SourceFile& file) { return file.text.find('\0') != std::string::npos; }

/// Lines of the file in which pattern is found, as "path:line: text".
std::vector<std::string> lines_with(const SourceFile& file, const std::regex& pattern) {
  std::vector<std::string> found;
  int number = 0;
  for (const std::string_view line : ddl::split(file.text, '\n')) {
    ++number;
    if (std::regex_search(line.begin(), line.end(), pattern)) {
      found.push_back(file.path + ":" + std::to_string(number) + ": " + std::string(line));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("sources are listed, not globbed") {
  const std::regex glob(R"(file\s*\(\s*GLOB|aux_source_directory)", std::regex::icase);
  int checked = 0;
  for (const SourceFile& file : files()) {
    if (!file.path.ends_with("CMakeLists.txt") && file.extension() != ".cmake") continue;
    ++checked;
    CHECK(lines_with(file, glob) == std::vector<std::string>{});
  }
  CHECK(checked > 5);
}

TEST_CASE("every source is in some CMakeLists.txt") {
  for (const SourceFile& file : files()) {
    if (file.extension() != ".cpp" && file.extension() != ".c") continue;
    // The nearest CMakeLists.txt above it names it by the path from there; a fuzzer is named by its list.
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    const bool named = std::any_of(files().begin(), files().end(), [&](const SourceFile& list) {
      if (!list.path.ends_with("CMakeLists.txt")) return false;
      const std::string folder =
          list.path.substr(0, list.path.size() - std::string_view("CMakeLists.txt").size());
      if (!file.path.starts_with(folder)) return false;
      if (name.starts_with("fuzz_")) {
        return list.text.find("(" + name.substr(5, name.rfind('.') - 5) + " ") != std::string::npos;
      }
      return list.text.find(file.path.substr(folder.size())) != std::string::npos;
    });
    INFO(file.path);
    CHECK(named);
  }
}

TEST_CASE("no text names a place on the machine it was written on") {
  // Split so that this file does not match itself.
  const std::regex place(
      "(^|[^A-Za-z0-9_.$}{-])/"
      "(home|root|Users|work|workspace)/"
      "[A-Za-z0-9_.]");
  for (const SourceFile& file : files()) {
    if (is_binary(file)) continue;
    CHECK(lines_with(file, place) == std::vector<std::string>{});
  }
}

TEST_CASE("text ends with a newline and has no tabs, trailing blanks or carriage returns") {
  const std::regex untidy("[ \\t\\r]+$|^\\t");
  for (const SourceFile& file : files()) {
    const bool is_text = ddl::test::is_code(file) || file.extension() == ".md" ||
                         file.extension() == ".cmake" || file.path.ends_with("CMakeLists.txt") ||
                         file.room() == "scripts";
    if (!is_text || file.text.empty()) continue;
    INFO(file.path);
    CHECK(file.text.back() == '\n');
    CHECK(lines_with(file, untidy) == std::vector<std::string>{});
  }
}
