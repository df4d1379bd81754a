// The options of jobs whose ranks are started again.
#include "base/text.h"
#include "cli/commands/commands.h"
#include "support/catch.h"

using namespace ddl::cli;
using ddl::launcher::ElasticMode;
using ddl::launcher::ElasticSpec;
using ddl::launcher::kMaxRanks;
using Words = std::vector<std::string>;

namespace {

/// A job of Horovod on a host with two slots, with these options, too.
Words by_gloo(Words more) {
  const Words job{"-np", "2", "--min-np", "1", "-H", "a:2"};
  more.insert(more.begin(), job.begin(), job.end());
  return more;
}

auto parse_elastic(Words words) {
  words.emplace_back("./a");
  return parse_command_line(words, CommandLineContext{"/home/me", 6, "head", nullptr});
}

ElasticSpec elastic(const Words& words) {
  const auto request = parse_elastic(words);
  INFO(ddl::join(words, " ") << " -> " << (request ? "" : request.error().message()));
  REQUIRE(request);
  return request->job.elastic;
}

/// "start min-max ranks".
std::string ranks(const Words& words) {
  const ElasticSpec spec = elastic(words);
  return std::to_string(spec.start_ranks) + " " + std::to_string(spec.min_ranks) + "-" +
         (spec.max_ranks == kMaxRanks ? "" : std::to_string(spec.max_ranks));
}

std::string refused_elastic(const Words& words) {
  const auto request = parse_elastic(words);
  INFO(ddl::join(words, " "));
  REQUIRE_FALSE(request);
  return request.error().message() + "; " + request.error().hint();
}

}  // namespace

TEST_CASE("a job is elastic by --elastic, --max-restarts and a range of hosts") {
  CHECK(elastic({"-np", "2"}).mode == ElasticMode::kOff);
  CHECK(elastic({"-np", "2", "--max-restarts", "0"}).mode == ElasticMode::kOff);
  CHECK(elastic({"-np", "2", "--elastic", "off"}).mode == ElasticMode::kOff);
  CHECK(elastic({"-H", "a:2,b:2", "--nnodes", "2:2"}).mode == ElasticMode::kOff);
  CHECK(elastic({"-np", "2", "--max_restarts", "4"}).max_restarts == 4);
  CHECK(elastic({"-np", "2", "--elastic", "restart"}).max_restarts == 3);
  CHECK(elastic({"-np", "2", "--elastic", "restart", "--max-restarts", "0"}).max_restarts == 0);
  // torchrun's default.
  CHECK(elastic({"-H", "a:2,b:2", "--nnodes", "1:2"}).max_restarts == 0);
}

TEST_CASE("the numbers of ranks of an elastic job") {
  CHECK(ranks({"-np", "2", "--max-restarts", "1"}) == "2 2-2");
  CHECK(ranks({"-np", "4", "--elastic", "restart", "--min-np", "2", "-H", "a:2,b:2"}) == "4 2-");
  CHECK(ranks({"--elastic", "restart", "--min-np", "2", "-H", "a:2,b:2"}) == "4 2-");
  CHECK(ranks({"-np", "2", "--elastic", "restart", "--max-np", "4", "-H", "a:2,b:2"}) == "2 2-4");
  // More ranks than slots, but not without limit.
  CHECK(ranks({"-np", "4", "--elastic", "restart", "--min-np", "2", "-H", "a:1", "--oversubscribe"}) ==
        "4 2-4");
  CHECK(ranks({"--elastic", "restart", "--min-np", "1", "-H", "a,b", "--slots-per-host", "3"}) == "6 1-");
  CHECK(ranks({"--nnodes", "1:3", "--nproc-per-node", "4", "-H", "a,b,c"}) == "4 4-12");
  CHECK(ranks({"--nnodes", "2:3", "-H", "a:2,b:2,c:2"}) == "2 2-");
  CHECK(ranks({"--elastic", "restart", "--host-discovery-script", "hosts.sh", "--min-np", "2"}) == "2 2-");
  CHECK(ranks({"-np", "4", "--elastic", "restart", "--host-discovery-script", "hosts.sh"}) == "4 4-");
}

TEST_CASE("ranks go on if their number may change, and nothing says that they start again") {
  CHECK(elastic({"-np", "2", "--min-np", "1", "-H", "a:4"}).mode == ElasticMode::kContinue);
  CHECK(elastic({"-np", "2", "--host-discovery-script", "hosts.sh"}).mode == ElasticMode::kContinue);
  CHECK(elastic({"-np", "2", "--min-np", "1", "--max-restarts", "1", "-H", "a:4"}).mode ==
        ElasticMode::kRestart);
  const ElasticSpec spec = elastic({"-np",
                                    "2",
                                    "--elastic",
                                    "continue",
                                    "--max-np",
                                    "2",
                                    "--spares",
                                    "2",
                                    "--elastic-ready-timeout",
                                    "9",
                                    "--state-dir",
                                    "states",
                                    "--state-interval",
                                    "50",
                                    "--elastic-unit",
                                    "host",
                                    "--preemption-watch",
                                    "exec watch",
                                    "-H",
                                    "a:4"});
  CHECK(spec.mode == ElasticMode::kContinue);
  CHECK(spec.spares == 2);
  CHECK(spec.ready_timeout_seconds == 9);
  CHECK(spec.state_directory == "/home/me/states");
  CHECK(spec.state_interval == 50);
  CHECK(spec.unit == ddl::launcher::ElasticUnit::kHost);
  CHECK(spec.preemption_watch == "exec watch");
  CHECK(spec.max_restarts == 0);
}

TEST_CASE("the details of an elastic job") {
  const ElasticSpec spec = elastic({"-np", "4", "--elastic", "restart", "--host-discovery-script", "hosts.sh",
                                    "--slots", "2", "--elastic-timeout", "60", "--elastic-settle", "0",
                                    "--reset-limit", "7", "--blacklist-cooldown-range", "10", "100"});
  CHECK(spec.discovery == "/home/me/hosts.sh");
  CHECK(spec.slots_per_host == 2);
  CHECK(spec.timeout_seconds == 60);
  CHECK(spec.settle_seconds == 0);
  CHECK(spec.reset_limit == 7);
  CHECK(spec.cooldown_min_seconds == 10);
  CHECK(spec.cooldown_max_seconds == 100);
}

TEST_CASE("without -np an elastic job has as many ranks as slots, but not more than --max-np") {
  CHECK(ranks({"--max-np", "2", "-H", "a:3"}) == "2 2-2");
  CHECK(ranks({"--max-np", "2", "--min-np", "1", "-H", "a:3"}) == "1 1-2");
  CHECK(ranks({"--max-np", "4", "-H", "a:3"}) == "3 3-4");
  CHECK(ranks({"-np", "4", "--min-np", "1", "-H", "a:1,b:1", "--oversubscribe"}) == "4 1-4");
}

TEST_CASE("without hosts an elastic job has this machine, with a slot for each CPU") {
  CHECK(ranks({"-np", "4", "--min-np", "2"}) == "4 2-");
  CHECK(ranks({"-np", "2", "--max-np", "4", "--spares", "1"}) == "2 2-4");
  CHECK(ranks({"-np", "2", "--elastic", "restart", "--min-np", "1"}) == "2 1-");
  CHECK(refused_elastic({"--min-np", "2"}).find("-np is missing") != std::string::npos);
  CHECK(refused_elastic({"-np", "8", "--min-np", "2"})
            .find("8 ranks are to start, and this machine has 6 slots") == 0);
  CHECK(ranks({"-np", "8", "--min-np", "2", "--oversubscribe"}) == "8 2-8");
}

TEST_CASE("ranks that go on may begin without hosts that do not come up, unless their number is given") {
  CHECK(ranks({"--min-np", "1", "-H", "a:2,b:2"}) == "1 1-");
  CHECK(ranks({"-np", "4", "--min-np", "1", "-H", "a:2,b:2"}) == "4 1-");
}

TEST_CASE("options of elastic jobs that contradict each other, or lack something, are refused") {
  using Catch::Contains;
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "sometimes"}), Contains("continue, restart, off"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "continue", "--max-restarts", "1"}),
             Contains("use --elastic restart"));
  for (const auto& [option, value] : {std::pair("--framework", "torch"), std::pair("--stdin", "all")})
    CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "continue", option, value}), Contains(option));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "restart", "--elastic-ready-timeout", "9"}),
             Contains("use --elastic continue"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "continue", "--spares", "1", "-H", "a:4"}),
             Contains("give --max-np N"));
  CHECK_THAT(refused_elastic({"-np", "2", "--spares", "1", "-H", "a:4"}),
             Contains("belongs to elastic jobs"));
  CHECK_THAT(
      refused_elastic({"-np", "4", "--elastic", "continue", "--max-np", "4", "--spares", "2", "-H", "a:5"}),
      Contains("need 6 slots, and the hosts have 5"));
  CHECK_THAT(refused_elastic({"--min-np", "3", "-H", "a:1,b:1"}),
             Contains("3 ranks are to start, and -H has 2 slots"));
  CHECK_THAT(refused_elastic({"-np", "3", "--elastic", "continue", "-H", "a:2,b:2", "--ranks-per-node", "1"}),
             Contains("-H has 2 slots"));
  CHECK_THAT(refused_elastic({"-np", "2", "--min-np", "1", "-H", "a:2", "--elastic-timeout", "0"}),
             Contains("leaves no time; --elastic-timeout SECONDS: "));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "restart", "--state-dir", "states"}),
             Contains("use --elastic continue"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "continue", "--state-interval", "5", "-H", "a:4"}),
             Contains("give --state-dir DIR"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "off", "--max-restarts", "1"}),
             Contains("--elastic off"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "off", "--max-np", "1"}), Contains("--elastic off"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic-timeout", "9"}),
             Contains("add --elastic continue or restart"));
  CHECK_THAT(refused_elastic({"-np", "2", "--slots-per-host", "9"}), Contains("--ranks-per-node N"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "restart", "--blacklist-cooldown-range=9"}),
             Contains("two are needed"));
  CHECK_THAT(
      refused_elastic({"--blacklist-cooldown-range", "9", "--min-np", "1", "-H", "a:2"}),
      Contains("needs a value, but the option --min-np follows; --blacklist-cooldown-range MIN MAX: ") &&
          !Contains("write --blacklist"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "restart", "--blacklist-cooldown-range", "9", "5"}),
             Contains("the least first"));
  CHECK_THAT(refused_elastic({"--nnodes", "3:1", "-H", "a:1,b:1,c:1"}),
             Contains("maximum below its minimum"));
  CHECK_THAT(
      refused_elastic({"-np", "2", "--elastic", "restart", "--min-np", "3", "--max-np", "2", "-H", "a:4"}),
      Contains("--min-np <= -np <= --max-np"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "restart", "--min-np", "1", "-H", "a,b"}),
             Contains("give slots for every host"));
  CHECK_THAT(refused_elastic({"--elastic", "restart", "--host-discovery-script", "x"}),
             Contains("-np is missing"));
  CHECK_THAT(
      refused_elastic({"-np", "2", "--elastic", "restart", "--host-discovery-script", "x", "-H", "a:2"}),
      Contains("--host-discovery-script") && Contains("-H"));
  CHECK(elastic({"-np", "2", "--host-discovery-script", "slurm:extra"}).discovery == "slurm:extra");
  for (const char* const name : {"slurm:", "slurm:a,b", "slurm:a b"})
    CHECK_THAT(refused_elastic({"-np", "2", "--host-discovery-script", name}),
               Contains("the name of your jobs"));
  CHECK_THAT(refused_elastic({"-np", "2", "--elastic", "restart", "--host-discovery-script", "slurm:extra"}),
             Contains("use --elastic continue"));
  CHECK_THAT(refused_elastic({"-np", "2", "--max-restarts", "2", "--launcher", "mpirun"}),
             Contains("agents"));
  CHECK_THAT(
      refused_elastic({"-np", "2", "--elastic", "restart", "--host-discovery-script", "x", "--dry-run"}),
      Contains("--dry-run starts nothing"));
}

TEST_CASE("ranks of Horovod go on by the rendezvous for Gloo, unless libddl has Horovod's names") {
  const auto gloo = [](const Words& more) {
    const auto request = parse_elastic(by_gloo(more));
    REQUIRE(request);
    CHECK(request->job.elastic.mode == ElasticMode::kContinue);
    return request->job.serves_gloo;
  };
  CHECK(gloo({"--gloo"}));
  CHECK_FALSE(gloo({"--gloo", "--as-horovod"}));
  CHECK_FALSE(gloo({"-x", "HOROVOD_CONTROLLER=gloo"}));
  CHECK_FALSE(gloo({}));
  const auto by_variable = parse_elastic(by_gloo({"-x", "HOROVOD_CONTROLLER=gloo"}));
  REQUIRE(by_variable);
  CHECK(by_variable->notes ==
        std::vector<std::string>{
            "a variable asks for Gloo: ranks of an elastic job of Horovod need --gloo, too"});
  for (const auto& [option, value] :
       {std::pair("--state-dir", "states"), std::pair("--spares", "1"), std::pair("--preemption-watch", "w"),
        std::pair("--elastic-settle", "1")})
    CHECK_THAT(
        refused_elastic({"-np", "2", "--min-np", "1", "--max-np", "2", "-H", "a:4", "--gloo", option, value}),
        Catch::Contains(option) && Catch::Contains("use --as-horovod in place of --gloo"));
}

TEST_CASE("ranks of Horovod are given the time in which they notice a loss") {
  const auto ready = [](Words more) {
    more.emplace_back("--gloo");
    return elastic(by_gloo(more)).ready_timeout_seconds;
  };
  CHECK(ready({}) == 60);
  CHECK(ready({"--gloo-timeout-seconds", "5"}) == 35);
  CHECK(ready({"--elastic-ready-timeout", "31"}) == 31);
  CHECK_THAT(refused_elastic(by_gloo({"--gloo", "--elastic-ready-timeout", "30"})),
             Catch::Contains("after 30 s") && Catch::Contains("a smaller --gloo-timeout-seconds"));
}
