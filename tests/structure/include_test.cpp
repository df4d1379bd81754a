// Which room may include which (docs/architecture.md), and what a header may cost whoever includes it.
#include <algorithm>
#include <map>
#include <set>

#include "structure/source_tree.h"
#include "support/catch.h"

using ddl::test::Include;
using ddl::test::project_files;
using ddl::test::SourceFile;

namespace {

// "ddl" stands for libddl's public headers in runtime/include/ddl. A new room is added here and in the architecture.
const std::map<std::string, std::set<std::string>, std::less<>> kMayInclude = {
    {"contract", {"contract"}},
    {"base", {"base", "contract"}},
    {"net", {"net", "base", "contract"}},
    {"affinity", {"affinity", "base", "contract"}},
    {"templates", {"templates", "affinity", "base", "contract"}},
    {"launcher", {"launcher", "affinity", "net", "base", "contract"}},
    {"cli", {"cli", "launcher", "templates", "affinity", "net", "base", "contract"}},
    {"runtime", {"runtime", "ddl", "net", "base", "contract"}},
    {"examples", {"examples", "ddl"}},
    {"bench", {"bench", "ddl", "affinity", "base", "contract"}},
    {"tests",
     {"tests", "bench", "examples", "cli", "launcher", "templates", "affinity", "runtime", "ddl", "net",
      "base", "contract"}},
};

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

/// The room of an include of ours, "" if it is none: system and third-party headers.
std::string room_of(const Include& include) {
  const std::string name(include.name);
  if (tree().paths.contains(name)) return name.substr(0, name.find('/'));
  if (tree().paths.contains("runtime/include/" + name)) return "ddl";
  if (tree().paths.contains("tests/" + name)) return "tests";
  return "";
}

}  // namespace

TEST_CASE("there is a tree to look at") {
  CHECK(tree().files.size() > 20);
  CHECK(tree().paths.contains("base/error.h"));
  CHECK(tree().paths.contains("runtime/include/ddl/ddl.h"));
}

TEST_CASE("every file of code lies in a room that has include rules") {
  for (const SourceFile& file : tree().files) {
    if (!ddl::test::is_code(file)) continue;
    INFO(file.path);
    CHECK(kMayInclude.contains(file.room()));
  }
}

TEST_CASE("rooms include only what they may") {
  int checked = 0;
  for (const SourceFile& file : tree().files) {
    const auto rule = kMayInclude.find(file.room());
    if (!ddl::test::is_code(file) || rule == kMayInclude.end()) continue;
    for (const Include& include : ddl::test::includes_of(file)) {
      const std::string room = room_of(include);
      if (room.empty()) continue;
      INFO(position(file, include));
      CHECK(rule->second.contains(room));
      ++checked;
    }
  }
  CHECK(checked > 20);
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
