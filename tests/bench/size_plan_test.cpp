#include "bench/workload.h"

#include "support/catch.h"

namespace ddl::bench {
namespace {

TEST_CASE("a plan survives the conversion to text and back") {
  const std::vector<SizePlan> plan{{4, 2000, 200}, {64 << 20, 8, 0}};
  CHECK(plan_text(plan) == "4:2000:200,67108864:8:0");
  const auto parsed = parse_plan(plan_text(plan));
  REQUIRE(parsed);
  REQUIRE(parsed->size() == 2);
  CHECK((*parsed)[1].bytes == 64 << 20);
  CHECK((*parsed)[1].calls == 8);
  CHECK((*parsed)[0].warm_ups == 200);
}

TEST_CASE("an invalid plan is refused and quoted") {
  for (const char* text : {"", "4", "4:5", "4:5:6:7", "4:5:x", "0:1:1", "4:0:1", "-4:1:1", "4:1:1,"}) {
    INFO(text);
    CHECK(!parse_plan(text));
  }
  CHECK(parse_plan("4:1:1,nonsense").error().message().find("nonsense") != std::string::npos);
}

TEST_CASE("sizes are read as people write them") {
  CHECK(parse_size("4") == 4);
  CHECK(parse_size("4B") == 4);
  CHECK(parse_size("64K") == 64 << 10);
  CHECK(parse_size("64KiB") == 64 << 10);
  CHECK(parse_size("256 MiB") == 256 << 20);
  CHECK(parse_size("1M") == 1 << 20);
  for (const char* text :
       {"", "K", "0", "-4", "4G", "1.5M", "4 5", "99999999999999999999", "2000000000000M"}) {
    INFO(text);
    CHECK(!parse_size(text));
  }
}

TEST_CASE("large messages are called seldom, small ones often, a quick run omits the large ones") {
  const auto plan = plan_of_sizes(default_sizes(), false);
  REQUIRE(plan.size() == default_sizes().size());
  CHECK(plan.front().bytes == 4);
  CHECK(plan.front().calls == 2000);
  CHECK(plan.back().bytes == 256 << 20);
  CHECK(plan.back().calls == 8);
  for (const SizePlan& size : plan) CHECK(size.warm_ups >= 2);
  const auto quick = plan_of_sizes(default_sizes(), true);
  CHECK(quick.back().bytes == 1 << 20);
  for (const SizePlan& size : quick) CHECK(size.calls <= 4);
}

}  // namespace
}  // namespace ddl::bench
