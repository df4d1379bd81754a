// The page of a job is written however the job ends.
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

/// A job with both files of a report, and what is in them after its end.
class ReportedJob {
 public:
  explicit ReportedJob(std::vector<std::string> words)
      : job_(scratch_, ddlrun(with_files(std::move(words)))) {}

  Job& job() { return job_; }
  /// Checks the exit code, and that nothing is left.
  void end(int exit_code) {
    CHECK(job_.wait_and_require_nothing_left() == exit_code);
    INFO(job_.err());
    REQUIRE(std::filesystem::exists(scratch_.path("r.html")));
    page = bytes_of(scratch_.path("r.html"));
    record = Json::parse(bytes_of(scratch_.path("r.json")));
    CHECK(record.at("schema") == "ddl.report/1");
    CHECK(record.at("exit_code") == exit_code);
    check_report_schema(scratch_, scratch_.path("r.json"));
    CHECK_THAT(page, Contains("</html>"));
    CHECK(page_errors(scratch_, scratch_.path("r.html")) == "");
    // Nothing else is left beside them.
    CHECK(std::distance(std::filesystem::directory_iterator(scratch_.path("")), {}) <= 4);
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

  std::string page;
  Json record;

 private:
  std::vector<std::string> with_files(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"--report", scratch_.path("r.html"), "--report-json", scratch_.path("r.json")});
    return words;
  }
  Scratch scratch_;
  Job job_;
};

TEST_CASE("the schema of reports refuses what is none", "[report]") {
  if (std::system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") != 0)
    DDL_SKIP("there is no python3-jsonschema, so no report is compared with the schema; scripts/setup --all");
  const Scratch scratch;
  std::ofstream(scratch.path("r.json")) << R"({"schema": "ddl.report/2", "new": 1})";
  CHECK_THAT(report_schema_errors(scratch, scratch.path("r.json")),
             Contains("'ddl.report/1' was expected") && Contains("'new' was unexpected") &&
                 Contains("'ranks' is a required property"));
}

TEST_CASE("a page that loads or runs something, or is no HTML, is found out", "[report]") {
  if (std::system("/usr/bin/python3 -c 'import html5lib' 2>/dev/null") != 0)
    DDL_SKIP("there is no python3-html5lib, so no page is parsed strictly; scripts/setup --all installs it");
  const Scratch scratch;
  std::ofstream(scratch.path("p.html"))
      << "<!DOCTYPE html><title>x</title><style>a{background:url(x)}</style><script>1</script>"
         "<a href=\"http://x\" onclick=\"1\"><svg><use xlink:href=\"http://y\"/></svg><p></b>";
  CHECK_THAT(page_errors(scratch, scratch.path("p.html")),
             Contains("a style loads something") && Contains("there is an element script") &&
                 Contains("a has href=\"http://x\"") && Contains("use has href=\"http://y\"") &&
                 Contains("a has a script in onclick") && Contains("its policies are []") &&
                 Contains("Unexpected end tag (b)"));
}

TEST_CASE("a report says how the job ended, whatever the reason", "[report]") {
  SECTION("all ranks succeeded") {
    ReportedJob job({"-np", "2", "-x", "DDL_SECRET_TOKEN=hush-hush", "-x", "OMP_NUM_THREADS=3", "sh", "-c",
                     "[ $DDL_SECRET_TOKEN = hush-hush ]"});
    job.end(0);
    CHECK(job.record.at("environment").at("OMP_NUM_THREADS") == "3");
    CHECK(job.record.dump().find("hush-hush\"") == std::string::npos);
    CHECK_THAT(job.page, !Contains("DDL_SECRET_TOKEN</td>"));
    CHECK(job.record.at("reason") == "success");
    CHECK_THAT(job.page, Contains("2 ranks on 1 host ended without an error"));
    CHECK_FALSE(job.record.at("start").empty());
    // What the shell has not done has no zeros.
    CHECK_THAT(job.page,
               Contains("Not measured: compute, wait and move: the program has made no calls by libddl") &&
                   Contains("Not measured: there is no run to compare with"));
  }
  SECTION("a rank failed") {
    ReportedJob job({"-np", "2", "sh", "-c", "echo \"<b>why</b>\" >&2; exit 3"});
    job.end(3);
    CHECK(job.record.at("reason") == "rank_failed");
    CHECK_THAT(job.page,
               Contains("exited with 3") && Contains("&lt;b&gt;why&lt;/b&gt;") && !Contains("<b>why"));
  }
  SECTION("a rank was killed") {
    ReportedJob job({"-np", "2", "sh", "-c", "kill -SEGV $$"});
    job.end(128 + SIGSEGV);
    CHECK_THAT(job.page, Contains("was killed by SIGSEGV"));
  }
  SECTION("the command does not exist") {
    ReportedJob job({"-np", "2", "/missing/command"});
    job.end(127);
    CHECK(job.record.at("reason") == "start_failed");
    CHECK_THAT(job.page, Contains("/missing/command"));
  }
  SECTION("there is no room for the ranks") {
    ReportedJob job({"-np", "1000", "true"});
    job.end(2);
    CHECK_THAT(job.page, Contains("1000 ranks asked for") && Contains("the job did not begin"));
  }
  SECTION("the time was over") {
    ReportedJob job({"-np", "2", "--timeout", "0.2", "sleep", "1000"});
    job.end(124);
    CHECK_THAT(job.page, Contains("still running after 0.2 s"));
  }
  SECTION("it was cancelled or interrupted, twice") {
    const auto [signal, name] =
        GENERATE(std::pair{SIGTERM, std::string("SIGTERM")}, std::pair{SIGINT, std::string("SIGINT")});
    ReportedJob job({"-np", "2", "--kill-grace", "1000", program("signal_echo")});
    job.job().wait_for("ready", 2);
    job.job().send(signal);
    job.job().wait_for("got " + name, 2);
    job.job().send(signal);
    job.end(128 + signal);
    CHECK_THAT(job.page, Contains("ended by " + name));
  }
  SECTION("its ranks waited for one that did not come") {
    ReportedJob job({"-np", "3", "--oversubscribe", "--kill-grace", "0", "--stall-check-warning-time-seconds",
                     "0.3", program("ddl_program"), "wait"});
    job.job().wait_for("2 of 3 ranks have waited");
    job.job().send(SIGTERM);
    job.end(128 + SIGTERM);
    CHECK_FALSE(job.record.at("stalls").empty());
    CHECK_THAT(job.page, Contains("Ranks waited long for others, ") && Contains("2 of 3 ranks have waited"));
  }
}

TEST_CASE("a report is drawn again from its JSON, byte by byte, and compares runs", "[report]") {
  ReportedJob job({"-np", "2", program("timeline_program"), "late"});
  job.end(0);
  CHECK_THAT(job.page, Contains("Rank 1 on ") && Contains(" made the others wait "));
  const Scratch scratch;
  Job again(scratch, ddlrun({"--report-from", job.path("r.json"), "--report", scratch.path("again.html")}));
  REQUIRE(again.wait() == 0);
  CHECK(bytes_of(scratch.path("again.html")) == job.page);

  ReportedJob base({"-np", "1", program("timeline_program"), "late"});
  base.end(0);
  Job compared(scratch, ddlrun({"--report-from", job.path("r.json"), "--baseline", base.path("r.json")}));
  REQUIRE(compared.wait() == 0);
  const double speedup =
      base.record.at("run_seconds").get<double>() / job.record.at("run_seconds").get<double>();
  std::ostringstream two_decimals;
  two_decimals << std::fixed << std::setprecision(2) << speedup;
  CHECK_THAT(compared.out(), Contains("Speed-up") && Contains("<td>" + two_decimals.str() + "</td>"));
}

TEST_CASE("the report of a job that fails in a call of libddl has what was recorded, and its binding",
          "[report]") {
  ReportedJob job({"-np", "2", "--report-bindings", program("timeline_program"), "until_signal"});
  job.job().wait_for("ready", 2);
  job.job().send(SIGTERM);
  job.end(128 + SIGTERM);
  CHECK(job.record.at("planned").size() == 2);
  CHECK_FALSE(job.record.at("ranks").at(0).at("calls").empty());
}

TEST_CASE("files of a report that cannot be written are refused before the job", "[report]") {
  const Scratch scratch;
  Job missing(scratch, ddlrun({"-np", "1", "--report", scratch.path("none/r.html"), "echo", "ran"}));
  CHECK(missing.wait() == 2);
  CHECK_THAT(missing.err(), Contains("none/r.html"));
  CHECK_THAT(missing.out(), !Contains("ran"));

  Job named(scratch,
            ddlrun({"-np", "1", "--job-name", "a/b", "--report-dir", scratch.path("new/folder"), "true"}));
  CHECK(named.wait() == 0);
  int pages = 0;
  for (const auto& file : std::filesystem::directory_iterator(scratch.path("new/folder")))
    pages += file.path().filename().string().starts_with("a_b-") ? 1 : 0;
  CHECK(pages == 2);

  Job baseline(scratch, ddlrun({"-np", "1", "--baseline", "/dev/null", "echo", "ran"}));
  CHECK(baseline.wait() == 2);
  CHECK_THAT(baseline.err(),
             Contains("--baseline: /dev/null: ") && Contains("hint: give a file that ddlrun"));
  for (const std::string& name : {scratch.path("none.json"), std::string()}) {
    Job from(scratch, ddlrun({"--report-from=" + name}));
    CHECK(from.wait() == 2);
    CHECK_THAT(from.err(), Contains("ddlrun: --report-from: "));
  }
}

}  // namespace
}  // namespace ddl::e2e
