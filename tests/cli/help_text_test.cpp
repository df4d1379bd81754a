#include "cli/options/help_pages.h"
#include "cli/options/option_table.h"

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/foreign_options.h"
#include "contract/version.h"
#include "support/catch.h"

using namespace ddl::cli;

namespace {

std::string page(std::string_view topic) {
  auto text = help_text(topic);
  CAPTURE(topic);
  REQUIRE(text);
  return *std::move(text);
}

/// Calls check with the words behind "ddlrun" of each example on a page, without what the shell takes.
template <class Check>
int for_each_example(const std::string& text, const Check& check) {
  int count = 0;
  for (const auto line : ddl::split(text, '\n')) {
    if (!line.starts_with("  ddlrun ")) continue;
    std::vector<std::string> words;
    // Two blanks separate the command line from its explanation, and "> file" is for the shell.
    const auto command_line = line.substr(9, line.find("  ", 9) - 9);
    for (const auto word : ddl::split(command_line.substr(0, command_line.find(" >")), ' '))
      words.emplace_back(word);
    INFO(line);
    check(words);
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("--help fits a small terminal, and leads to every topic") {
  const std::string first = page("");
  CHECK(ddl::split(first, '\n').size() - 1 <= 25);
  for (const auto line : ddl::split(first, '\n')) CHECK(line.size() <= 100);
  for (const std::string& topic : help_topics()) {
    CHECK_THAT(first, Catch::Contains(topic));
    if (topic != "all" && topic != "markdown") CHECK_THAT(page("all"), Catch::Contains(page(topic)));
  }
  const auto unknown = help_text("hots");
  REQUIRE_FALSE(unknown);
  CHECK_THAT(unknown.error().message(), Catch::Contains("no topic 'hots'; there are ranks, binding, hosts,"));
}

TEST_CASE("--help all shows every option of this version, and no other, in 100 columns") {
  const std::string help = page("all");
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
  const auto is_accepted = [](const std::vector<std::string>& words) {
    // The contents of the files in the examples.
    const auto read_file = [](const std::string& path) -> ddl::Result<std::string> {
      return path == "hosts.txt" ? "node1 slots=8\nnode2 slots=8\n" : "num-proc: 8\nhosts: [a, b]\n";
    };
    const auto request = parse_command_line(words, {"/", 8, "head", read_file});
    INFO((request ? "" : request.error().message()));
    CHECK(request);
  };
  CHECK(for_each_example(page(""), is_accepted) == 3);
  CHECK(for_each_example(page("examples"), is_accepted) == 23);
}

TEST_CASE("--version") { CHECK(version_text() == "ddlrun " + std::string(ddl::contract::kVersion) + "\n"); }
