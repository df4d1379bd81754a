#include "cli/options/option_table.h"

#include <set>

#include "base/text.h"
#include "cli/options/foreign_options.h"
#include "support/catch.h"

using namespace ddl::cli;

TEST_CASE("spellings are unique and start with a dash, and every option has a help text") {
  std::set<std::string_view> seen;
  for (const auto table : {option_table(), foreign_options()}) {
    for (const OptionEntry& entry : table) {
      for (const auto spelling : ddl::split(entry.spellings, ',')) {
        INFO(spelling);
        CHECK(seen.insert(spelling).second);
        CHECK(spelling.size() >= 2);
        CHECK(spelling.starts_with('-'));
        CHECK(find_spelling(spelling) == &entry);
      }
      CHECK_FALSE(entry.help.empty());
      CHECK(entry.is_available() == (table.data() == option_table().data()));
    }
  }
}

TEST_CASE("every option identifier is in the table once") {
  std::set<OptionId> seen;
  for (const OptionEntry& entry : option_table()) {
    CHECK(seen.insert(entry.id).second);
  }
  CHECK(seen.size() == static_cast<std::size_t>(OptionId::kCount));
  CHECK(&entry_of(OptionId::kTimeout) == find_spelling("--timeout"));
}

TEST_CASE("canonical spelling, display name and usage line of an option") {
  CHECK(display_name(*find_spelling("-np")) == "-np/--num-proc");
  CHECK(display_name(*find_spelling("-x")) == "-x");
  CHECK(display_name(*find_spelling("-prefix-timestamp")) == "--prefix-output-with-timestamp");
  CHECK(canonical_spelling(*find_spelling("-np")) == "--num-proc");
  CHECK(canonical_spelling(*find_spelling("-x")) == "-x");
  CHECK(usage_line(*find_spelling("--quiet")).starts_with("--quiet: no notes"));
  CHECK(find_spelling("") == nullptr);
  CHECK(find_spelling("np") == nullptr);
  CHECK(find_spelling("-np,--num-proc") == nullptr);
}

TEST_CASE("all options of horovodrun are known") {
  // The options in horovodrun --help of 0.28.1, and those that it accepts but does not show.
  for (const char* spelling : {"-v",
                               "--version",
                               "-np",
                               "--num-proc",
                               "-cb",
                               "--check-build",
                               "--disable-cache",
                               "--start-timeout",
                               "--network-interfaces",
                               "--network-interface",
                               "--output-filename",
                               "--verbose",
                               "--config-file",
                               "-p",
                               "--ssh-port",
                               "-i",
                               "--ssh-identity-file",
                               "--fusion-threshold-mb",
                               "--cycle-time-ms",
                               "--cache-capacity",
                               "--hierarchical-allreduce",
                               "--no-hierarchical-allreduce",
                               "--hierarchical-allgather",
                               "--no-hierarchical-allgather",
                               "--autotune",
                               "--no-autotune",
                               "--autotune-log-file",
                               "--autotune-warmup-samples",
                               "--autotune-steps-per-sample",
                               "--autotune-bayes-opt-max-samples",
                               "--autotune-gaussian-process-noise",
                               "--min-np",
                               "--min-num-proc",
                               "--max-np",
                               "--max-num-proc",
                               "--slots-per-host",
                               "--elastic-timeout",
                               "--reset-limit",
                               "--blacklist-cooldown-range",
                               "--timeline-filename",
                               "--timeline-mark-cycles",
                               "--no-timeline-mark-cycles",
                               "--no-stall-check",
                               "--stall-check",
                               "--stall-check-warning-time-seconds",
                               "--stall-check-shutdown-time-seconds",
                               "--mpi-threads-disable",
                               "--no-mpi-threads-disable",
                               "--mpi-args",
                               "--tcp",
                               "--binding-args",
                               "--num-nccl-streams",
                               "--thread-affinity",
                               "--gloo-timeout-seconds",
                               "--log-level",
                               "--log-with-timestamp",
                               "--log-without-timestamp",
                               "-prefix-timestamp",
                               "--prefix-output-with-timestamp",
                               "--log-hide-timestamp",
                               "--no-log-hide-timestamp",
                               "-H",
                               "--hosts",
                               "-hostfile",
                               "--hostfile",
                               "--host-discovery-script",
                               "--gloo",
                               "--mpi",
                               "--jsrun",
                               "-h",
                               "--help"}) {
    INFO(spelling);
    const OptionEntry* entry = find_spelling(spelling);
    REQUIRE(entry != nullptr);
    CHECK(entry->id != OptionId::kForeign);
  }
}

TEST_CASE("every key in a group of horovodrun's configuration file belongs to a known option") {
  for (const GroupKey& one : horovodrun_keys()) {
    INFO(one.group << "." << one.key);
    CHECK(find_spelling(one.spelling) != nullptr);
  }
}

TEST_CASE("a job script loses no option of its job: each is passed on or refused") {
  for (const OptionEntry& entry : option_table()) {
    if (entry.id == OptionId::kNumProc) continue;  // the script is written around it
    if (entry.group != OptionGroup::kRanks && entry.group != OptionGroup::kInputOutput) continue;
    CAPTURE(entry.spellings);
    CHECK((entry.rules & (kForScript | kNotInScript)) != 0);
  }
}
