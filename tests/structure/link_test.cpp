// Links between the project's documents lead to a file that exists, and to a heading or a definition in it.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/text.h"
#include "structure/source_tree.h"
#include "support/catch.h"

using ddl::test::SourceFile;
namespace fs = std::filesystem;

namespace {

/// The anchor that a heading gets: lower case, without punctuation, blanks as dashes.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_kept = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                         c == '_' || (static_cast<unsigned char>(c) & 0x80U) != 0;
    if (c == ' ') anchor += '-';
    if (is_kept) anchor += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return anchor;
}

/// "# A [link](x) and `code`" -> "A link and code"; "" for other lines.
std::string heading_in(std::string_view line) {
  const std::size_t text = line.find_first_not_of('#');
  if (text == 0 || text == std::string_view::npos || line[text] != ' ') return "";
  static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  return std::regex_replace(std::string(line.substr(text + 1)), link, "$1");
}

/// The lines of a page that are not code.
std::vector<std::string_view> prose_of(const SourceFile& page) {
  std::vector<std::string_view> lines;
  bool is_code = false;
  for (const std::string_view line : ddl::split(page.text, '\n')) {
    if (line.starts_with("```")) is_code = !is_code;
    if (!is_code) lines.push_back(line);
  }
  return lines;
}

std::set<std::string> anchors_in(const SourceFile& page) {
  std::set<std::string> anchors;
  for (const std::string_view line : prose_of(page)) {
    if (const std::string heading = heading_in(line); !heading.empty()) anchors.insert(anchor_of(heading));
  }
  return anchors;
}

/// The targets of the links of a page, without those to other sites.
std::vector<std::string> targets_in(const SourceFile& page) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> targets;
  for (const std::string_view line : prose_of(page)) {
    for (auto at = std::cregex_iterator(line.data(), line.data() + line.size(), link);
         at != std::cregex_iterator(); ++at) {
      const std::string target = at->str(1);
      if (target.find("://") == std::string::npos && !target.starts_with("mailto:"))
        targets.push_back(target);
    }
  }
  return targets;
}

}  // namespace

TEST_CASE("no link of a document is dead") {
  const auto files = ddl::test::project_files(DDL_SOURCE_DIR);
  std::map<std::string, std::set<std::string>> pages;  // their anchors
  for (const SourceFile& file : files) {
    if (file.extension() == ".md") pages[file.path] = anchors_in(file);
  }
  int checked = 0;
  for (const SourceFile& file : files) {
    if (file.extension() != ".md") continue;
    for (const std::string& target : targets_in(file)) {
      ++checked;
      INFO(file.path << " -> " << target);
      const std::size_t hash = std::min(target.find('#'), target.size());
      const fs::path to =
          hash == 0 ? fs::path(file.path) : fs::path(file.path).parent_path() / target.substr(0, hash);
      const std::string path = to.lexically_normal().generic_string();
      CHECK(fs::exists(fs::path(DDL_SOURCE_DIR) / path));
      if (hash < target.size() && pages.contains(path))
        CHECK(pages.at(path).contains(target.substr(hash + 1)));
    }
  }
  CHECK(checked > 100);
}
