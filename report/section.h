// The parts of pages, before they are HTML.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/embedded_file.h"
#include "report/efficiency.h"
#include "report/job_record.h"
#include "report/scaling.h"

namespace ddl::report {

/// What is shown in this order: what was not measured, sentences, the picture, tables, notes, quotes. Texts are as users,
/// hosts and ranks wrote them: the page escapes them.
struct Section {
  using Row = std::vector<std::string>;
  struct Table {
    Row head;
    std::vector<Row> rows;
    std::size_t text_columns = 1;  ///< the first ones, which are not numbers
  };
  struct Quote {
    std::string title;
    std::vector<std::string> lines;
  };

  explicit Section(std::string text) : title(std::move(text)) {}

  std::string title;
  std::string missing;  ///< what was not measured, and why
  std::vector<std::string> sentences;
  std::string picture;  ///< SVG
  std::vector<Table> tables;
  std::vector<std::string> notes;
  std::vector<Quote> quotes;

  // Each adds one, and returns the section.
  Section& not_measured(std::string why) { return missing = std::move(why), *this; }
  Section& sentence(std::string text) { return sentences.push_back(std::move(text)), *this; }
  Section& note(std::string text) { return notes.push_back(std::move(text)), *this; }
  Section& draw(std::string svg) { return picture = std::move(svg), *this; }
  Section& table(Row head, std::vector<Row> rows, std::size_t text_columns = 1) {
    return tables.push_back({std::move(head), std::move(rows), text_columns}), *this;
  }
  Section& quote(std::string heading, std::vector<std::string> lines) {
    return quotes.push_back({std::move(heading), std::move(lines)}), *this;
  }
};

/// Rows of a table of the worst ranks or hosts.
inline constexpr std::size_t kMostRows = 10;

/// What of the pages is not computed: styles, scripts, and the templates that put a page together.
std::span<const EmbeddedFile> page_files();
/// One of them, by its name.
std::string_view page_file(std::string_view name);

/// Bytes of other programs as valid text. Characters that change the direction of writing are replaced.
std::string shown(std::string_view text);

/// "1.5 GiB".
std::string bytes_text(double bytes);

// All are pure. hosts: the name of each rank's host.

std::vector<Section> sections_of_ranks(const JobRecord& record, const JobTimes& times,
                                       const std::vector<std::string>& hosts);
std::vector<Section> sections_of_hosts(const JobRecord& record);
std::vector<Section> sections_of_scaling(const ScalingStudy& study, const ScalingResult& result);
Section software_of(const JobRecord& record);
/// baseline: null if there is none.
std::vector<Section> sections_of_job(const JobRecord& record, const JobRecord* baseline);

}  // namespace ddl::report
