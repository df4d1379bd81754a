// Rules for the text of the repository itself.
#include <algorithm>
#include <cstdint>
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

/// Lines of the file in which pattern is found, as "path:line: text". hints: every such line contains one of these
/// texts; only lines with a hint are searched, because a regular expression is slow.
std::vector<std::string> lines_with(const SourceFile& file, const std::regex& pattern,
                                    const std::vector<std::string_view>& hints) {
  std::vector<std::string> found;
  int number = 0;
  for (const std::string_view line : ddl::split(file.text, '\n')) {
    ++number;
    const bool may_match = std::any_of(hints.begin(), hints.end(), [line](std::string_view hint) {
      return line.find(hint) != std::string_view::npos;
    });
    if (may_match && std::regex_search(line.begin(), line.end(), pattern)) {
      found.push_back(file.path + ":" + std::to_string(number) + ": " + std::string(line));
    }
  }
  return found;
}

bool is_cmake(const SourceFile& file) {
  return file.path.ends_with("CMakeLists.txt") || file.extension() == ".cmake";
}

/// Unicode characters, not bytes, of valid UTF-8.
std::int64_t characters(std::string_view line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

/// True if the CMakeLists.txt names the source: by its relative path, or with a variable, as in
/// "foreach(name flood echo) ... programs/${name}.c".
bool is_listed(const SourceFile& list, const std::string& source) {
  constexpr std::string_view kName = "CMakeLists.txt";
  if (!list.path.ends_with(kName)) return false;
  const std::string folder = list.path.substr(0, list.path.size() - kName.size());
  if (!source.starts_with(folder)) return false;
  const std::string path = source.substr(folder.size());
  if (list.text.find(path) != std::string::npos) return true;
  static const std::regex with_variable(R"(([\w/.-]*)\$\{\w+\})");
  const std::string stem = path.substr(0, path.rfind('.'));
  for (auto it = std::sregex_iterator(list.text.begin(), list.text.end(), with_variable);
       it != std::sregex_iterator(); ++it) {
    const std::string before = it->str(1);
    if (before.empty() || !stem.starts_with(before)) continue;
    if (std::regex_search(list.text, std::regex("\\b" + stem.substr(before.size()) + "\\b"))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("sources are listed, not globbed") {
  const std::regex glob(R"(file\s*\(\s*GLOB|aux_source_directory)", std::regex::icase);
  int checked = 0;
  for (const SourceFile& file : files()) {
    if (!is_cmake(file)) continue;
    ++checked;
    CHECK(lines_with(file, glob, {"GLOB", "glob", "Glob", "aux_source_directory", "AUX_SOURCE_DIRECTORY"}) ==
          std::vector<std::string>{});
  }
  CHECK(checked > 5);
}

TEST_CASE("every source is listed in a CMakeLists.txt") {
  for (const SourceFile& file : files()) {
    if (file.extension() != ".cpp" && file.extension() != ".c") continue;
    INFO(file.path);
    CHECK(std::any_of(files().begin(), files().end(),
                      [&](const SourceFile& list) { return is_listed(list, file.path); }));
  }
}

TEST_CASE("functions of <cctype> get no char that may be negative") {
  const std::regex plain(
      R"(\bstd::(is(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|to(lower|upper)))"
      R"(\((?!static_cast<unsigned char>\())");
  for (const SourceFile& file : files()) {
    if (file.extension() != ".cpp" && file.extension() != ".h" && file.extension() != ".hpp") continue;
    CHECK(lines_with(file, plain, {"std::is", "std::to"}) == std::vector<std::string>{});
  }
}

TEST_CASE("no file contains a path of the machine that it was written on") {
  // Split so that this file does not match itself. The user of examples is "me"; the others are logins of the tests'
  // cluster.
  const std::regex place(
      "(^|[^A-Za-z0-9_.$}{-])/"
      "(home/(?!(me|ada|plain|shared|late|noisy|flood|hang)\\b)|root/|Users/|work/|workspace/)"
      "[A-Za-z0-9_.]");
  for (const SourceFile& file : files()) {
    if (is_binary(file)) continue;
    CHECK(lines_with(file, place, {"home", "root", "Users", "work"}) == std::vector<std::string>{});
  }
}

TEST_CASE("text ends with a newline and has no tabs, trailing blanks or carriage returns") {
  for (const SourceFile& file : files()) {
    const bool is_text = ddl::test::is_code(file) || file.extension() == ".md" || is_cmake(file) ||
                         file.component() == "scripts";
    if (!is_text || file.text.empty()) continue;
    INFO(file.path);
    CHECK(file.text.back() == '\n');
    int number = 0;
    for (const std::string_view line : ddl::split(file.text, '\n')) {
      ++number;
      const bool is_tidy =
          line.empty() ||
          (line.front() != '\t' && std::string_view(" \t\r").find(line.back()) == std::string_view::npos);
      if (!is_tidy) FAIL_CHECK(file.path << ":" << number << ": " << line);
    }
  }
}

TEST_CASE("no line of CMake, or of Markdown outside tables and code, is longer than 120 columns") {
  for (const SourceFile& file : files()) {
    const bool is_markdown = file.extension() == ".md";
    if (!is_markdown && !is_cmake(file)) continue;
    bool is_code = false;
    int number = 0;
    for (const std::string_view line : ddl::split(file.text, '\n')) {
      ++number;
      const std::string_view text = ddl::trim(line);
      const bool is_fence = is_markdown && text.starts_with("```");
      if (is_fence) is_code = !is_code;
      const bool is_free = is_fence || is_code || (is_markdown && text.starts_with('|'));
      if (!is_free && characters(line) > 120) FAIL_CHECK(file.path << ":" << number << ": " << line);
    }
  }
}
