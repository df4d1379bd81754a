// Jobs whose ranks go on, and that are asked to end: their state is in a file, from which the next job goes on.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/process.h"
#include "contract/ddlrun.h"
#include "e2e/harness/elastic_job.h"
#include "e2e/harness/fifo.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

TEST_CASE("SIGTERM to ddlrun and to all agents, in any order, is one request to end", "[continued]") {
  for (const bool is_head_first : {true, false}) {
    CAPTURE(is_head_first);
    const Scratch scratch;
    ElasticJob job(kTwoNames + Words{"--min-np", "1", "--state-dir", scratch.path("state")}, "slow");
    const auto first = job.pids(0, 4);
    if (is_head_first) job.job().send(SIGTERM);
    for (const int rank : {0, 3})
      ::kill(read_process_stat(read_process_stat(first.at(rank))->parent)->parent, SIGTERM);
    job.job().wait_until("the request is seen", [&] {
      return job.job().err().find("SIGTERM has asked the job to end") != std::string::npos;
    });
    if (!is_head_first) job.job().send(SIGTERM);
    CHECK(job.job().wait_and_require_nothing_left() == contract::kDrained);
    CHECK(occurrences(job.job().out(), "drained at step 1\n") == 4);
  }
}

TEST_CASE("a job that is asked to end saves its state at the next commit", "[continued]") {
  const Scratch scratch;
  const Words state = {"--state-dir", scratch.path("state")};
  for (const int signal : {SIGUSR1, SIGTERM}) {
    CAPTURE(signal);
    ElasticJob job(Words{"-H", "localhost:3,127.0.0.1:3", "-np", "4", "--max-np", "4", "--spares", "1",
                         "--min-np", "2", "--json", "--report-json", scratch.path("report.json")} +
                   kNoOthers + state);
    ::kill(job.pids(0, 4).at(1), SIGKILL);
    job.pids(1, 4);
    job.job().send(signal);
    CHECK(job.job().wait_and_require_nothing_left() == contract::kDrained);
    CHECK(occurrences(job.job().out(), "drained at step 1\n") == 4);
    const std::string err = job.job().err().substr(0, job.job().err().size() - 1);
    const auto report = nlohmann::json::parse(err.substr(err.rfind('\n') + 1));
    CHECK(report["reason"] == "drained");
    CHECK(report["exit_code"] == contract::kDrained);
    check_report_schema(scratch, scratch.path("report.json"));
    const auto record = nlohmann::json::parse(read_file(scratch.path("report.json")).value_or(""));
    std::set<std::string> hosts;
    for (const auto& one : record["host_usage"]) {
      hosts.insert(one["host"]);
      CHECK(one["seconds"].get<double>() > 0);
      CHECK(one["cpus"].get<int>() > 0);
    }
    CHECK(hosts == std::set<std::string>{"127.0.0.1", "localhost"});
    CHECK(record["host_usage"].size() == hosts.size());
  }
}

TEST_CASE("a job that is asked to end before its ranks have joined has nothing to save", "[continued]") {
  const Scratch scratch;
  Job job(scratch, ddlrun(kTwoNames + Words{"--min-np", "1", "--state-dir", scratch.path("state"), "sh", "-c",
                                            "echo started; exec sleep 100"}));
  job.wait_for("started", 4);
  job.send(SIGUSR1);
  CHECK(job.wait_and_require_nothing_left() == contract::kDrained);
}

TEST_CASE("a job whose state could not be saved fails, and so does one that does not commit", "[continued]") {
  const Scratch scratch;
  const Words state = {"--state-dir", scratch.path("state")};
  ElasticJob bad(kTwoNames + kNoOthers + Words{"--min-np", "2"} + state, "save_badly");
  bad.pids(0, 4);
  bad.job().send(SIGUSR1);
  CHECK(bad.job().wait_and_require_nothing_left() == 9);
  // A second SIGTERM ends it at once.
  ElasticJob late(kTwoNames + Words{"--min-np", "2"} + state, "never");
  late.pids(0, 4);
  late.job().send(SIGTERM);
  late.job().wait_until("the first signal has been seen", [&] {
    return late.job().err().find("SIGTERM has asked the job to end") != std::string::npos;
  });
  late.job().send(SIGTERM);
  CHECK(late.job().wait_and_require_nothing_left() == 128 + SIGTERM);
}

TEST_CASE("a fit that was asked to end goes on in the next job, with the result of one without that",
          "[continued]") {
  const Scratch scratch;
  const auto words = [&](const std::string& ranks) {
    return Words{"-np",  ranks,         "--oversubscribe",     "--min-np",
                 "1",    "--state-dir", scratch.path("state"), fit_program(),
                 "60000"};
  };
  Job first(scratch, ddlrun(words("3")));
  first.wait_for("generation 0: rank ", 3);
  first.send(SIGUSR1);
  REQUIRE(first.wait_and_require_nothing_left() == contract::kDrained);
  CHECK(std::filesystem::exists(scratch.path("state") + "/ddl-state.bin"));
  Job second(scratch, ddlrun(words("2")));
  CHECK(second.wait_and_require_nothing_left() == 0);
  CHECK(second.out().find("from step 0\n") == std::string::npos);
  CHECK(loss_of_fit(second.out()) == undisturbed_loss());
  CHECK(std::filesystem::is_empty(scratch.path("state")));
}

TEST_CASE("a job whose folder for the state cannot be used ends at its start", "[continued]") {
  const Scratch scratch;
  const std::string no_folder = scratch.write("no_folder", "");
  std::filesystem::create_directory(scratch.path("state"));
  scratch.write("state/ddl-state.bin", "rubbish");
  for (const auto& [folder, why] :
       {std::pair(no_folder, no_folder + " is not a folder that can be written"),
        std::pair(scratch.path("state"), std::string("ddl-state.bin is not the state of this program"))}) {
    CAPTURE(folder);
    Job job(scratch,
            ddlrun(kTwoNames + Words{"--min-np", "1", "--state-dir", folder, fit_program(), "2000"}));
    CHECK(job.wait_and_require_nothing_left() == 1);
    CHECK_THAT(job.err(), Contains(why) && !Contains("generation 1") && !Contains("joined again"));
  }
}

}  // namespace
}  // namespace ddl::e2e
