// A command is run with several numbers of ranks, and compared.
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>

#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

/// The JSON that --json prints as the last line of standard error.
Json report_in(Job& job) {
  const std::string& err = job.err();
  const std::size_t end = err.find_last_not_of('\n');
  const std::size_t begin = err.rfind('\n', end);
  return Json::parse(err.substr(begin == std::string::npos ? 0 : begin + 1));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    names.push_back(file.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST_CASE("a study runs every number of ranks several times, and compares the time of a step", "[scaling]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"--scaling", "1,2", "--repeat", "2", "--json", "--report", scratch.path("s.html"),
                           "--report-json", scratch.path("s.json"), "--report-dir", scratch.path("all"),
                           "--output-filename", scratch.path("out"), program("timeline_program"), "steps"}));
  REQUIRE(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.err(), Contains("ddlrun: scaling: run 1 of 4: 1 rank\n") &&
                            Contains("ddlrun: scaling: run 4 of 4: 2 ranks\n"));
  const Json report = report_in(job);
  CHECK(report.at("kind") == "scaling_report");
  CHECK(report.at("scaling") == "strong");
  CHECK(report.at("by") == "step");
  CHECK(report.at("failures").empty());
  CHECK(report.at("fit").is_null());
  REQUIRE(report.at("points").size() == 2);
  for (int ranks = 1; ranks <= 2; ++ranks) {
    const Json& point = report.at("points").at(static_cast<std::size_t>(ranks) - 1);
    CHECK(point.at("ranks") == ranks);
    CHECK(point.at("runs") == 2);
    CHECK(point.at("seconds") > 0);
    CHECK(
        std::filesystem::exists(scratch.path("out/ranks." + std::to_string(ranks) + "/run.2/rank.0/stdout")));
  }
  const Json study = Json::parse(bytes_of(scratch.path("s.json")));
  CHECK(study.at("schema") == "ddl.scaling/1");
  CHECK(study.at("runs").size() == 4);
  CHECK(study.at("runs").at(3).at("schema") == "ddl.report/1");
  // A page and a record of the study, and of each run.
  const auto names = names_in(scratch.path("all"));
  CHECK(names.size() == 10);
  CHECK(std::ranges::count_if(names, [](const std::string& name) { return name.ends_with("-2-1.html"); }) ==
        1);

  Job again(scratch, ddlrun({"--report-from", scratch.path("s.json")}));
  REQUIRE(again.wait() == 0);
  CHECK(again.out() == bytes_of(scratch.path("s.html")));
  CHECK(page_errors(scratch, scratch.path("s.html")) == "");
}

TEST_CASE("a number of ranks with which the program fails is not run again, and the others are",
          "[scaling]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"--scaling", "2,1", "--repeat", "2", "--report-json", scratch.path("s.json"), "sh",
                           "-c", "test $HOROVOD_SIZE -eq 1 || exit 7"}));
  CHECK(job.wait_and_require_nothing_left() == 7);
  CHECK_THAT(job.err(), Contains("exited with 7") && Contains("run 4 of 4: 1 rank") &&
                            !Contains("run 3 of 4") &&
                            Contains("1 of 3 runs failed; the first, with 2 ranks, with exit code 7.") &&
                            Contains("There are no two numbers of ranks to compare."));
  CHECK(Json::parse(bytes_of(scratch.path("s.json"))).at("runs").size() == 3);
}

TEST_CASE("a signal ends a study, which says what it has measured", "[scaling]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"--scaling", "1,2", "--report-json", scratch.path("s.json"), "sh", "-c",
                           "test $HOROVOD_SIZE -eq 1 || { echo begun; exec sleep 1000; }"}));
  job.wait_for("begun", 2);
  job.send(SIGTERM);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGTERM);
  CHECK_THAT(job.err(),
             Contains("run 2 of 6") && !Contains("run 3 of 6") && Contains("scaling of sh, by the time"));
  CHECK(Json::parse(bytes_of(scratch.path("s.json"))).at("runs").size() == 2);
}

TEST_CASE("a study with too few slots is refused before its first run", "[scaling]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"--scaling", "1,64", "-H", "localhost:2", "echo", "ran"}));
  CHECK(job.wait() == 2);
  CHECK_THAT(job.err(), Contains("64 ranks asked for") && !Contains("run 1 of"));
  CHECK(job.out().empty());

  for (const std::vector<std::string>& words : {std::vector<std::string>{"-np", "2"},
                                                {"--stdin", "all"},
                                                {"--timeline-filename", "t.json"},
                                                {"--baseline", "b.json"},
                                                {"--min-np", "1"},
                                                {"--dry-run"},
                                                {"--launcher", "srun"}}) {
    CAPTURE(words);
    Job refused(scratch, ddlrun(std::vector<std::string>{"--scaling", "1,2"} + words +
                                std::vector<std::string>{"echo", "ran"}));
    CHECK(refused.wait() == 2);
    CHECK_THAT(refused.err(), Contains("--scaling") && Contains("hint: "));
    CHECK(refused.out().empty());
  }
  Job alone(scratch, ddlrun({"-np", "1", "--repeat", "2", "echo", "ran"}));
  CHECK(alone.wait() == 2);
  CHECK_THAT(alone.err(), Contains("--repeat belongs to --scaling"));
}

}  // namespace
}  // namespace ddl::e2e
