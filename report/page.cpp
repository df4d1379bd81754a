#include "report/page.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <kainjow/mustache.hpp>

#include "base/error.h"
#include "base/printable_text.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "report/section.h"
#include "report/verdict.h"

namespace ddl::report {
namespace {

using kainjow::mustache::data;
using launcher::duration_text;
using launcher::RankOutcome;

std::string time_text(double seconds_since_1970) {
  const auto seconds = static_cast<std::time_t>(seconds_since_1970);
  std::tm parts{};
  if (seconds <= 0 || ::gmtime_r(&seconds, &parts) == nullptr) return "";
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), length};
}

data list_of(const char* key, const std::vector<std::string>& texts) {
  data list{data::type::list};
  for (const std::string& text : texts) list.push_back(data(key, shown(text)));
  return list;
}

data data_of(const Section::Table& table) {
  const auto cells_of = [&table](const Section::Row& row) {
    data cells{data::type::list};
    for (std::size_t column = 0; column < row.size(); ++column) {
      data cell("cell", shown(row[column]));
      cell.set("is-text", column < table.text_columns);
      cells.push_back(cell);
    }
    return cells;
  };
  data lines{data::type::list};
  for (const Section::Row& row : table.rows) lines.push_back(data("cells", cells_of(row)));
  data values("head", cells_of(table.head));
  values.set("row", lines);
  return values;
}

data data_of(const Section& section) {
  data values("title", section.title);
  if (!section.missing.empty()) values.set("not-measured", shown(section.missing));
  values.set("paragraph", list_of("text", section.sentences));
  values.set("picture", section.picture);
  values.set("note", list_of("text", section.notes));
  data tables{data::type::list}, quotes{data::type::list};
  for (const Section::Table& table : section.tables) tables.push_back(data_of(table));
  for (const Section::Quote& quote : section.quotes) {
    std::string text;
    for (const std::string& line : quote.lines) text += shown(line) + "\n";
    data one("title", shown(quote.title));
    one.set("text", text);
    quotes.push_back(one);
  }
  values.set("table", tables);
  values.set("quote", quotes);
  return values;
}

const char* class_of(Finding::Weight weight, bool is_success) {
  switch (weight) {
    case Finding::Weight::kFailure: return "failure";
    case Finding::Weight::kLoss: return "loss";
    case Finding::Weight::kFact: return is_success ? "good" : "fact";
  }
  return "";
}

std::vector<std::string> hosts_of(const JobRecord& record) {
  std::vector<std::string> hosts;
  for (const RankOutcome& rank : record.report.ranks) {
    if (rank.rank < 0 || static_cast<std::size_t>(rank.rank) > record.report.ranks.size()) continue;
    hosts.resize(std::max(hosts.size(), static_cast<std::size_t>(rank.rank) + 1));
    hosts[static_cast<std::size_t>(rank.rank)] = shown(rank.host);
  }
  return hosts;
}

using Fact = std::pair<const char*, std::string>;

std::vector<Fact> facts_of(const JobRecord& record) {
  constexpr std::size_t kMostNames = 16;
  const std::vector<std::string> names(
      record.hosts.begin(),
      record.hosts.begin() + static_cast<std::ptrdiff_t>(std::min(record.hosts.size(), kMostNames)));
  const std::size_t others = record.hosts.size() - names.size();
  return {{"Hosts", join(names, ", ") + (others > 0 ? fmt::format(" and {} more", others) : "")},
          {"Scheduler", record.scheduler_job},
          {"Directory", record.workdir}};
}

}  // namespace

std::string shown(std::string_view text) {
  std::string line = printable_line(text);
  for (const std::string_view mark : {"\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                      "\u2066", "\u2067", "\u2068", "\u2069"}) {
    for (std::size_t at = line.find(mark); at != std::string::npos; at = line.find(mark, at))
      line.replace(at, mark.size(), "\uFFFD");
  }
  return line;
}

std::string_view page_file(std::string_view name) {
  for (const EmbeddedFile& one : page_files()) {
    if (one.path == name) return one.text;
  }
  DDL_CHECK(false, std::string(name));
  return {};
}

namespace {

/// What a page shows, before it is HTML.
struct Content {
  std::string name, outcome, size;
  double run_seconds = 0, began = 0;
  std::vector<std::string> command;
  std::vector<Finding> findings;
  std::vector<Fact> facts;
  std::vector<Section> sections;
  bool is_success = false;
};

std::string render(const Content& content) {
  data values{data::type::object};
  values.set("css", std::string(page_file("page.css")));
  values.set("name", shown(content.name));
  values.set("outcome", content.outcome);
  values.set("size", content.size);
  values.set("duration", duration_text(content.run_seconds));
  values.set("began", time_text(content.began));
  values.set("command", shown(shell_line(content.command)));
  data findings{data::type::list}, facts{data::type::list}, sections{data::type::list};
  for (const Finding& one : content.findings) {
    data finding("weight", class_of(one.weight, content.is_success));
    finding.set("what", shown(one.what));
    if (!one.advice.empty()) finding.set("advice", shown(one.advice));
    findings.push_back(finding);
  }
  for (const auto& [key, value] : content.facts) {
    if (value.empty()) continue;
    data fact("key", key);
    fact.set("value", shown(value));
    facts.push_back(fact);
  }
  for (const Section& one : content.sections) sections.push_back(data_of(one));
  values.set("finding", findings);
  values.set("fact", facts);
  values.set("section", sections);
  kainjow::mustache::mustache frame{std::string(page_file("page.html.mustache"))};
  std::string text = frame.render(values);
  DDL_CHECK(frame.is_valid(), frame.error_message());
  return text;
}

}  // namespace

std::string page(const JobRecord& record, const JobRecord* baseline) {
  const JobTimes times = times_of(record.report);
  Content content;
  content.is_success = record.report.reason == launcher::EndReason::kSuccess;
  content.name = record.name;
  content.outcome =
      content.is_success ? "succeeded" : fmt::format("failed with exit code {}", record.report.exit_code);
  content.size = counted(static_cast<std::int64_t>(record.report.ranks.size()), "rank") + " on " +
                 counted(static_cast<std::int64_t>(record.hosts.size()), "host");
  content.run_seconds = record.report.run_seconds;
  content.began = record.began;
  content.command = record.command;
  content.findings = verdict(record, times);
  content.facts = facts_of(record);
  content.facts.emplace_back("Exit code", fmt::format("{}", record.report.exit_code));
  for (std::vector<Section> some : {sections_of_ranks(record, times, hosts_of(record)),
                                    sections_of_hosts(record), sections_of_job(record, baseline)})
    std::ranges::move(some, std::back_inserter(content.sections));
  return render(content);
}

std::string page(const ScalingStudy& study) {
  const ScalingResult result = result_of(study);
  const JobRecord& first = study.runs.front();
  Content content;
  content.is_success = result.failures.empty();
  content.name = first.name;
  content.outcome = fmt::format("{} scaling", text_of(study.kind));
  content.size = counted(static_cast<std::int64_t>(study.runs.size()), "run");
  for (const JobRecord& run : study.runs) content.run_seconds += run.report.run_seconds;
  content.began = first.began;
  content.command = first.command;
  content.findings = verdict(result);
  content.facts = facts_of(first);
  content.sections = sections_of_scaling(study, result);
  return render(content);
}

std::string page(const Record& record, const JobRecord* baseline) {
  const auto* const study = std::get_if<ScalingStudy>(&record);
  return study != nullptr ? page(*study) : page(std::get<JobRecord>(record), baseline);
}

}  // namespace ddl::report
