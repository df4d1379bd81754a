// Ranks on this machine are bound as --show-bind plans, and --report-bindings prints the kernel's binding of each.
#include <map>
#include <regex>

#include "base/cpu_set.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// The text that a pattern finds for each rank. Its two groups are the rank and this text.
std::map<int, std::string> by_rank(const std::string& text, const std::string& pattern) {
  std::map<int, std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found[static_cast<int>(parse_integer((*at)[1].str()).value())] = (*at)[2];
  return found;
}

struct Run {
  int status;
  std::string out;
  std::string err;
  /// The CPUs of each rank as it reads them itself, and as ddlrun reports them.
  std::map<int, std::string> seen() const {
    return by_rank(out, R"(\[(\d+)\]<stdout>:Cpus_allowed_list:\s*(\S+))");
  }
  std::map<int, std::string> reported() const {
    return by_rank(err, R"(rank (\d+) on \S+: CPUs? ([0-9]+(?:[,-][0-9]+)*))");
  }
};

Run run(std::vector<std::string> options, const std::map<std::string, std::string>& environment = {}) {
  const Scratch scratch;
  options.insert(options.end(), {"--tag-output", "grep", "Cpus_allowed_list", "/proc/self/status"});
  Command command = ddlrun(options);
  command.environment = environment;
  Job job(scratch, command);
  const int status = job.wait_and_require_nothing_left();
  return {status, job.out(), job.err()};
}

/// The CPUs that --show-bind plans for this machine, by rank.
std::map<int, std::string> planned(int ranks) {
  const Scratch scratch;
  Job job(scratch, ddlrun({"--show-bind", "-np", std::to_string(ranks)}));
  INFO(job.err());
  CHECK(job.wait_and_require_nothing_left() == 0);
  return by_rank(job.out(), R"(\n(\d+)\s+([0-9,-]+))");
}

int allowed_cpus() { return CpuSet::allowed().count(); }

TEST_CASE("a job runs where HWLOC_XMLFILE names a description that crashes hwloc", "[binding]") {
  const Scratch scratch;
  Command command = ddlrun({"-np", "1", "sh", "-c", "echo $HWLOC_XMLFILE"});
  command.environment["HWLOC_XMLFILE"] = DDL_E2E_DAMAGED_TOPOLOGY;
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Catch::Contains(DDL_E2E_DAMAGED_TOPOLOGY));  // ranks inherit the variable
}

TEST_CASE("two ranks are bound as --show-bind plans, and --report-bindings agrees with the kernel",
          "[binding]") {
  if (allowed_cpus() < 2) DDL_SKIP("there is one CPU");
  const Run two = run({"-np", "2", "--report-bindings"});
  INFO(two.out << two.err);
  CHECK(two.status == 0);
  REQUIRE(two.seen().size() == 2);
  CHECK(two.seen() == planned(2));
  CHECK(two.reported() == two.seen());
  CHECK(two.seen().at(0) != two.seen().at(1));
  CHECK_THAT(two.err, !Contains("warning"));
}

TEST_CASE("oversubscribed ranks and ranks with --bind-to none are not bound", "[binding]") {
  const std::string many = std::to_string(allowed_cpus() + 1);
  const Run oversubscribed = run({"-np", many, "--oversubscribe", "--report-bindings"});
  const Run unbound = run({"-np", "1", "--bind-to", "none", "--report-bindings"});
  CHECK(oversubscribed.status == 0);
  CHECK(unbound.status == 0);
  const std::string all = unbound.seen().at(0);
  for (const auto& [rank, cpus] : oversubscribed.seen()) CHECK(cpus == all);
  CHECK(oversubscribed.seen().size() == static_cast<std::size_t>(allowed_cpus()) + 1);
  CHECK_THAT(unbound.err, Contains("(not bound)"));
}

TEST_CASE("more cores or GPUs than the node has are refused, and nothing starts", "[binding]") {
  const std::string many = std::to_string(allowed_cpus() + 1);
  const Run too_many_cores = run({"-np", "1", "--cores-per-rank", many});
  CHECK(too_many_cores.status == contract::kUsageError);
  CHECK_THAT(too_many_cores.err, Contains("--cores-per-rank " + many + ": local rank 0 has "));
  CHECK(too_many_cores.out.empty());
  const Run no_gpu =
      run({"-np", "1", "--bind-to", "gpu"}, {{"CUDA_VISIBLE_DEVICES", ""}, {"ROCR_VISIBLE_DEVICES", ""}});
  CHECK(no_gpu.status == contract::kUsageError);
  CHECK_THAT(no_gpu.err, Contains("this node has no GPU"));
}

}  // namespace
}  // namespace ddl::e2e
