// A document as a list of blocks: what is read from Markdown and from the comments of a C header, and written for man.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddl::cli {

/// Prose has words to be typed in backquotes, as in Markdown: "`-np` *N*" is bold and italic.
struct Block {
  enum class Kind {
    kHeading,    ///< text; depth 1 is the title of the document
    kParagraph,  ///< text
    kBullet,     ///< text
    kItem,       ///< tag, and text that explains it; may be ""
    kCode,       ///< text: lines, unchanged
  };
  Kind kind = Kind::kParagraph;
  std::string text{};
  std::string tag{};
  int depth = 0;  ///< of a heading: its number of #
  bool operator==(const Block&) const = default;
};
using Document = std::vector<Block>;

/// What the documents of this project use of Markdown: headings, paragraphs, lists with "-", code between ```, links
/// and tables. Of a link only its text remains. The rows of a table become items: the first cell is the tag, the second
/// the text, and a third, which is a default, follows in parentheses. Pure.
Document read_markdown(std::string_view text);

/// The blocks below the heading with this text, up to the next heading that is not deeper. Empty if there is none.
Document part_of(const Document& document, std::string_view heading);

/// A comment of a C header, of which markers and stars are removed: paragraphs, lists with "-", and items, where a line
/// begins deeper with a word in quotes. Names of libddl become words to be typed. Pure.
Document read_comment(std::string_view text);

/// One manual page, in the macros of man(7).
class ManualWriter {
 public:
  /// name: "ddl-site"; chapter: of the manual, 1, 3 or 5; manual: what this chapter is called.
  ManualWriter(std::string_view name, int chapter, std::string_view manual);

  /// Begins a section: "EXIT STATUS".
  void section(std::string_view heading);
  void subsection(std::string_view heading);
  void paragraph(std::string_view prose);
  void bullet(std::string_view prose);
  /// tag and text are prose; without a text the tag stands alone.
  void item(std::string_view tag, std::string_view text);
  void code(std::string_view lines);
  /// Headings become subsections.
  void blocks(const Document& document);
  /// Indents what follows, up to end_inner().
  void begin_inner();
  void end_inner();
  /// "ddlrun(1), ddl-site(5)"
  void see_also(const std::vector<std::pair<std::string_view, int>>& pages);

  std::string take() && { return std::move(page_); }

 private:
  std::string page_;
};

}  // namespace ddl::cli
