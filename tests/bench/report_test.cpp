#include "bench/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/chart.h"
#include "support/catch.h"

namespace ddl::bench {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Contender named(const std::string& name, const std::string& label) {
  Contender contender;
  contender.name = name;
  contender.label = label;
  contender.command.argv = {"/bin/" + name};
  return contender;
}

// Ours is 1.8 times slower than one peer and 2 times faster than another; a third peer cannot run.
Report sample(bool by_size) {
  Report report;
  report.benchmark = "sample";
  report.title = "a title with <angles> & more";
  report.method = "how";
  report.settings.blocks = 2;
  report.settings.cpus = {0, 1};
  report.machine.build_type = "Release";
  report.contenders = {named("ours", "Ours"), named("again", "Ours again"), named("fast", "Fast peer"),
                       named("slow", "Slow peer"), named("gone", "Gone peer")};
  report.contenders[0].is_ours = true;
  report.contenders[1].again_of = "ours";
  report.contenders[3].failed_runs = 1;
  report.contenders[3].last_failure = "did not end in time";
  report.contenders[4].absent = "mpirun is not in PATH";
  for (const std::uint64_t bytes : {4, 4096}) {
    Case one{.name = std::to_string(bytes), .label = by_size ? size_text(bytes) : "a case"};
    if (by_size) one.bytes = bytes;
    for (const Contender& contender : report.contenders) one.contenders.push_back(contender.name);
    one.figures = {{"ours", {{1.8e-3}, {3.6e-3}}, 1},
                   {"again", {{1.8e-3}, {3.8e-3}}, 1},
                   {"fast", {{1e-3}, {2e-3}}, 1},
                   {"slow", {{3.6e-3}, {7.2e-3}}, 1}};
    compare(one, report.contenders, {{"ours", "fast"}, {"ours", "slow"}, {"ours", "gone"}});
    report.cases.push_back(one);
    if (!by_size) break;
  }
  report.gauges = {{"ddl-memory", "our memory", "bytes", 9.5e6, "private"},
                   {"mpi-memory", "their memory", "bytes", std::nullopt, "mpirun is not in PATH"}};
  report.aims = {{"be faster", "1.80x slower", false},
                 {"be small", "9.5 MB", true},
                 {"be known", "absent", std::nullopt}};
  return report;
}

TEST_CASE("a case is compared within its A/A spread, with those that ran") {
  const Report report = sample(true);
  const Case& one = report.cases[0];
  REQUIRE(one.spread);
  CHECK(*one.spread == Approx(3.8 / 3.6));
  REQUIRE(one.comparisons.size() == 2);
  CHECK(one.comparison("ours", "fast")->ratio.ratio == Approx(1.8));
  CHECK(one.comparison("ours", "slow")->ratio.ratio == Approx(0.5));
  CHECK(one.comparison("ours", "gone") == nullptr);
}

TEST_CASE("the best peer is the fastest one, never a limit") {
  Report report = sample(true);
  const Comparison* best = best_peer(report.cases[0], report.contenders);
  REQUIRE(best != nullptr);
  CHECK(best->peer == "fast");
  CHECK(has(as_table(report), "against the best peer"));
  report.contenders.push_back(named("shared-limit", "Limit"));
  Case one = report.cases[0];
  one.figures.push_back({"shared-limit", {{1e-4}, {2e-4}}, 1});
  one.comparisons.clear();
  compare(one, report.contenders, {{"ours", "slow"}, {"ours", "shared-limit"}});
  REQUIRE(one.comparisons.size() == 2);
  CHECK(best_peer(one, report.contenders)->peer == "slow");
  one.comparisons.clear();
  CHECK(best_peer(one, report.contenders) == nullptr);
}

TEST_CASE("the CSV has a row for each case and contender that ran, and quotes fields as needed") {
  Report report = sample(true);
  report.benchmark = "a, \"b\"";
  const std::string csv = as_csv(report);
  INFO(csv);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 2 * 4);
  CHECK(csv.starts_with("benchmark,ranks,hosts,rate,case,bytes,entrant,"));
  CHECK(has(csv, "\n\"a, \"\"b\"\"\",2,1,,4096,4096,fast,0.0015,0.002,2,1,0.5556,"));
}

TEST_CASE("a report is split by the distance of the ranks") {
  Report report = sample(true);
  CHECK(by_distance(report).size() == 1);
  CHECK(by_distance(report)[0].title == report.title);
  report.cases[0].distance = Distance::kNear;
  report.cases[1].distance = Distance::kFar;
  const std::vector<Report> parts = by_distance(report);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].cases.size() == 1);
  CHECK(parts[1].title == report.title + ", far");
  // Of a contender that was never at a distance there is neither a line nor a figure.
  std::erase_if(report.cases[1].figures, [](const Figures& one) { return one.contender == "ours"; });
  report.cases[1].comparisons.clear();
  CHECK(has(as_chart(by_distance(report)[1]), "Slow peer"));
  CHECK(has(as_table(report), "  -  "));
  CHECK(has(as_csv(report), ",near\n"));
  CHECK(has(as_json(report), "\"distance\": \"far\""));
}

TEST_CASE("blocks in which one of the two has no times are not compared") {
  Report report = sample(true);
  Case one = report.cases[0];
  one.comparisons.clear();
  for (Figures& figures : one.figures) {
    if (figures.contender == "fast") figures.blocks.front().clear();
  }
  compare(one, report.contenders, {{"ours", "fast"}});
  REQUIRE(one.comparisons.size() == 1);
  CHECK(one.comparisons[0].ratio.low == one.comparisons[0].ratio.high);
}

TEST_CASE("figures of different cases of a run are compared block by block") {
  const Figures subject{"ours", {{3}, {}, {8}, {5}}, 1};
  const auto ratio = ratio_of(subject, {"peer", {{2}, {1}, {4}, {2}}, 1});
  REQUIRE(ratio);
  CHECK(ratio->ratio == Approx(2));  // of 1.5, 2 and 2.5
  CHECK_FALSE(ratio_of(subject, {"peer", {{}, {1}, {}, {}}, 1}));
}

TEST_CASE("without an A/A run nothing is compared") {
  Report report = sample(true);
  Case one = report.cases[0];
  one.comparisons.clear();
  one.spread.reset();
  report.contenders[1].again_of.clear();
  compare(one, report.contenders, {{"ours", "fast"}});
  CHECK(!one.spread);
  CHECK(one.comparisons.empty());
}

TEST_CASE("the table prints losses as losses, absent contenders with the reason, and whether aims are met") {
  for (const bool by_size : {true, false}) {
    const std::string table = as_table(sample(by_size));
    INFO(table);
    CHECK(has(table, "1.80x slower"));
    CHECK(has(table, "2.00x faster"));
    CHECK(has(table, "Gone peer (gone) absent: mpirun is not in PATH"));
    CHECK(has(table, "Slow peer (slow): 1 run failed and had to be repeated: did not end in time"));
    CHECK(has(table, "MISSED   be faster: 1.80x slower"));
    CHECK(has(table, "met      be small: 9.5 MB"));
    CHECK(has(table, "unknown  be known: absent"));
    CHECK(has(table, "our memory: 9.5 MB (private)"));
    CHECK(has(table, "their memory: - (mpirun is not in PATH)"));
    CHECK(has(table, "±5.6%"));
    CHECK(!has(table, "Not a plain release build"));
  }
}

TEST_CASE("the table of a debug build has a warning") {
  Report report = sample(false);
  report.machine.build_type = "Debug";
  CHECK(has(as_table(report), "Not a plain release build"));
}

TEST_CASE("the JSON holds every contender, figure and comparison") {
  const auto json = nlohmann::json::parse(as_json(sample(true)));
  CHECK(json["entrants"].size() == 5);
  CHECK(json["entrants"][4]["absent"] == "mpirun is not in PATH");
  CHECK(json["entrants"][0]["absent"].is_null());
  CHECK(json["entrants"][0]["command"] == "/bin/ours");
  REQUIRE(json["cases"].size() == 2);
  const auto& one = json["cases"][1];
  CHECK(one["bytes"] == 4096);
  CHECK(one["figures"].size() == 4);
  CHECK(one["figures"][0]["block_median_seconds"] == std::vector<double>{1.8e-3, 3.6e-3});
  CHECK(one["figures"][0]["p99_seconds"] == 3.6e-3);
  CHECK(one["comparisons"][0]["verdict"] == "1.80x slower");
  CHECK(one["best_peer"] == "fast");
  CHECK(json["settings"]["ranks"] == 2);
  CHECK(json["settings"]["hosts"] == 1);
  CHECK(json["settings"]["rate"].is_null());
  CHECK(json["gauges"][1]["value"].is_null());
  CHECK(json["aims"][0]["met"] == false);
  CHECK(json["aims"][2]["met"].is_null());
}

TEST_CASE("both kinds of chart are drawn, with text escaped, also without comparisons") {
  for (const bool by_size : {true, false}) {
    Report report = sample(by_size);
    const std::string svg = as_chart(report);
    CHECK(svg.starts_with("<svg "));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(has(svg, "a title with &lt;angles&gt; &amp; more"));
    CHECK(has(svg, "Slow peer"));
    CHECK(!has(svg, "nan"));
    CHECK(!has(svg, "inf"));
    for (Case& one : report.cases) {
      one.comparisons.clear();
      one.spread.reset();
    }
    CHECK(!has(as_chart(report), "nan"));
  }
}

TEST_CASE("times and sizes are written as people read them") {
  CHECK(time_text(0.00000018) == "0.18 µs");
  CHECK(time_text(0.0000824) == "82.4 µs");
  CHECK(time_text(0.0009999) == "1.00 ms");
  CHECK(time_text(0.027609) == "27.6 ms");
  CHECK(time_text(0.35) == "350 ms");
  CHECK(time_text(1.5) == "1.50 s");
  CHECK(size_text(4) == "4 B");
  CHECK(size_text(1024) == "1 KiB");
  CHECK(size_text(1500) == "1500 B");
  CHECK(size_text(64 << 20) == "64 MiB");
}

}  // namespace
}  // namespace ddl::bench
