// The pages of jobs, studies and timelines, as axe-core sees them in a real browser.
#include <chrono>
#include <fstream>

#include "base/command_output.h"
#include "frameworks/environment.h"
#include "report/page.h"
#include "report/record_fixture.h"
#include "report/scaling.h"
#include "report/timeline_fixture.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::test;
using Catch::Matchers::Contains;
using ddl::report::JobRecord;

namespace {

/// A folder of pages.
class Pages {
 public:
  void add(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    paths_.push_back(path);
  }

  /// A line for each finding; nothing if the environment is not there.
  std::optional<std::string> findings() const {
    const auto python = ddl::frameworks::python_of("axe");
    if (!python) return std::nullopt;
    std::vector<std::string> command = {*python, DDL_AXE_PROGRAM, DDL_CHROMIUM};
    command.insert(command.end(), paths_.begin(), paths_.end());
    const auto output = ddl::command_output(command, "", std::chrono::minutes(5));
    if (!output) FAIL(output.error().message());
    INFO(output->err);
    CHECK(output->wait_status == 0);
    return output->out;
  }

  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryDirectory folder_;
  std::vector<std::string> paths_;
};

/// All sections have something to show.
JobRecord full_record() {
  JobRecord record = record_with_late_rank();
  record.report.planned = {{"0-3", {0}}, {"4-7,12", {1, 2}}, {"0-3", {0}}, {"4-7,12", {1, 2}}};
  record.report.hosts = {host_with_gpus()};
  record.environment = {{"OMP_NUM_THREADS", "7"}};
  return record;
}

JobRecord failed_record() {
  JobRecord record = record_with_late_rank();
  record.report.reason = EndReason::kRankFailed;
  record.report.exit_code = 7;
  record.report.ranks[1].stderr_tail = {"step 3", "no such file: data.bin"};
  record.said = {"ddlrun: rank 1 on node1 exited with 7"};
  return record;
}

JobRecord wide_record() {
  JobRecord record = record_with_late_rank();
  record.report.ranks.clear();
  for (int rank = 0; rank < 128; ++rank) {
    record.report.ranks.push_back(punctual(rank, 127, rank == 127 ? 0 : 3));
    record.report.ranks.back().host = "node" + std::to_string(rank / 8);
  }
  return record;
}

JobRecord shortened(std::size_t ranks, double seconds) {
  JobRecord record = record_with_late_rank();
  record.num_ranks = static_cast<int>(ranks);
  record.report.ranks.resize(ranks);
  record.report.run_seconds = seconds;
  return record;
}

}  // namespace

TEST_CASE("axe-core finds nothing in the pages, in light, in dark and printed", "[axe]") {
  Pages pages;
  const JobRecord baseline = shortened(1, 30);
  pages.add("job.html", ddl::report::page(full_record(), &baseline));
  pages.add("failed.html", ddl::report::page(failed_record(), nullptr));
  pages.add("wide.html", ddl::report::page(wide_record(), nullptr));
  pages.add("study.html",
            ddl::report::page(ddl::report::ScalingStudy{
                ddl::report::ScalingKind::kStrong, {shortened(1, 40), shortened(2, 22), shortened(4, 10)}}));
  pages.add("timeline.html", write_timeline_and_page(pages.path("t.json"), {}));
  const auto findings = pages.findings();
  if (findings) CHECK(*findings == "");
}

TEST_CASE("what axe-core would find in a page, and what a page loads, is seen", "[axe]") {
  Pages pages;
  pages.add(
      "bad.html",
      "<!DOCTYPE html><title>x</title><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\"><style>@media (prefers-color-scheme: dark) {p {color: #333; background: "
      "#222}}</style><p>dim</p><img src=missing.png>");
  const auto findings = pages.findings();
  if (!findings) return;
  CHECK_THAT(*findings,
             Contains("bad.html, light: html-has-lang") && Contains("bad.html, printed: image-alt"));
  CHECK_THAT(*findings, Contains("bad.html, dark: color-contrast") && !Contains("light: color-contrast"));
  CHECK_THAT(*findings, Contains("Content Security Policy") && Contains("missing.png"));
}
