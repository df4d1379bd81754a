// The documents show what ddlrun prints: commands whose output depends on no machine are run, and their output is
// compared with the document's. The pictures that ddlrun draws are compared, too.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/program_run.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

struct Shown {
  std::string document;
  std::string command;
  Lines output;  ///< "...": any lines
};

/// Only planned or written, and for a machine that the command names.
bool is_same_everywhere(const std::string& command) {
  const auto has = [&command](const char* words) { return command.find(words) != std::string::npos; };
  if (!command.starts_with("ddlrun ") || has("--submit") || has("--probe")) return false;
  return has("--dry-run") || has("--slurm") || has("--show-bind") || has("--show-topology");
}

/// What stands in the blocks of a document: "$ command", and below it what the command prints.
std::vector<Shown> shown_in(const fs::path& document) {
  std::vector<Shown> all;
  std::ifstream in(document);
  bool in_block = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block && line.starts_with("```console");
      if (in_block) all.push_back({document.filename(), "", {}});
    } else if (in_block && line.starts_with("$ ")) {
      all.push_back({document.filename(), line.substr(2), {}});
    } else if (in_block) {
      all.back().output.push_back(line);
    }
  }
  return all;
}

/// The first line of the document that the output does not have at its place; "": all are there.
std::string missing_line(const Lines& shown, const Lines& printed) {
  auto at = printed.begin();
  bool anywhere = false;
  for (const std::string& line : shown) {
    if (line == "...") {
      anywhere = true;
      continue;
    }
    at = anywhere ? std::find(at, printed.end(), line) : at;
    if (at == printed.end() || *at != line) return line;
    ++at;
    anywhere = false;
  }
  return "";
}

Lines printed_by(const std::string& command) {
  ddl::test::ProgramSetup setup;
  setup.argv = {
      "/bin/sh", "-c",
      "PATH=" + fs::path(DDLRUN_PATH).parent_path().string() + ":$PATH; { " + command + "\n} 2>/dev/null"};
  const std::string printed = ddl::test::run_program(setup).out;
  Lines lines;
  for (const std::string_view line : ddl::split(printed, '\n')) lines.emplace_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the documents show what ddlrun prints") {
  int compared = 0;
  for (const char* folder : {"", "/docs/guide", "/docs/reference"}) {
    for (const auto& entry : fs::directory_iterator(std::string(DDL_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".md") continue;
      for (const Shown& one : shown_in(entry.path())) {
        if (one.output.empty() || !is_same_everywhere(one.command)) continue;
        CAPTURE(one.document, one.command);
        CHECK(missing_line(one.output, printed_by(one.command)) == "");
        ++compared;
      }
    }
  }
  CHECK(compared >= 5);
}

TEST_CASE("the pictures in the guide are those that ddlrun draws") {
  const ddl::test::TemporaryDirectory folder;
  ddl::test::ProgramSetup setup;
  setup.argv = {DDL_SOURCE_DIR "/scripts/draw-pictures", fs::path(DDLRUN_PATH).parent_path(), folder.path()};
  const auto run = ddl::test::run_program(setup);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    CAPTURE(entry.path().filename());
    const auto drawn = ddl::read_file(entry.path());
    const auto shown = ddl::read_file(DDL_SOURCE_DIR "/docs/guide/" + entry.path().filename().string());
    REQUIRE(drawn);
    REQUIRE(shown);
    CHECK((*drawn == *shown));  // without printing them
    ++compared;
  }
  CHECK(compared == 2);
}
