#include "cli/options/help_pages.h"
#include "cli/options/option_table.h"

#include "base/text.h"
#include "cli/options/foreign_options.h"
#include "cli/options/request.h"
#include "contract/version.h"
#include "support/catch.h"

using namespace ddl::cli;

TEST_CASE("--help shows every option of this version, and no other, in 100 columns") {
  const std::string help = help_text();
  for (const OptionEntry& entry : option_table()) {
    const std::string first(ddl::split(entry.spellings, ',').front());
    INFO(first);
    CHECK_THAT(help, Catch::Contains("\n  " + first));
    CHECK_THAT(help, Catch::Contains(std::string(entry.help)));
  }
  for (const OptionEntry& entry : foreign_options()) {
    const std::string first(ddl::split(entry.spellings, ',').front());
    INFO(first);
    CHECK_THAT(help, !Catch::Contains("\n  " + first + " ") && !Catch::Contains("\n  " + first + ","));
  }
  for (const auto line : ddl::split(help, '\n')) {
    INFO(line);
    CHECK(line.size() <= 100);
  }
}

TEST_CASE("every example of --help is a command line that ddlrun accepts") {
  const std::string help = help_text();
  const std::string_view examples = std::string_view(help).substr(help.find("Examples:\n"));
  int count = 0;
  for (const auto line : ddl::split(examples, '\n')) {
    if (!line.starts_with("  ddlrun ")) continue;
    std::vector<std::string> words;
    // Two blanks separate the command line from its explanation, and "> file" is for the shell.
    const auto command_line = line.substr(9, line.find("  ", 9) - 9);
    for (const auto word : ddl::split(command_line.substr(0, command_line.find(" >")), ' '))
      words.emplace_back(word);
    INFO(line);
    // The contents of the files in the examples.
    const auto read_file = [](const std::string& path) -> ddl::Result<std::string> {
      return path == "hosts.txt" ? "node1 slots=8\nnode2 slots=8\n" : "num-proc: 8\nhosts: [a, b]\n";
    };
    const auto request = parse_command_line(words, {"/", 8, "head", read_file});
    INFO((request ? "" : request.error().message));
    CHECK(request);
    ++count;
  }
  CHECK(count == 21);
}

TEST_CASE("--version") { CHECK(version_text() == "ddlrun " + std::string(ddl::contract::kVersion) + "\n"); }
