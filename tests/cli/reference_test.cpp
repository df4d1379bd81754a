// docs/reference agrees with the code.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "cli/check_build/capability.h"
#include "cli/check_build/probe.h"
#include "cli/options/foreign_options.h"
#include "cli/options/option_table.h"
#include "cli/options/this_process.h"
#include "cli/report_fixture.h"
#include "cli/reports/check_hosts_report.h"
#include "cli/reports/inspect_report.h"
#include "cli/reports/job_report.h"
#include "cli/reports/plan_report.h"
#include "cli/reports/scaling_report.h"
#include "launcher/facts.h"
#include "launcher/head/host_comparison.h"
#include "report/job_record.h"
#include "report/metrics.h"
#include "support/catch.h"

using namespace ddl::cli;

namespace {

std::string source(const std::string& path) {
  const auto text = ddl::read_file(std::string(DDL_SOURCE_DIR) + "/" + path);
  INFO(path);
  REQUIRE(text);
  return *text;
}

/// Maps the first group of every match to its second group.
std::map<std::string, std::string> matches(const std::string& text, const std::regex& pattern) {
  std::map<std::string, std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator();
       ++it) {
    found[(*it)[1]] = (*it)[2];
  }
  return found;
}

}  // namespace

TEST_CASE("exit-codes.md lists exactly the exit codes of contract/ddlrun.h") {
  const auto documented =
      matches(source("docs/reference/exit-codes.md"), std::regex(R"(\n\| (\d+) \| `(k\w+)` \|)"));
  const auto names = matches(source("contract/ddlrun.h"), std::regex(R"(\n  (k\w+) = (\d+),)"));
  CHECK(names.size() >= 9);
  CHECK(documented.size() == names.size());
  for (const auto& [number, name] : documented) {
    INFO(name);
    REQUIRE(names.contains(name));
    CHECK(names.at(name) == number);
  }
}

namespace {

/// The spellings in the first cells of a page's tables: every text in backquotes there starts with one.
std::set<std::string> documented_in(const std::string& path) {
  const std::string page = source(path);
  const std::regex spelling_in_backquotes("`(-[^ `]*)");
  std::set<std::string> documented;
  for (const auto line : ddl::split(page, '\n')) {
    if (!line.starts_with("| `-")) continue;
    const std::string cell(line.substr(2, line.find(" | ", 2) - 2));
    for (auto it = std::sregex_iterator(cell.begin(), cell.end(), spelling_in_backquotes);
         it != std::sregex_iterator(); ++it) {
      documented.insert((*it)[1]);
    }
  }
  return documented;
}

std::set<std::string> spellings_of(std::span<const OptionEntry> table) {
  std::set<std::string> spellings;
  for (const OptionEntry& entry : table) {
    for (const auto spelling : ddl::split(entry.spellings, ',')) spellings.emplace(spelling);
  }
  return spellings;
}

bool has_all(const std::set<std::string>& these, const std::set<std::string>& others) {
  return std::includes(these.begin(), these.end(), others.begin(), others.end());
}

}  // namespace

TEST_CASE("the documents describe every option with all its spellings, and no option that does not exist") {
  const std::set<std::string> reference = documented_in("docs/reference/ddlrun.md");
  std::set<std::string> guide = documented_in("docs/guide/from-other-launchers.md");
  guide.erase("-n4");  // an example
  const std::set<std::string> own = spellings_of(option_table()), foreign = spellings_of(foreign_options());
  CHECK(has_all(own, reference));
  for (const OptionEntry& entry : option_table()) {
    INFO(entry.spellings);
    CHECK(reference.contains(std::string(canonical_spelling(entry))));
  }
  std::set<std::string> both = reference, all = own;
  both.insert(guide.begin(), guide.end());
  all.insert(foreign.begin(), foreign.end());
  for (const std::string& one : all) {
    INFO(one);
    CHECK(both.contains(one));
  }
  CHECK(has_all(all, both));
}

TEST_CASE("ddlrun.md names every spelling that is sbatch's beside --slurm") {
  const std::string page = source("docs/reference/ddlrun.md");
  for (const SbatchSpelling& one : sbatch_spellings()) {
    INFO(one.spelling);
    CHECK(page.find("`" + std::string(one.spelling) + "`") != std::string::npos);
  }
}

TEST_CASE("the tables of --check-hosts in the documents have the columns of the program") {
  ddl::launcher::HostCheck host;
  host.facts = ddl::launcher::test::facts_of("node1", 4);
  const std::string text =
      check_hosts_text({host}, ddl::launcher::compare_hosts({host}), TerminalStyle(false));
  const auto words = [](std::string_view line) {
    std::istringstream stream{std::string(line)};
    return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  const auto heading = words(ddl::split(text, '\n').front());
  REQUIRE(heading.size() > 10);
  for (const char* name : {"docs/reference/ddlrun.md", "docs/guide/launching.md"}) {
    const std::string page = source(name);
    const auto lines = ddl::split(page, '\n');
    const auto line = std::find_if(lines.begin(), lines.end(),
                                   [](std::string_view one) { return one.starts_with("host   answer "); });
    INFO(name);
    REQUIRE(line != lines.end());
    CHECK(words(*line) == heading);
  }
}

TEST_CASE("every document that a message names exists") {
  const std::regex call("document\\(\"([^\"]*)\"\\)");
  int named = 0;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(std::string(DDL_SOURCE_DIR) + "/cli")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = *ddl::read_file(file.path().string());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), call); it != std::sregex_iterator(); ++it) {
      INFO((*it)[0]);
      CHECK(std::filesystem::exists(document((*it)[1].str())));
      ++named;
    }
  }
  CHECK(named >= 3);
}

TEST_CASE("check-build.md describes every capability") {
  const std::string page = source("docs/reference/check-build.md");
  for (const Probe& probe : probe_list()) {
    INFO(probe.key);
    CHECK(page.find("| `" + std::string(probe.key) + "` | ") != std::string::npos);
  }
}

TEST_CASE("ddlrun.md describes every field of the JSON that ddlrun prints") {
  const std::string page = source("docs/reference/ddlrun.md") + source("docs/reference/check-build.md") +
                           source("docs/reference/inspect.md");
  ddl::launcher::NodeLaunch node;
  node.ranks.resize(1);
  const auto job = ddl::test::job_of({"./a"});
  const auto report =
      ddl::test::report_of(ddl::test::EndReason::kRankFailed, 1, {ddl::test::exited(0, 1, 1)});
  ddl::launcher::HostCheck host;
  host.facts = ddl::launcher::test::facts_of("node1", 4);
  std::set<std::string> fields;
  const auto collect = [&](const auto& self, const nlohmann::json& item) -> void {
    if (!item.is_structured()) return;
    for (const auto& [name, inner] : item.items()) {
      if (item.is_object()) fields.insert(name);
      self(self, inner);
    }
  };
  ddl::report::ScalingStudy study{ddl::report::ScalingKind::kStrong, {{}}};
  for (int ranks = 1; ranks <= 3; ++ranks) {
    study.runs.emplace_back().report = ddl::test::report_of(ddl::test::EndReason::kSuccess, 0, {});
    study.runs.back().report.run_seconds = 1;
    for (int rank = 0; rank < ranks; ++rank)
      study.runs.back().report.ranks.push_back(ddl::test::exited(rank, 0, 1));
  }
  study.runs.front().report.reason = ddl::test::EndReason::kRankFailed;
  for (const std::string& text :
       {ddl::report::report_json(report), ddl::report::to_json(ddl::report::JobRecord()),
        ddl::report::to_json(study), scaling_json(study, 0),
        plan_json({{{}, {node}}, {{}}, {std::nullopt}}, job, {}), check_build_json({{}}, "node1"),
        inspection_json({{}, {{}}, {{}}, {{}}}), jobs_json({{1, "", ddl::launcher::JobDescription()}}),
        check_hosts_json({host}, ddl::launcher::compare_hosts({host}))}) {
    collect(collect, nlohmann::json::parse(text));
  }
  CHECK(fields.size() > 30);
  for (const std::string& field : fields) {
    INFO(field);
    CHECK(page.find("`" + field + "`") != std::string::npos);
  }
}

TEST_CASE("every metric is in the reference, with its kind and its labels") {
  const std::string text = source("docs/reference/metrics.md");
  for (const auto& family : ddl::report::metric_families()) {
    using enum ddl::report::MetricFamily::Kind;
    const char* const end = family.kind == kCounter ? "_total" : family.kind == kInfo ? "_info" : "";
    const char* const kind = family.kind == kCounter ? "counter" : family.kind == kInfo ? "info" : "gauge";
    std::string labels;
    for (const std::string_view label : ddl::split(family.labels, ' '))
      if (!label.empty()) labels += (labels.empty() ? "`" : ", `") + std::string(label) + "`";
    const std::string row = "| `" + std::string(family.name) + end + "` | " + kind + " | " + labels + " | " +
                            std::string(family.help) + " |\n";
    CAPTURE(row);
    CHECK(text.find(row) != std::string::npos);
  }
}
