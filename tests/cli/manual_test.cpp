// What the manual pages are made of agrees with the code: the list of options, and tables of docs/reference.
#include <array>
#include <regex>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "cli/options/help_pages.h"
#include "cli/options/option_table.h"
#include "launcher/job/host_list.h"
#include "support/catch.h"
#include "templates/profile/site_profile.h"

using Catch::Contains;

namespace {

std::string source_file(const std::string& path) {
  const auto text = ddl::read_file(std::string(DDL_SOURCE_DIR) + "/" + path);
  INFO(path);
  REQUIRE(text);
  return *text;
}

/// A document below a heading, up to the next one of its level.
std::string part_of(const std::string& document, const std::string& heading) {
  const std::size_t begin = document.find("\n" + heading + "\n");
  INFO(heading);
  REQUIRE(begin != std::string::npos);
  return document.substr(begin,
                         document.find("\n" + heading.substr(0, heading.find(' ') + 1), begin + 1) - begin);
}

/// The first two cells of each row of its tables, without the headings.
std::vector<std::array<std::string, 2>> rows_of(const std::string& part) {
  std::vector<std::array<std::string, 2>> rows;
  const std::regex row(R"(\n\| (`[^|]*) \| ?([^|]*?) ?\|)");
  for (auto it = std::sregex_iterator(part.begin(), part.end(), row); it != std::sregex_iterator(); ++it)
    rows.push_back({(*it)[1], (*it)[2]});
  return rows;
}

std::vector<std::string> code_blocks_of(const std::string& part) {
  std::vector<std::string> blocks;
  const std::regex block("\n```[a-z]*\n([^`]*)```\n");
  for (auto it = std::sregex_iterator(part.begin(), part.end(), block); it != std::sregex_iterator(); ++it)
    blocks.push_back((*it)[1]);
  return blocks;
}

/// The text between the first two backquotes.
std::string literal_in(const std::string& text) {
  REQUIRE(text.starts_with('`'));
  return text.substr(1, text.find('`', 1) - 1);
}

}  // namespace

TEST_CASE("ddlrun(1) has every option with all its spellings") {
  const auto text = ddl::cli::help_text("markdown");
  REQUIRE(text);
  for (const ddl::cli::OptionEntry& entry : ddl::cli::option_table()) {
    for (const auto spelling : ddl::split(entry.spellings, ','))
      CHECK_THAT(*text, Contains("`" + std::string(spelling) + "`"));
  }
  CHECK_THAT(*text, Contains("\\[rank\\]\\<stdout\\>"));
}

TEST_CASE("libddl.md and ddl(3) list exactly the functions of ddl.h") {
  const std::string header = source_file("runtime/include/ddl/ddl.h");
  std::set<std::string> declared, listed;
  const std::regex declaration("\nDDL_API [^(]*?(ddl_[a-z0-9_]+)\\("), name("`(ddl_[a-z0-9_]+)`");
  for (auto it = std::sregex_iterator(header.begin(), header.end(), declaration);
       it != std::sregex_iterator(); ++it)
    declared.insert((*it)[1]);
  for (const auto& row : rows_of(part_of(source_file("docs/reference/libddl.md"), "## The functions"))) {
    for (auto it = std::sregex_iterator(row[0].begin(), row[0].end(), name); it != std::sregex_iterator();
         ++it)
      listed.insert((*it)[1]);
  }
  CHECK(declared.size() > 50);
  CHECK(listed == declared);
}

TEST_CASE(
    "ddl-hostfile(5): every form, word and example of the page is read, and every error is the parser's") {
  const auto read = [](const std::string& text) { return ddl::launcher::parse_hostfile(text, "hosts.txt"); };
  const std::string document = source_file("docs/reference/hostfile.md");
  int count = 0;
  for (const auto& form : rows_of(part_of(document, "## Hosts"))) {
    const std::string host = literal_in(form[0]);
    INFO(host);
    const auto in_file = read(host);
    const auto in_list = ddl::launcher::parse_host_list(host);
    REQUIRE(in_file);
    REQUIRE(in_list);
    CHECK(*in_file == *in_list);
    ++count;
  }
  CHECK(count == 7);
  for (const auto& word : rows_of(part_of(document, "## Words behind a host"))) {
    const std::string line = "node1 " + literal_in(word[0]);
    INFO(line);
    const auto nodes = read(line);
    REQUIRE(nodes);
    CHECK(*nodes != *read("node1"));
    // No word is "the same" as the one above it by mistake.
    if (word[1] == "the same") CHECK((nodes->front().slots == 4 || nodes->front().max_slots == 8));
    ++count;
  }
  CHECK(count == 13);
  for (const auto& error : rows_of(part_of(document, "## Errors"))) {
    const std::string line = literal_in(error[0]);
    INFO(line);
    const auto nodes = read(line);
    REQUIRE_FALSE(nodes);
    CHECK(nodes.error().message() == "hosts.txt:1: " + literal_in(error[1]));
    ++count;
  }
  CHECK(count == 20);
  for (const std::string& example : code_blocks_of(part_of(document, "## Examples"))) {
    INFO(example);
    CHECK(read(example));
    ++count;
  }
  CHECK(count == 24);
}

TEST_CASE(
    "site-schema.md, of which ddl-site(5) is made, has exactly the keys that the reader of profiles has") {
  const std::string document = source_file("docs/reference/site-schema.md");
  std::size_t rows = 0;
  std::set<std::string> maps, described = {""};
  for (const auto& table : ddl::templates::site_key_tables()) {
    maps.insert(table.map);
    std::string expected = "| key | value | meaning | default |\n|---|---|---|---|\n";
    for (const auto& key : table.keys) {
      INFO(table.map << " " << key.key);
      CHECK_FALSE(key.accepts.empty());
      CHECK_FALSE(key.meaning.empty());
      expected += "| `" + key.key + "` | " + key.accepts + " | " + key.meaning + " |" +
                  (key.default_value.empty() ? "" : " " + key.default_value) + " |\n";
      if (key.accepts.find("below") != std::string::npos) described.insert(key.key);
    }
    const std::string heading = table.map.empty() ? "## Keys" : "### " + table.map;
    const std::size_t begin = document.find("\n" + heading + "\n");
    INFO(heading);
    REQUIRE(begin != std::string::npos);
    CHECK_THAT(document.substr(begin), Contains(expected));
    rows += table.keys.size();
  }
  CHECK(maps == described);
  CHECK(rows_of(part_of(document, "## Keys")).size() >= rows);
  // The reader names the same keys where it does not know one.
  for (const auto& table : ddl::templates::site_key_tables()) {
    if (table.map != "slurm" && table.map != "setup" && table.map != "node") continue;
    std::string keys;
    for (const auto& key : table.keys) keys += (keys.empty() ? "" : ", ") + key.key;
    const auto profile = ddl::templates::read_site_profile("name: a\n" + table.map + ":\n  x: 1\n", "a.yaml");
    REQUIRE_FALSE(profile);
    CHECK_THAT(profile.error().message(), Catch::EndsWith("the keys here are " + keys));
  }
}

TEST_CASE("ddl-site(5): the profile in the examples is one that can be read") {
  int count = 0;
  for (const std::string& example : code_blocks_of(source_file("docs/reference/site-schema.md"))) {
    const auto profile = ddl::templates::read_site_profile(example, "ours.yaml");
    INFO((profile ? "" : profile.error().message()));
    CHECK(profile);
    ++count;
  }
  CHECK(count == 1);
}
