// The manual pages: what they are made of, that they agree with the code, and how they are written for man.
#include <algorithm>
#include <regex>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "cli/manual/pages.h"
#include "cli/options/option_table.h"
#include "launcher/job/host_list.h"
#include "support/catch.h"
#include "templates/profile/site_profile.h"

using namespace ddl::cli;
using BlockKind = Block::Kind;
using Catch::Contains;

namespace {

std::string source_file(const std::string& path) {
  const auto text = ddl::read_file(std::string(DDL_SOURCE_DIR) + "/" + path);
  INFO(path);
  REQUIRE(text);
  return *text;
}

std::string page_with(void (*write)(ManualWriter&)) {
  ManualWriter page("x", 5, "File Formats");
  write(page);
  std::string text = std::move(page).take();
  return text.substr(text.find(".ad l\n") + 6);
}

/// The text between the first two backquotes.
std::string literal_in(const std::string& text) {
  REQUIRE(text.starts_with('`'));
  return text.substr(1, text.find('`', 1) - 1);
}

Document items_of(const Document& document) {
  Document items;
  for (const Block& block : document) {
    if (block.kind == BlockKind::kItem) items.push_back(block);
  }
  return items;
}

const Document& hostfile_document() {
  static const Document kDocument = embedded_markdown("docs/reference/hostfile.md");
  return kDocument;
}

}  // namespace

TEST_CASE("Markdown is read as blocks, without its links") {
  const Document blocks = read_markdown(
      "# Title\n\nOne [link](x.md#y) and\none `[a](b)` ([guide](z.md)), [two\nlines](z.md).\n\n"
      "- first\n- second\n  line\n\n| key | value | default |\n|---|---|---|\n| `a\\|b` | two | 3 |\n"
      "| `c` | d | |\n\n```sh\n# code\n\n  x\n```\n");
  CHECK(blocks == Document{{BlockKind::kHeading, "Title", "", 1},
                           {BlockKind::kParagraph, "One link and one `[a](b)`, two lines."},
                           {BlockKind::kBullet, "first"},
                           {BlockKind::kBullet, "second line"},
                           {BlockKind::kItem, "two (default: 3)", "`a|b`"},
                           {BlockKind::kItem, "d", "`c`"},
                           {BlockKind::kCode, "# code\n\n  x"}});
  CHECK(part_of(read_markdown("# A\na\n## B\nb\n### C\nc\n## D\nd\n"), "B") ==
        Document{
            {BlockKind::kParagraph, "b"}, {BlockKind::kHeading, "C", "", 3}, {BlockKind::kParagraph, "c"}});
  CHECK(part_of(blocks, "B").empty());
}

TEST_CASE("a comment of a header is read as blocks, with the names in it marked") {
  CHECK(read_comment(
            "/** *done becomes 1; see ddl_wait() and DDL_OK:\n *  size*count.\n *    \"a\"  one\n"
            " *           more\n *    \"b\"  two\n *  After.\n *\n *  - a bullet\n *    of two lines */") ==
        Document{{BlockKind::kParagraph, "`*done` becomes 1; see `ddl_wait()` and `DDL_OK`: `size*count`."},
                 {BlockKind::kItem, "one more", "`\"a\"`"},
                 {BlockKind::kItem, "two", "`\"b\"`"},
                 {BlockKind::kParagraph, "After."},
                 {BlockKind::kBullet, "a bullet of two lines"}});
}

TEST_CASE("what man would take for its own is escaped") {
  CHECK(page_with([](ManualWriter& page) { page.paragraph(".x 'y' -np a\\b `c`*d* a * b ^~\" é"); }) ==
        ".PP\n\\&.x \\(aqy\\(aq \\-np a\\eb \\fBc\\fR\\fId\\fR a * b \\(ha\\(ti\\(dq \\[u00E9]\n");
  CHECK(page_with([](ManualWriter& page) { page.code(".a\n\n'b"); }) ==
        ".PP\n.RS 4\n.nf\n\\&.a\n.sp\n\\(aqb\n.fi\n.RE\n");
  CHECK(page_with([](ManualWriter& page) { page.item("`-x` *N*", ""); }) ==
        ".TP 7\n\\fB\\-x\\fR \\fIN\\fR\n");
  CHECK(page_with([](ManualWriter& page) { page.paragraph("\U0001F600"); }) == ".PP\n\\[u1F600]\n");
}

TEST_CASE("every manual page has its sections, and no line that roff would not take") {
  for (const std::string& name : manual_page_names()) {
    INFO(name);
    const auto page = parse_manual_page(name);
    REQUIRE(page);
    const std::string text = manual_page(*page);
    for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"})
      CHECK_THAT(text, Contains(".SH " + std::string(section) + "\n"));
    std::string roff_name;
    for (const char c : name) roff_name += c == '-' ? "\\-" : std::string(1, c);
    CHECK_THAT(text, Contains(".SH NAME\n.PP\n" + roff_name + " \\- "));
    CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
    for (const auto line : ddl::split(text, '\n')) {
      const std::set<std::string_view> known = {"TH", "SH", "SS", "PP", "IP", "TP", "RS",
                                                "RE", "nf", "fi", "sp", "BR", "nh", "ad"};
      if (line.starts_with('.')) CHECK(known.contains(line.substr(1, line.find(' ') - 1)));
    }
  }
  CHECK_FALSE(parse_manual_page("ddl_allreduce"));
}

TEST_CASE("ddlrun(1) has every option with all its spellings") {
  const std::string page = manual_page(ManualPage::kDdlrun);
  for (const OptionEntry& entry : option_table()) {
    for (const auto spelling : ddl::split(entry.spellings, ',')) {
      std::string roff;
      for (const char c : spelling) roff += c == '-' ? "\\-" : std::string(1, c);
      CHECK_THAT(page, Contains("\\fB" + roff + "\\fR"));
    }
  }
  CHECK_THAT(page, Contains(".SH EXIT STATUS\n") && Contains(".SH ENVIRONMENT\n.TP 7\n\\fBTMPDIR\\fR\n"));
}

// ---- ddl(3) ----

TEST_CASE(
    "ddl.h is read completely: every function, type and constant, in a group, with what is said of it") {
  const std::string text = source_file("runtime/include/ddl/ddl.h");
  const std::string current = text.substr(0, text.find("#ifndef DDL_NO_DEPRECATED"));
  std::set<std::string> functions, constants;
  const std::regex function("\nDDL_API [^(]*?(ddl_[a-z0-9_]+)\\("), constant("\n  (DDL_[A-Z0-9_]+) = ");
  for (auto it = std::sregex_iterator(current.begin(), current.end(), function); it != std::sregex_iterator();
       ++it)
    functions.insert((*it)[1]);
  for (auto it = std::sregex_iterator(current.begin(), current.end(), constant); it != std::sregex_iterator();
       ++it)
    constants.insert((*it)[1]);
  CHECK(functions.size() > 50);

  const Header header = embedded_header();
  CHECK(header.introduction.size() > 10);
  const std::string page = manual_page(ManualPage::kLibrary);
  for (const HeaderGroup& group : header.groups) {
    INFO(group.heading);
    CHECK_FALSE(group.heading.empty());
    for (const HeaderEntry& entry : group.entries) {
      for (const HeaderDeclaration& one : entry.declarations) {
        INFO(one.text);
        for (const HeaderMember& member : one.members) {
          if (one.text == "enum") constants.erase(member.text.substr(0, member.text.find(' ')));
        }
        if (one.kind != HeaderDeclaration::Kind::kFunction) continue;
        CHECK(functions.erase(one.name) == 1);
        CHECK_FALSE(entry.comment.empty());
        CHECK_THAT(page, Contains("\\fB" + one.name + "()\\fR"));
      }
    }
  }
  CHECK(functions == std::set<std::string>{});
  CHECK(constants == std::set<std::string>{});
}

TEST_CASE("declarations of a C header, and the comments that belong to them") {
  const Header header = read_header(
      "/* libx: something. */\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* First things. They come "
      "first. */\n\n"
      "typedef int32_t ddl_kind;\nenum {\n  DDL_A = 0, /**< one, or */\n  /** Two. */\n  DDL_B = 1,\n  DDL_C "
      "= 2 /**< last */\n};\n\n"
      "/** A struct. */\ntypedef struct ddl_s {\n  double a; /**< the\n             *  first */\n  int b;\n} "
      "ddl_s;\n"
      "#define DDL_S_INIT \\\n  { 0 }\n\n"
      "DDL_API int ddl_f(void);   /**< effect */\n/** Both. */\nDDL_API int ddl_g(int a,\n                 "
      "int b);\n"
      "DDL_API const char* ddl_h(void);\n\n/* Old names. */\n#ifndef DDL_NO_DEPRECATED\nstatic int "
      "ddl_old;\n#endif\n");
  REQUIRE(header.groups.size() == 1);
  const HeaderGroup& group = header.groups[0];
  CHECK(group.heading == "First things");
  CHECK(group.text == Document{{BlockKind::kParagraph, "They come first."}});
  REQUIRE(group.entries.size() == 4);
  const auto& kinds = group.entries[0].declarations;
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].text == "typedef int32_t ddl_kind");
  CHECK(kinds[1].members == std::vector<HeaderMember>{{"DDL_A = 0", {{BlockKind::kParagraph, "one, or"}}},
                                                      {"DDL_B = 1", {{BlockKind::kParagraph, "Two."}}},
                                                      {"DDL_C = 2", {{BlockKind::kParagraph, "last"}}}});
  const HeaderEntry& structure = group.entries[1];
  REQUIRE(structure.declarations.size() == 2);
  CHECK(structure.declarations[0].text == "struct ddl_s");
  CHECK(structure.declarations[0].members ==
        std::vector<HeaderMember>{{"double a", {{BlockKind::kParagraph, "the first"}}}, {"int b", {}}});
  CHECK(structure.declarations[1].name == "DDL_S_INIT");
  CHECK(group.entries[2].comment == Document{{BlockKind::kParagraph, "effect"}});
  CHECK(group.entries[3].comment == Document{{BlockKind::kParagraph, "Both."}});
  REQUIRE(group.entries[3].declarations.size() == 2);
  CHECK(group.entries[3].declarations[0].text == "int ddl_g(int a, int b)");
  CHECK(group.entries[3].declarations[1].name == "ddl_h");
  CHECK(broken_prototype("int ddl_g(int a, int b)", 16) == "int ddl_g(int a,\n    int b);");
}

// ---- ddl-hostfile(5) ----

TEST_CASE(
    "ddl-hostfile(5): every form, word and example of the page is read, and every error is the parser's") {
  const auto read = [](const std::string& text) { return ddl::launcher::parse_hostfile(text, "hosts.txt"); };
  int count = 0;
  for (const Block& form : items_of(part_of(hostfile_document(), "Hosts"))) {
    const std::string host = literal_in(form.tag);
    INFO(host);
    const auto in_file = read(host);
    const auto in_list = ddl::launcher::parse_host_list(host);
    REQUIRE(in_file);
    REQUIRE(in_list);
    CHECK(*in_file == *in_list);
    ++count;
  }
  CHECK(count == 7);
  for (const Block& word : items_of(part_of(hostfile_document(), "Words behind a host"))) {
    const std::string line = "node1 " + literal_in(word.tag);
    INFO(line);
    const auto nodes = read(line);
    REQUIRE(nodes);
    CHECK(*nodes != *read("node1"));
    // No word is "the same" as the one above it by mistake.
    if (word.text == "the same") CHECK((nodes->front().slots == 4 || nodes->front().max_slots == 8));
    ++count;
  }
  CHECK(count == 13);
  for (const Block& error : items_of(part_of(hostfile_document(), "Errors"))) {
    const std::string line = literal_in(error.tag);
    INFO(line);
    const auto nodes = read(line);
    REQUIRE_FALSE(nodes);
    CHECK(nodes.error().message() == "hosts.txt:1: " + literal_in(error.text));
    ++count;
  }
  CHECK(count == 20);
  for (const Block& block : part_of(hostfile_document(), "Examples")) {
    if (block.kind != BlockKind::kCode) continue;
    INFO(block.text);
    CHECK(read(block.text));
    ++count;
  }
  CHECK(count == 23);
}

// ---- ddl-site(5) ----

TEST_CASE("site-schema.md and ddl-site(5) have exactly the keys that the reader of profiles has") {
  const std::string document = source_file("docs/reference/site-schema.md");
  const std::string page = manual_page(ManualPage::kSite);
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
      std::string roff;
      for (const char c : key.key) roff += c == '-' ? "\\-" : std::string(1, c);
      CHECK_THAT(page, Contains(".TP 7\n\\fB" + roff + "\\fR: "));
    }
    const std::string heading = table.map.empty() ? "## Keys" : "### " + table.map;
    const std::size_t begin = document.find("\n" + heading + "\n");
    INFO(heading);
    REQUIRE(begin != std::string::npos);
    CHECK_THAT(document.substr(begin), Contains(expected));
    rows += table.keys.size();
  }
  CHECK(maps == described);
  CHECK(items_of(part_of(embedded_markdown("docs/reference/site-schema.md"), "Keys")).size() >= rows);
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
  for (const Block& block : embedded_markdown("docs/reference/site-schema.md")) {
    if (block.kind != BlockKind::kCode) continue;
    const auto profile = ddl::templates::read_site_profile(block.text, "ours.yaml");
    INFO((profile ? "" : profile.error().message()));
    CHECK(profile);
    ++count;
  }
  CHECK(count == 1);
}
