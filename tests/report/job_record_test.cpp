#include "report/job_record.h"

#include <csignal>

#include <nlohmann/json.hpp>

#include "report/record_fixture.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Matchers::Contains;
using ddl::report::JobRecord;
using ddl::report::parse_job_record;
using ddl::report::to_json;
using nlohmann::json;

TEST_CASE("a record that is written and read says the same") {
  JobRecord record = record_with_late_rank();
  record.scheduler_job = "Slurm job 7";
  record.report.stalls = {"rank 1 waits"};
  record.environment = {{"OMP_NUM_THREADS", "4"}};
  record.said = {"ddlrun: it failed", "  next: nothing"};
  record.report.reason = EndReason::kRankFailed;
  record.report.exit_code = 139;
  record.report.first_failure = 1;
  record.report.message = "a message";
  record.report.host_failures = {"node3: why"};
  RankOutcome& failed = record.report.ranks[1] = killed(1, SIGSEGV, 2.5, true);
  failed.core_dumped = true;
  failed.gone_rank = 2;
  failed.kill_explanation = "for memory";
  failed.stderr_tail = {"one", "two"};
  failed.calls = {{{"broadcast", true, 1, 2, 3, 1}}, 0.5, 40, 0.125, {{0, 0.25}}};
  record.report.ranks.push_back(of_kind(RankOutcome::Kind::kNotStarted, 4));
  ddl::launcher::GenerationReport generation;
  generation.number = {1, 1};
  generation.num_ranks = 4;
  generation.hosts = {"node1"};
  generation.end.reason = EndReason::kHostLost;
  generation.recovery_seconds = 0.5;
  record.report.generations = {generation};
  record.report.hosts = {
      {"node1",
       {9.5,
        8,
        {100, 50, 1, "/job", ""},
        {{"eth0", 1, 2, 3}},
        {{"node", 4}},
        "",
        {{"GPU-a", 1, "H200", 0.5, -1, -1, 7, 8, 9}},
        ""}},
      {"node2", {1, 2, {-1, -1, -1, "", "no cgroup"}, {}, {}, "no counter", {}, "no GPUs"}}};

  const std::string text = to_json(record);
  const auto read = parse_job_record(text);
  REQUIRE(read.has_value());
  CHECK(to_json(*read) == text);
  CHECK(read->report.ranks == record.report.ranks);
  CHECK(read->report.reason == EndReason::kRankFailed);
  CHECK(read->report.first_failure == 1);
  CHECK(read->environment == record.environment);
  CHECK(read->said == record.said);
  for (std::size_t host = 0; host < 2; ++host)
    CHECK(read->report.hosts[host].usage == record.report.hosts[host].usage);
  CHECK(read->report.generations[0].recovery_seconds == 0.5);
  CHECK(json::parse(text)["schema"] == "ddl.report/1");
}

TEST_CASE("a record of a later version is read, and what is none is refused") {
  json later = json::parse(to_json(record_with_late_rank()));
  later["a_new_field"] = {1, 2};
  later["ranks"][0]["another"] = true;
  later.erase("workdir");
  CHECK(parse_job_record(later.dump()).has_value());

  const auto refusal = [](const std::string& text) {
    const auto read = parse_job_record(text);
    REQUIRE_FALSE(read.has_value());
    return read.error().message();
  };
  CHECK_THAT(refusal("{}"), Contains("not of the schema ddl.report/1"));
  CHECK_THAT(refusal("[1]"), Contains("an object was expected"));
  CHECK_FALSE(refusal("{\"schema\":").empty());
  json wrong = later;
  wrong["ranks"][0]["rank"] = "three";
  CHECK_FALSE(refusal(wrong.dump()).empty());
  wrong = later;
  wrong["ranks"] = 3;
  CHECK_THAT(refusal(wrong.dump()), Contains("ranks is not an array"));
  // Numbers with which the page could not reckon.
  for (const json& number : {json(-1), json(1e300), json(nullptr)}) {
    wrong = later;
    wrong["began"] = wrong["run_seconds"] = number;
    CHECK(parse_job_record(wrong.dump()).has_value() == number.is_null());
  }
  for (const json& number : {json(std::uint64_t{1} << 63), json(1.5), json(std::int64_t{1} << 40)}) {
    wrong = later;
    wrong["ranks"][0]["rank"] = number;
    CHECK_THAT(refusal(wrong.dump()), Contains("rank is not a whole number in its range"));
  }
  wrong = later;
  wrong["reason"] = "magic";
  CHECK_THAT(refusal(wrong.dump()), Contains("reason: \"magic\" is unknown"));
}

TEST_CASE("secrets are not shown, and no other variables than those of the runtimes") {
  const ddl::Environment all = {{"DDL_TIMEOUT", "1"},   {"OMP_NUM_THREADS", "2"}, {"NCCL_DEBUG", "INFO"},
                                {"UCX_TLS", "all"},     {"FI_PROVIDER", "tcp"},   {"DDL_SECRET_TOKEN", "x"},
                                {"NCCL_PASSWORD", "x"}, {"SECRET_TOKEN", "x"},    {"HOME", "/home/me"},
                                {"DDL_API_KEY", "x"},   {"FI_CREDENTIALS", "x"}};
  const ddl::Environment shown = ddl::report::shown_variables(all);
  CHECK(shown.size() == 5);
  for (const auto& [name, value] : shown) CHECK(value != "x");
}
