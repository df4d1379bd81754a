// Which folder may include which: the table of docs/architecture.md. And which headers are too slow for other headers.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "structure/source_tree.h"
#include "support/catch.h"

using ddl::test::Include;
using ddl::test::project_files;
using ddl::test::SourceFile;

namespace {

// Slow to compile: only a .cpp includes them.
const std::vector<std::string_view> kHeavy = {"nlohmann/json.hpp", "CLI/", "asio", "Eigen/",
                                              "kainjow/",          "mpi.h"};

struct Tree {
  std::vector<SourceFile> files = project_files(DDL_SOURCE_DIR);
  std::set<std::string, std::less<>> paths;
  Tree() {
    for (const SourceFile& file : files) paths.insert(file.path);
    paths.insert("contract/version.h");  // made by CMake
  }
};

const Tree& tree() {
  static const Tree kTree;
  return kTree;
}

bool is_users(const SourceFile& file) {
  return file.room() == "examples" || file.path.starts_with("tests/package/");
}

bool is_public_header(const SourceFile& file) { return file.path.starts_with("runtime/include/"); }

std::string position(const SourceFile& file, const Include& include) {
  return file.path + ":" + std::to_string(include.line) + ": " + std::string(include.name);
}

/// The path of an included file of ours; "" for headers of the system and of other projects.
std::string path_of(const Include& include) {
  const std::string name(include.name);
  for (const char* start : {"", "runtime/include/", "tests/"})
    if (tree().paths.contains(start + name)) return start + name;
  return "";
}

/// Its room; "ddl" for libddl's public headers, "" if it is not ours.
std::string room_of(const Include& include) {
  const std::string path = path_of(include);
  return path.starts_with("runtime/include/") ? "ddl" : path.substr(0, path.find('/'));
}

/// The table "Folders" of docs/architecture.md.
struct Folders {
  std::map<std::string, std::size_t, std::less<>> rows;  ///< folder -> number of its row
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>>
      of_room;  ///< room -> rooms in its row
  /// The folder with the longest name that the file lies in; "" if there is none.
  std::string of(std::string_view path) const {
    for (std::size_t end = path.rfind('/'); end != std::string_view::npos; end = path.rfind('/', end - 1)) {
      if (rows.contains(path.substr(0, end))) return std::string(path.substr(0, end));
      if (end == 0) break;
    }
    return "";
  }
};

const Folders& folders() {
  static const Folders kFolders = [] {
    Folders folders;
    const auto text = std::find_if(tree().files.begin(), tree().files.end(), [](const SourceFile& file) {
      return file.path == "docs/architecture.md";
    });
    const std::regex row("\\| `([a-z_/]+)` \\|[^|]*\\|([^|]*)\\|[^|]*\\|[^|]*\\|[^|]*\\|");
    const std::regex name("`([a-z_/]+)`");
    const std::string empty;
    for (const std::string_view line : ddl::split(text == tree().files.end() ? empty : text->text, '\n')) {
      std::cmatch match;
      if (!std::regex_match(line.begin(), line.end(), match, row)) continue;
      folders.rows.emplace(match[1], folders.rows.size());
      auto& rooms = folders.of_room[match[1]];
      const std::string named = match[2];
      for (auto it = std::sregex_iterator(named.begin(), named.end(), name); it != std::sregex_iterator();
           ++it)
        rooms.insert((*it)[1]);
    }
    return folders;
  }();
  return kFolders;
}

/// The nodes of a graph from which a circle can be reached: what is left when nodes that lead nowhere are taken away, again and
/// again.
std::set<std::string> circles(std::map<std::string, std::set<std::string>> graph) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = graph.begin(); it != graph.end();) {
      std::erase_if(it->second,
                    [&](const std::string& to) { return to == it->first || !graph.contains(to); });
      if (it->second.empty()) {
        it = graph.erase(it);
        changed = true;
      } else {
        ++it;
      }
    }
  }
  std::set<std::string> left;
  for (const auto& [from, to] : graph) left.insert(from);
  return left;
}

}  // namespace

TEST_CASE("there is a tree to look at") {
  CHECK(tree().files.size() > 20);
  CHECK(tree().paths.contains("base/error.h"));
  CHECK(tree().paths.contains("runtime/include/ddl/ddl.h"));
}

TEST_CASE("every file of code lies in a folder of the table in docs/architecture.md") {
  REQUIRE(folders().rows.size() > 20);
  for (const SourceFile& file : tree().files) {
    if (!ddl::test::is_code(file) || file.room() == "tests") continue;
    INFO(file.path);
    CHECK_FALSE(folders().of(file.path).empty());
  }
}

TEST_CASE("rooms include the rooms of their row, and folders of a room those above them") {
  int checked = 0;
  for (const SourceFile& file : tree().files) {
    if (!ddl::test::is_code(file) || file.room() == "tests") continue;
    const std::string from = folders().of(file.path);
    for (const Include& include : ddl::test::includes_of(file)) {
      const std::string path = path_of(include);
      if (path.empty() || room_of(include) == "ddl") continue;
      INFO(position(file, include));
      const std::string to = folders().of(path);
      if (room_of(include) == file.room()) {
        CHECK(folders().rows.at(to) <= folders().rows.at(from));
      } else {
        CHECK(folders().of_room.at(std::string(file.room())).contains(room_of(include)));
      }
      ++checked;
    }
  }
  CHECK(checked > 20);
}

TEST_CASE("neither headers nor folders include each other in a circle") {
  std::map<std::string, std::set<std::string>> of_headers, of_folders;
  for (const SourceFile& file : tree().files) {
    if (!ddl::test::is_code(file)) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      const std::string path = path_of(include);
      if (path.empty()) continue;
      if (ddl::test::is_header(file)) of_headers[file.path].insert(path);
      if (file.room() == "tests") continue;
      of_folders[file.path.substr(0, file.path.rfind('/'))].insert(path.substr(0, path.rfind('/')));
    }
  }
  CHECK(of_folders.size() > 20);
  CHECK(circles(of_headers) == std::set<std::string>());
  CHECK(circles(of_folders) == std::set<std::string>());
  CHECK(circles({{"a", {"b"}}, {"b", {"c", "b"}}, {"c", {"b"}}, {"d", {}}}) ==
        std::set<std::string>{"a", "b", "c"});
}

TEST_CASE("a quoted include is ours and names its room") {
  for (const SourceFile& file : tree().files) {
    // Examples, and the outside project of the package test, are written as any user's program: their own files
    // by name, libddl by <ddl/...>.
    if (!ddl::test::is_code(file) || is_users(file)) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      if (!include.quoted) continue;
      INFO(position(file, include));
      CHECK_FALSE(room_of(include).empty());
    }
  }
}

TEST_CASE("what users write is complete in its own folder") {
  int checked = 0;
  for (const SourceFile& file : tree().files) {
    if (!ddl::test::is_code(file) || !is_users(file)) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      INFO(position(file, include));
      const std::string beside = file.path.substr(0, file.path.rfind('/') + 1) + std::string(include.name);
      if (include.quoted) CHECK(tree().paths.contains(beside));
      if (!include.quoted) CHECK((room_of(include).empty() || room_of(include) == "ddl"));
      ++checked;
    }
  }
  CHECK(checked > 3);
}

TEST_CASE("public headers include the standard library and each other, nothing else") {
  for (const SourceFile& file : tree().files) {
    if (!is_public_header(file)) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      INFO(position(file, include));
      const bool standard = !include.quoted && include.name.find('/') == std::string_view::npos;
      CHECK((standard || room_of(include) == "ddl"));
    }
  }
}

TEST_CASE("what is compiled for newer processors includes nothing of the standard library") {
  // Its inline functions would be emitted there too, and the linker may keep those for all (collective/kernel/kernels.h).
  constexpr std::string_view kFolder = "runtime/src/collective/kernel/";
  const std::set<std::string_view> others = {"cstddef", "cstdint", "immintrin.h", "arm_neon.h", "ddl/ddl.h"};
  int checked = 0;
  for (const SourceFile& file : tree().files) {
    if (!file.path.starts_with(kFolder)) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      INFO(position(file, include));
      CHECK((include.name.starts_with(kFolder) || others.contains(include.name)));
      ++checked;
    }
  }
  CHECK(checked > 10);
}

TEST_CASE("no header of a room is heavy") {
  for (const SourceFile& file : tree().files) {
    if (!ddl::test::is_header(file) || is_users(file)) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      INFO(position(file, include));
      CHECK(std::none_of(kHeavy.begin(), kHeavy.end(),
                         [&](std::string_view heavy) { return include.name.starts_with(heavy); }));
    }
  }
}
