#include "report/page.h"

#include <algorithm>
#include <array>
#include <ctime>

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

data facts(const JobRecord& record) {
  data list{data::type::list};
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    data fact("key", key);
    fact.set("value", shown(value));
    list.push_back(fact);
  };
  add("Hosts", join(record.hosts.size() <= 16
                        ? record.hosts
                        : std::vector<std::string>(record.hosts.begin(), record.hosts.begin() + 16),
                    ", ") +
                   (record.hosts.size() > 16 ? fmt::format(" and {} more", record.hosts.size() - 16) : ""));
  add("Scheduler", record.scheduler_job);
  add("Directory", record.workdir);
  add("Exit code", fmt::format("{}", record.report.exit_code));
  return list;
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

std::string page(const JobRecord& record, const JobRecord* baseline) {
  const JobTimes times = times_of(record.report);
  const std::vector<std::string> hosts = hosts_of(record);
  const bool is_success = record.report.reason == launcher::EndReason::kSuccess;
  data values{data::type::object};
  values.set("css", std::string(page_file("page.css")));
  values.set("name", shown(record.name));
  values.set("outcome",
             is_success ? "succeeded" : fmt::format("failed with exit code {}", record.report.exit_code));
  values.set("size", counted(static_cast<std::int64_t>(record.report.ranks.size()), "rank") + " on " +
                         counted(static_cast<std::int64_t>(record.hosts.size()), "host"));
  values.set("duration", duration_text(record.report.run_seconds));
  values.set("began", time_text(record.began));
  values.set("command", shown(shell_line(record.command)));
  data findings{data::type::list};
  for (const Finding& one : verdict(record, times)) {
    data finding("weight", class_of(one.weight, is_success));
    finding.set("what", shown(one.what));
    if (!one.advice.empty()) finding.set("advice", shown(one.advice));
    findings.push_back(finding);
  }
  values.set("finding", findings);
  values.set("fact", facts(record));
  data sections{data::type::list};
  for (const std::vector<Section>& some : {sections_of_ranks(record, times, hosts), sections_of_hosts(record),
                                           sections_of_job(record, baseline)}) {
    for (const Section& one : some) sections.push_back(data_of(one));
  }
  values.set("section", sections);
  kainjow::mustache::mustache frame{std::string(page_file("page.html.mustache"))};
  std::string text = frame.render(values);
  DDL_CHECK(frame.is_valid(), frame.error_message());
  return text;
}

}  // namespace ddl::report
