#include "cli/manual/pages.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/option_table.h"
#include "templates/profile/site_profile.h"

namespace ddl::cli {
namespace {

using Kind = Block::Kind;

std::string literal(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string_view embedded_text(std::string_view path) {
  const auto files = embedded_files();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const auto& one) { return one.path == path; });
  DDL_CHECK(file != files.end(), "a manual page without its text");
  return file->text;
}

/// The page up to its synopsis, which is to follow.
ManualWriter begin_page(std::string_view name, int chapter, std::string_view manual,
                        std::string_view purpose) {
  ManualWriter page(name, chapter, manual);
  page.section("NAME");
  // "-" is not a part of the name, and man's index expects it so.
  page.paragraph(std::string(name) + " - " + std::string(purpose));
  page.section("SYNOPSIS");
  return page;
}

/// Sections for headings of the second level, and subsections for those below.
void write_sections(ManualWriter& page, const Document& document) {
  for (const Block& block : document) {
    if (block.kind == Kind::kHeading && block.depth == 2) {
      page.section(block.text);
    } else {
      page.blocks({block});
    }
  }
}

void write_environment(ManualWriter& page, std::string_view part) {
  page.section("ENVIRONMENT");
  page.blocks(part_of(embedded_markdown("docs/reference/environment.md"), part));
}

/// The blocks before the first heading below the title, or before the first item.
Document beginning_of(const Document& document) {
  Document beginning;
  for (const Block& block : document) {
    if (block.kind == Kind::kItem || (block.kind == Kind::kHeading && block.depth > 1)) break;
    if (block.kind != Kind::kHeading) beginning.push_back(block);
  }
  return beginning;
}

Document of_kind(const Document& document, Kind kind) {
  Document chosen;
  std::copy_if(document.begin(), document.end(), std::back_inserter(chosen),
               [kind](const Block& block) { return block.kind == kind; });
  return chosen;
}

// ---- ddlrun(1) ----

/// "`-np` *N*, `--num-proc` *N*"
std::string option_tag(const OptionEntry& entry) {
  std::string tag;
  for (const std::string_view spelling : split(entry.spellings, ',')) {
    tag += (tag.empty() ? "" : ", ") + literal(spelling);
    if (entry.takes_value()) tag += " *" + std::string(entry.value) + "*";
  }
  return tag;
}

std::string joined_lines(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string ddlrun_page() {
  const HelpText help = help_parts();
  ManualWriter page = begin_page("ddlrun", 1, "User Commands", "start the ranks of a parallel program");
  page.paragraph("`ddlrun -np` *N* [`-H` *HOSTS*] [*options*] [`--`] *command* [*args*...]");
  page.section("DESCRIPTION");
  page.paragraph(joined_lines(help.description));
  page.section("OPTIONS");
  for (const OptionHeading& heading : help.headings) {
    page.subsection(heading.text);
    for (const OptionEntry& entry : option_table()) {
      if (entry.group == heading.group) page.item(option_tag(entry), entry.help);
    }
  }
  page.section("EXIT STATUS");
  page.paragraph(joined_lines(help.exit_codes));
  write_environment(page, "What ddlrun reads");
  page.section("FILES");
  page.item("*~/.config/ddlrun/sites/NAME.yaml*, */etc/ddlrun/sites/NAME.yaml*",
            "profiles of sites, for `--site`: ddl-site(5)");
  page.item("*~/.config/ddlrun/slurm*, */etc/ddlrun/slurm*",
            "templates of job scripts, instead of the shipped ones");
  page.paragraph(
      "The guides and the reference are in the folder of documents that is installed with ddlrun.");
  page.section("EXAMPLES");
  for (const OptionExample& example : help.examples) page.item(literal(example.command), example.effect);
  page.see_also({{"ddl-hostfile", 5},
                 {"ddl-site", 5},
                 {"ddl", 3},
                 {"mpirun", 1},
                 {"srun", 1},
                 {"sbatch", 1},
                 {"ssh", 1}});
  return std::move(page).take();
}

// ---- ddl(3) ----

/// The functions of the group, one below the other.
std::string prototypes_of(const HeaderGroup& group) {
  constexpr std::size_t kWidth = 68;  // within 80 columns, indented twice
  std::string lines;
  for (const HeaderEntry& entry : group.entries) {
    for (const HeaderDeclaration& one : entry.declarations) {
      if (one.kind == HeaderDeclaration::Kind::kFunction)
        lines += (lines.empty() ? "" : "\n") + broken_prototype(one.text, kWidth);
    }
  }
  return lines;
}

/// "`ddl_wait()`", "`typedef int32_t ddl_op`"; "" for the constants, which follow their type.
std::string declaration_tag(const HeaderDeclaration& declaration) {
  switch (declaration.kind) {
    case HeaderDeclaration::Kind::kFunction: return literal(declaration.name + "()");
    case HeaderDeclaration::Kind::kMacro: return literal(declaration.name);
    case HeaderDeclaration::Kind::kType: break;
  }
  return declaration.text == "enum" ? "" : literal(declaration.text);
}

void write_members(ManualWriter& page, const std::vector<HeaderMember>& members) {
  std::string unexplained;
  const auto flush = [&] {
    if (!unexplained.empty()) page.item(unexplained, "");
    unexplained.clear();
  };
  for (const HeaderMember& member : members) {
    if (member.comment.empty()) {
      unexplained += (unexplained.empty() ? "" : ", ") + literal(member.text);
      continue;
    }
    flush();
    page.item(literal(member.text), member.comment.front().text);
  }
  flush();
}

void write_entry(ManualWriter& page, const HeaderEntry& entry) {
  std::string tag;
  for (const HeaderDeclaration& one : entry.declarations) {
    const std::string more = declaration_tag(one);
    if (!more.empty()) tag += (tag.empty() ? "" : ", ") + more;
  }
  Document comment = entry.comment;
  std::string text;
  if (!comment.empty() && comment.front().kind == Kind::kParagraph) {
    text = comment.front().text;
    comment.erase(comment.begin());
  }
  page.item(tag, text);
  page.begin_inner();
  page.blocks(comment);
  std::vector<HeaderMember> written;
  for (const HeaderDeclaration& one : entry.declarations) {
    // Two types may have the same members.
    if (one.members != written) write_members(page, one.members);
    written = one.members;
  }
  page.end_inner();
}

std::string library_page() {
  const Header header = embedded_header();
  ManualWriter page =
      begin_page("ddl", 3, "Library Functions", "collectives for the ranks of a training program, in C");
  page.code("#include <ddl/ddl.h>\n\ncc program.c $(pkg-config --cflags --libs ddl)");
  for (const HeaderGroup& group : header.groups) {
    const std::string prototypes = prototypes_of(group);
    if (prototypes.empty()) continue;
    page.subsection(group.heading);
    page.code(prototypes);
  }
  page.section("DESCRIPTION");
  page.blocks(header.introduction);
  for (const HeaderGroup& group : header.groups) {
    page.subsection(group.heading);
    page.blocks(group.text);
    for (const HeaderEntry& entry : group.entries) write_entry(page, entry);
  }
  write_environment(page, "What libddl reads");
  page.section("EXAMPLES");
  const Document example = part_of(embedded_markdown("docs/reference/libddl.md"), "In C");
  page.blocks(of_kind(example, Kind::kCode));
  page.see_also({{"ddlrun", 1}, {"pkg-config", 1}});
  return std::move(page).take();
}

// ---- ddl-hostfile(5) ----

std::string hostfile_page() {
  const Document document = embedded_markdown("docs/reference/hostfile.md");
  ManualWriter page = begin_page("ddl-hostfile", 5, "File Formats", "the hosts of a job, for ddlrun");
  page.paragraph("`ddlrun --hostfile` *FILE* ...");
  page.paragraph("`ddlrun -H` *HOST*`,`*HOST* ...");
  page.section("DESCRIPTION");
  const Document beginning = beginning_of(document);
  page.blocks(beginning);
  write_sections(page,
                 {document.begin() + static_cast<std::ptrdiff_t>(beginning.size()) + 1, document.end()});
  page.see_also({{"ddlrun", 1}, {"ssh_config", 5}, {"slurm.conf", 5}});
  return std::move(page).take();
}

// ---- ddl-site(5) ----

std::string site_page() {
  const Document document = embedded_markdown("docs/reference/site-schema.md");
  const Document beginning = beginning_of(document);
  ManualWriter page = begin_page("ddl-site", 5, "File Formats", "profile of a site, for ddlrun");
  page.paragraph("`ddlrun --site` *NAME*|*FILE* ...");
  page.section("DESCRIPTION");
  page.blocks(of_kind(beginning, Kind::kParagraph));
  for (const templates::SiteKeyTable& table : templates::site_key_tables()) {
    page.subsection(table.map.empty() ? "Keys" : "Keys of " + literal(table.map));
    const std::string_view heading = table.map.empty() ? "Keys" : std::string_view(table.map);
    page.blocks(of_kind(beginning_of(part_of(document, heading)), Kind::kParagraph));
    for (const templates::SiteKey& key : table.keys) {
      page.item(literal(key.key) + ": " + key.accepts,
                key.meaning + (key.default_value.empty() ? "" : " (default: " + key.default_value + ")"));
    }
  }
  page.subsection("Variables of ranks");
  page.blocks(part_of(document, "Variables of ranks"));
  page.section("FILES");
  page.item("*~/.config/ddlrun/sites/NAME.yaml*", "the user's; below *$XDG_CONFIG_HOME* if that is set");
  page.item("*/etc/ddlrun/sites/NAME.yaml*", "the administrator's");
  page.item("*PREFIX/share/ddlrun/sites*", "copies of the profiles that ddlrun was built with");
  page.section("EXAMPLES");
  page.blocks(of_kind(beginning, Kind::kCode));
  page.see_also({{"ddlrun", 1}, {"sbatch", 1}, {"srun", 1}});
  return std::move(page).take();
}

}  // namespace

Document embedded_markdown(std::string_view path) { return read_markdown(embedded_text(path)); }
Header embedded_header() { return read_header(embedded_text("runtime/include/ddl/ddl.h")); }

std::string manual_page(ManualPage page) {
  switch (page) {
    case ManualPage::kDdlrun: break;
    case ManualPage::kLibrary: return library_page();
    case ManualPage::kHostfile: return hostfile_page();
    case ManualPage::kSite: return site_page();
  }
  return ddlrun_page();
}

}  // namespace ddl::cli
