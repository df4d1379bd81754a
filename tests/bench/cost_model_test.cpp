#include "bench/cost_model.h"

#include <random>

#include "support/catch.h"

namespace ddl::bench {
namespace {

// Points that follow the model exactly, except for some noise.
std::vector<CostPoint> synthetic(const CostModel& model, const std::vector<Collective>& collectives,
                                 double noise) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  std::vector<CostPoint> points;
  for (const Collective what : collectives) {
    for (const int ranks : {2, 4, 8}) {
      for (const std::uint64_t bytes : {64, 4096, 262144, 16777216})
        points.push_back({what, ranks, bytes, predict(model, what, ranks, bytes) * off(random)});
    }
  }
  return points;
}

TEST_CASE("a fit recovers a model from its predictions, and predicts more ranks") {
  const CostModel made{.alpha = 2e-6, .beta = 3e-10, .gamma = 5e-11};
  const CostModel found = fit(synthetic(made, all_collectives(), 0));
  CHECK(found.alpha == Approx(made.alpha));
  CHECK(found.beta == Approx(made.beta));
  CHECK(found.gamma == Approx(made.gamma));
  CHECK(found.worst_error < 1e-6);
  CHECK(predict(found, Collective::kAllreduce, 1024, 1 << 20) ==
        Approx(predict(made, Collective::kAllreduce, 1024, 1 << 20)));
}

TEST_CASE("noise changes a model by less than the noise, and shows in its errors") {
  const CostModel made{.alpha = 2e-6, .beta = 3e-10, .gamma = 2e-10};
  const CostModel found = fit(synthetic(made, all_collectives(), 0.1));
  CHECK(found.alpha == Approx(made.alpha).epsilon(0.1));
  CHECK(found.beta == Approx(made.beta).epsilon(0.1));
  CHECK(found.gamma == Approx(made.gamma).epsilon(0.3));
  CHECK(found.median_error > 0.01);
  CHECK(found.worst_error < 0.2);
}

TEST_CASE("costs that one collective alone cannot distinguish become one number") {
  const CostModel made{.alpha = 1e-6, .beta = 4e-10, .gamma = 2e-10};
  const CostModel found = fit(synthetic(made, {Collective::kAllreduce}, 0));
  CHECK(found.gamma == 0);
  CHECK(found.beta == Approx(made.beta + made.gamma / 2));
  CHECK(predict(found, Collective::kAllreduce, 64, 1 << 20) ==
        Approx(predict(made, Collective::kAllreduce, 64, 1 << 20)));
}

TEST_CASE("no cost is negative, and one point is enough for one number") {
  const CostModel found = fit({{Collective::kAllreduce, 2, 4, 1e-6}, {Collective::kAllreduce, 4, 4, 1e-6}});
  CHECK(found.alpha >= 0);
  CHECK(found.beta >= 0);
  CHECK(found.gamma >= 0);
  const CostModel one = fit({{Collective::kBroadcast, 2, 1 << 20, 1e-3}});
  CHECK(predict(one, Collective::kBroadcast, 2, 1 << 20) == Approx(1e-3));
}

constexpr const char* kResults =
    R"({"benchmark": "allreduce", "settings": {"ranks": 2, "hosts": 1, "rate": null,
  "cpus": [0, 1]}, "entrants": [{"name": "ddl", "label": "libddl", "again_of": null},
  {"name": "ddl-again", "label": "again", "again_of": "ddl"}, {"name": "floor", "label": "loop", "again_of": null}],
  "cases": [{"bytes": 4, "figures": [{"entrant": "ddl", "p50_seconds": 1e-6}, {"entrant": "ddl-again", "p50_seconds": 1},
  {"entrant": "floor", "p50_seconds": 1e-8}]}, {"bytes": 1048576, "figures": [{"entrant": "ddl", "p50_seconds": 1e-4}]}]})";

TEST_CASE("predictions are made for contenders, not for limits, and labelled as a model's") {
  const auto text = model_report({{"a.json", kResults}});
  REQUIRE(text);
  INFO(*text);
  CHECK(text->starts_with("libddl, on one host: a model, not a measurement\n"));
  CHECK(text->find("allreduce, 1024 ranks") != std::string::npos);
  CHECK(text->find("broadcast") == std::string::npos);
  CHECK(text->find("loop") == std::string::npos);
  CHECK(text->find("again") == std::string::npos);
}

TEST_CASE("a file that no model can be made of is named") {
  for (const char* text :
       {"", "{", "{}", R"({"benchmark": "launch", "settings": {"ranks": 2, "hosts": 1}})"}) {
    const auto refused = model_report({{"good.json", kResults}, {"bad.json", text}});
    REQUIRE(!refused);
    CHECK(refused.error().message().find("bad.json") != std::string::npos);
  }
}

}  // namespace
}  // namespace ddl::bench
