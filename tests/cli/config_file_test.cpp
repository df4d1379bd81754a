#include "cli/options/given_options.h"

#include "base/text.h"
#include "support/catch.h"

using namespace ddl::cli;

namespace {

GivenOptions accepted_file(const std::string& text) {
  const auto given = read_config(text, "job.yaml");
  INFO(text << " -> " << (given ? "" : given.error().message()));
  REQUIRE(given);
  return *given;
}

ddl::Error refused(const std::string& text) {
  INFO(text);
  const auto given = read_config(text, "job.yaml");
  REQUIRE_FALSE(given);
  CHECK_FALSE(given.error().hint().empty());
  return given.error();
}

std::string one(const GivenOptions& given, OptionId id) {
  const auto& values = given[id];
  REQUIRE(values.size() == 1);
  return values.front().text;
}

}  // namespace

TEST_CASE("every option of ddlrun can be given in the file, by each of its names") {
  int count = 0;
  for (const OptionEntry& entry : option_table()) {
    if (!entry.is_available() || entry.id == OptionId::kConfigFile) continue;
    for (const auto spelling : ddl::split(entry.spellings, ',')) {
      const std::string key(spelling.substr(spelling.find_first_not_of('-')));
      const std::string value = entry.takes_value() ? "some value" : "true";
      const GivenOptions given = accepted_file("# a comment\n" + key + ": " + value + "\n");
      const auto& values = given[entry.id];
      REQUIRE(values.size() == 1);
      CHECK(values.front().text == (entry.takes_value() ? value : ""));
      CHECK(values.front().where == "job.yaml:2");
      ++count;
    }
  }
  CHECK(count > 40);
}

TEST_CASE("underscores are accepted for dashes") {
  CHECK(one(accepted_file("num_proc: 4"), OptionId::kNumProc) == "4");
  CHECK(one(accepted_file("prefix_output_with_timestamp: true"), OptionId::kPrefixTimestamp).empty());
}

TEST_CASE("a value is taken as text, without conversion") {
  CHECK(one(accepted_file("num-proc: 0x10"), OptionId::kNumProc) == "0x10");
  CHECK(one(accepted_file("workdir: \"a b\""), OptionId::kWorkdir) == "a b");
  CHECK(one(accepted_file("hosts: a:2,me@b:2"), OptionId::kHosts) == "a:2,me@b:2");
  CHECK(one(accepted_file("hosts: '[2001:db8::1]:2'"), OptionId::kHosts) == "[2001:db8::1]:2");
}

TEST_CASE("options that are lists or may be repeated accept lists") {
  CHECK(one(accepted_file("hosts: [a:2, b:2]"), OptionId::kHosts) == "a:2,b:2");
  CHECK(one(accepted_file("network-interfaces:\n- eth0\n- ib0\n"), OptionId::kNetworkInterfaces) ==
        "eth0,ib0");
  CHECK(one(accepted_file("blacklist-cooldown-range: [1, 2]"), OptionId::kCooldown) == "1,2");
  const GivenOptions exports = accepted_file("x:\n- A=1\n- B\n");
  REQUIRE(exports[OptionId::kExport].size() == 2);
  CHECK(exports[OptionId::kExport][1].text == "B");
  CHECK(exports[OptionId::kExport][1].where == "job.yaml:3");
  CHECK_THAT(refused("num-proc: [1, 2]").message(),
             Catch::Contains("job.yaml:1: -np/--num-proc takes one value"));
  CHECK_THAT(refused("hosts:\n- [a]\n").message(),
             Catch::Contains("job.yaml:2: -H/--hosts takes a list of strings"));
  CHECK_THAT(refused("x: {A: 1}").message(), Catch::Contains("takes one value"));
}

TEST_CASE("flags are true or false") {
  CHECK(accepted_file("oversubscribe: true").has(OptionId::kOversubscribe));
  CHECK(accepted_file("oversubscribe: True").has(OptionId::kOversubscribe));
  CHECK_FALSE(accepted_file("oversubscribe: false").has(OptionId::kOversubscribe));
  CHECK(accepted_file("tag-output: false").has(OptionId::kNoTagOutput));
  CHECK_FALSE(accepted_file("no-tag-output: false").has(OptionId::kTagOutput));
  for (const char* value : {"yes", "on", "1", "\"\"", "", "~", "[true]", "{a: b}"}) {
    const auto error = refused("\noversubscribe: " + std::string(value));
    CHECK_THAT(error.message(), Catch::StartsWith("job.yaml:2: --oversubscribe is a flag"));
  }
}

TEST_CASE("an unknown key is refused with its line, and a similar one is suggested") {
  const auto error = refused("num-proc: 2\n\nover-subscribe: true\n");
  CHECK(error.message() == "job.yaml:3: unknown key over-subscribe");
  CHECK(error.hint() == "did you mean oversubscribe?");
  CHECK_THAT(refused("frobnicate: 1").hint(), Catch::Contains("--help"));
  CHECK_THAT(refused("? [a]\n: b\n").message(), Catch::Contains("a key is not a string"));
  CHECK_THAT(refused("- a\n- b\n").message(), Catch::Contains("job.yaml:1: the file is not a map"));
  CHECK_THAT(refused("just words").message(), Catch::Contains("the file is not a map"));
  CHECK_THAT(refused("<<: x").message(), Catch::Contains("unknown key"));
  CHECK_THAT(refused("--num-proc: 3").message(), Catch::Contains("unknown key"));
  CHECK_THAT(refused("config-file: other.yaml").message(),
             Catch::Contains("job.yaml:1: a configuration file cannot"));
  CHECK_THAT(refused("timeout:\n").message(), Catch::Contains("job.yaml:1: --timeout needs a value"));
}

TEST_CASE("an option that is not in this version is refused with its line") {
  const auto error = refused("verbose: true\njsrun: true\n");
  CHECK(error.message() == "job.yaml:2: jsrun is not in this version");
  CHECK_THAT(error.hint(), Catch::Contains("omit it"));
  CHECK_THAT(refused("nodelist: a").message(), Catch::Contains("is not an option of ddlrun"));
}

TEST_CASE("the groups of horovodrun's file contain its options") {
  // All keys that horovodrun 0.28.1 reads.
  CHECK(refused("library_options:\n  mpi_threads_disable: true").message() ==
        "job.yaml:2: mpi_threads_disable in library_options is not in this version");
  for (const char* text :
       {"params:\n  cycle_time_ms: 10", "params:\n  cache_capacity: 2048", "autotune:\n  enabled: true",
        "autotune:\n  log_file: x", "autotune:\n  warmup_samples: 5", "autotune:\n  steps_per_sample: 20",
        "autotune:\n  bayes_opt_max_samples: 50", "autotune:\n  gaussian_process_noise: 0.9",
        "stall_check:\n  enabled: true", "timeline:\n  mark_cycles: true",
        "params:\n  hierarchical_allreduce: true", "params:\n  hierarchical_allgather: true",
        "params:\n  torus_allreduce: true", "library_options:\n  num_nccl_streams: 2",
        "library_options:\n  ccl_bgt_affinity: 1", "logging:\n  level: INFO",
        "logging:\n  with_timestamp: true"}) {
    CAPTURE(text);
    CHECK(accepted_file(text).without_effect.size() == 1);
  }
  const GivenOptions stalls =
      accepted_file("stall_check:\n  warning_time_seconds: 120\n  shutdown_time_seconds: 240");
  CHECK(one(stalls, OptionId::kStallWarning) == "120");
  CHECK(one(stalls, OptionId::kStallShutdown) == "240");
  CHECK(one(accepted_file("timeline:\n  filename: x"), OptionId::kTimelineFile) == "x");
  CHECK(accepted_file("stall_check:\n  enabled: false").has(OptionId::kNoStallCheck));
  CHECK(accepted_file("controller: gloo").has(OptionId::kGloo));
  CHECK(one(accepted_file("library_options:\n  gloo_timeout_seconds: 60"), OptionId::kGlooTimeout) == "60");
  CHECK(accepted_file("logging:\n  hide_timestamp: true").without_effect.size() == 1);
  CHECK(accepted_file("controller: mpi").has(OptionId::kMpi));
  CHECK_THAT(refused("controller: nccl").message(),
             Catch::Contains("job.yaml:1: controller is an option of horovodrun"));
  // "false" is the default of these options.
  accepted_file("autotune:\n  enabled: false\nparams:\n  hierarchical-allreduce: false\nlogging:\n");
}

TEST_CASE("a message about a file has the file's own keys, and no option that nobody typed") {
  CHECK(refused("c: 3").message() == "job.yaml:1: c is not an option of ddlrun");
  CHECK(accepted_file("stall_check: true").without_effect.front().name == "stall_check");
}

TEST_CASE("an unknown key in a group, and a group that is not a map, are refused") {
  const auto error = refused("params:\n  cycle_time: 5\n").message();
  const auto unknown = refused("stall_check:\n  enable: true\n");
  CHECK(unknown.message() == "job.yaml:2: unknown key enable in stall_check");
  CHECK(unknown.hint() == "it has enabled, warning-time-seconds, shutdown-time-seconds");
  CHECK_THAT(refused("params: [1]").message(), Catch::Contains("params is a group"));
  CHECK_THAT(refused("params: 1").message(), Catch::Contains("unknown key params"));
  CHECK_THAT(refused("timeline:\n  {a: b}: c\n").message(), Catch::Contains("unknown key"));
}

TEST_CASE("an empty file gives no options") {
  const GivenOptions given = accepted_file("# nothing\n");
  for (std::size_t id = 0; id < static_cast<std::size_t>(OptionId::kCount); ++id) {
    CHECK_FALSE(given.has(static_cast<OptionId>(id)));
  }
}
