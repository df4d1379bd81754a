#include "bench/blocks.h"

#include "support/catch.h"

namespace ddl::bench {
namespace {

Contender named(const std::string& name) {
  Contender contender;
  contender.name = contender.label = name;
  return contender;
}

TEST_CASE("every contender runs once unmeasured and twice in each block, in ABBA order") {
  Contender a = named("a");
  Contender b = named("b");
  Case one{.name = "x", .label = "x"};
  Case two{.name = "y", .label = "y"};
  std::string order;
  run_blocks("test", {&a, &b}, 2,
             [&](const Contender& contender) -> Result<RunTimes> {
               order += contender.name;
               const double base = contender.name == "a" ? 1 : 10;
               return RunTimes{{{base, base + 1}, {base * 100}}, 0.5};
             },
             {&one, &two});
  CHECK(order ==
        "ab"
        "abba"
        "baab");
  REQUIRE(one.figures.size() == 2);
  const Figures* figures = one.figures_of("a");
  REQUIRE(figures != nullptr);
  CHECK(figures->blocks == std::vector<std::vector<double>>{{1, 2, 1, 2}, {1, 2, 1, 2}});
  CHECK(figures->cpu_seconds_per_run == 0.5);
  CHECK(two.figures_of("b")->block_medians() == std::vector<double>{1000, 1000});
}

TEST_CASE("a contender that fails is marked, has no figures, and the others go on") {
  Contender good = named("good");
  Contender bad = named("bad");
  Contender missing = named("missing");
  missing.absent = "not here";
  Case one{.name = "x", .label = "x"};
  int bad_runs = 0;
  run_blocks("test", {&good, &bad, &missing}, 3,
             [&](const Contender& contender) -> Result<RunTimes> {
               CHECK(contender.name != "missing");
               if (contender.name == "bad" && ++bad_runs >= 3)
                 return fail(ErrorCode::kSystem, "exited with 3");
               return RunTimes{{{1.0}}, 0};
             },
             {&one});
  CHECK(bad_runs == 4);
  CHECK(bad.failed_runs == 2);
  CHECK(bad.failed == "exited with 3");
  CHECK(missing.absent == "not here");
  REQUIRE(one.figures.size() == 1);
  CHECK(one.figures_of("good")->count() == 6);
}

TEST_CASE("a run that fails once is repeated, and counted") {
  Contender flaky = named("flaky");
  Case one{.name = "x", .label = "x"};
  int runs = 0;
  const RunContender run = [&](const Contender&) -> Result<RunTimes> {
    if (++runs == 3) return fail(ErrorCode::kSystem, "did not end in time");
    return RunTimes{{{1.0}}, 0};
  };
  run_blocks("test", {&flaky}, 2, run, {&one});
  CHECK(runs == 6);
  CHECK(!flaky.failed);
  CHECK(flaky.failed_runs == 1);
  CHECK(flaky.last_failure == "did not end in time");
  REQUIRE(one.figures_of("flaky") != nullptr);
  CHECK(one.figures_of("flaky")->count() == 4);
}

}  // namespace
}  // namespace ddl::bench
