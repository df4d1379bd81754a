// Ranks on this machine are bound as --show-bind plans, and --report-bindings prints the kernel's binding of each.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>

#include <nlohmann/json.hpp>

#include "base/cpu_set.h"
#include "base/deadline.h"
#include "base/fd.h"
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

/// A node with two cores and two GPUs, of which pci_type is "0302 [10de:20b0]" and the like.
std::string node_with_gpus(const std::string& pci_type, const std::vector<std::string>& bus_ids) {
  const auto object = [](const std::string& type, int number, const std::string& cpus) {
    return "<object type=\"" + type + "\" os_index=\"" + std::to_string(number) + "\" cpuset=\"" + cpus +
           "\" complete_cpuset=\"" + cpus + "\" nodeset=\"1\" complete_nodeset=\"1\"";
  };
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" +
      ("<topology version=\"2.0\">" + object("Machine", 0, "0x3")) +
      " allowed_cpuset=\"0x3\" allowed_nodeset=\"1\">" + object("NUMANode", 0, "0x3") + "/>";
  for (int core = 0; core < 2; ++core) {
    const std::string cpus = core == 0 ? "0x1" : "0x2";
    text += object("Core", core, cpus) + ">" + object("PU", core, cpus) + "/></object>";
  }
  text += "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">";
  for (const std::string& bus_id : bus_ids)
    text += "<object type=\"PCIDev\" pci_busid=\"" + bus_id + "\" pci_type=\"" + pci_type +
            " [0000:0000] 00\" pci_link_speed=\"0\"/>";
  return text + "</object></object></topology>";
}

/// Only the stand-ins are found, or nothing: an empty file stops the search for a library of its name.
ddl::Environment with_libraries(const Scratch& scratch, const std::string& topology, bool has_runtimes) {
  for (const char* name : {"libnvidia-ml.so.1", "librocm_smi64.so"}) scratch.write(name, "");
  for (const char* name :
       {"libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    if (!has_runtimes) scratch.write(name, "");
  }
  return {{"HWLOC_XMLFILE", topology}, {"LD_LIBRARY_PATH", scratch.path() + ":" + DDL_E2E_STAND_INS}};
}

struct GpuVendorCase {
  std::string pci_type;
  std::string variable;
  std::string uuid;  ///< the beginning of it
};

TEST_CASE(
    "--report-bindings has the GPUs that ranks see, by CUDA and by HIP, and says if others were planned",
    "[binding]") {
  const auto vendor = GENERATE(GpuVendorCase{"0302 [10de:20b0]", "CUDA_VISIBLE_DEVICES", "GPU-[0-9a-f-]{36}"},
                               GpuVendorCase{"0380 [1002:740c]", "ROCR_VISIBLE_DEVICES", "GPU-[0-9a-f]{16}"});
  CAPTURE(vendor.variable);
  const Scratch scratch;
  const auto report = [&](const std::vector<std::string>& bus_ids, bool has_runtimes,
                          const std::vector<std::string>& options = {"--visible-gpus", "own"}) {
    const std::string file = scratch.write("node.xml", node_with_gpus(vendor.pci_type, bus_ids));
    Command command = ddlrun({"-np", "2", "--oversubscribe", "--report-bindings", "true"});
    command.argv.insert(command.argv.begin() + 1, options.begin(), options.end());
    command.environment = with_libraries(scratch, file, has_runtimes);
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    return job.err();
  };
  const std::string planned = report({"0000:c1:00.0", "0000:c2:00.0"}, true);
  const std::regex line("rank ([01]) on .*, " + vendor.uuid + " at (0000:c[12]:00.0) as planned");
  std::map<std::string, std::string> seen;
  for (std::sregex_iterator at(planned.begin(), planned.end(), line), end; at != end; ++at)
    seen[(*at)[1]] = (*at)[2];
  CAPTURE(planned);
  CHECK(seen == std::map<std::string, std::string>{{"0", "0000:c1:00.0"}, {"1", "0000:c2:00.0"}});
  CHECK_THAT(planned, !Contains("was planned"));
  const std::string together = report({"0000:c1:00.0", "0000:c2:00.0"}, true, {});
  for (const char* own : {"c1:00.0 as planned, index 0 of the 2", "c2:00.0 as planned, index 1 of the 2"})
    CHECK_THAT(together, Contains(std::string(" at 0000:") + own + " that it sees"));

  // GPU 0 of the runtime is another one than that of the description.
  const std::string others = report({"0000:c2:00.0", "0000:c3:00.0"}, true);
  CHECK_THAT(others, Contains("warning: rank 0 on ") &&
                         Contains(" sees GPU 0000:c1:00.0, but GPU 0000:c2:00.0 was planned: ") &&
                         Contains(" at 0000:c2:00.0 (planned: 0000:c3:00.0)\n"));
  const std::string text =
      report({"0000:c2:00.0", "0000:c3:00.0"}, true, {"--visible-gpus", "own", "--json"});
  const auto binding = nlohmann::json::parse(split(trim(text), '\n').back())["ranks"][1]["binding"];
  REQUIRE(binding["gpus"].size() == 1);
  CHECK(binding["gpus"][0]["bus_id"] == "0000:c2:00.0");
  CHECK(std::regex_match(binding["gpus"][0]["uuid"].get<std::string>(), std::regex(vendor.uuid)));
  CHECK_THAT(binding["difference"].get<std::string>(), Contains("but GPU 0000:c3:00.0 was planned"));
  CHECK_THAT(report({"0000:c1:00.0", "0000:c2:00.0"}, false), !Contains("GPU"));
}

TEST_CASE("how much the GPUs of ranks are used is asked for a report, and otherwise not", "[binding]") {
  const Scratch scratch;
  const std::string topology =
      scratch.write("node.xml", node_with_gpus("0302 [10de:20b0]", {"0000:c1:00.0", "0000:c3:00.0"}));
  ddl::Environment environment = with_libraries(scratch, topology, false);
  std::filesystem::remove(scratch.path("libnvidia-ml.so.1"));
  std::filesystem::create_symlink(DDL_E2E_FAKE_NVML, scratch.path("libnvidia-ml.so.1"));
  const auto start = [&](const std::vector<std::string>& options) {
    // Two ranks share each GPU, which counts once.
    Command command = ddlrun({"-np", "4", "--oversubscribe", program("timeline_program"), "until_signal"});
    command.argv.insert(command.argv.begin() + 1, options.begin(), options.end());
    command.environment = environment;
    auto job = std::make_unique<Job>(scratch, command);
    job->wait_for("ready", 4);
    return job;
  };
  const auto asks = [](Job& job) {
    return std::ranges::any_of(job.processes(), [](const Process& process) {
      const auto words = read_file("/proc/" + std::to_string(process.pid) + "/cmdline");
      return words && words->find("--watch-gpus") != std::string::npos;
    });
  };
  const auto end = [](Job& job) {
    job.send(SIGUSR1);
    CHECK(job.wait_and_require_nothing_left() == 0);
  };

  const auto job = start({"--report-json", scratch.path("report.json")});
  CHECK(asks(*job));
  std::string metrics;
  const Deadline deadline = Deadline::after(kTestTimeout);
  while (metrics.find("\nddlrun_gpu_energy_joules_total{") == std::string::npos) {
    REQUIRE_FALSE(deadline.has_passed());
    Job shown(scratch, ddlrun({"--metrics", std::to_string(job->pid())}));
    CHECK(shown.wait() == 0);
    metrics = shown.out();
  }
  CHECK_THAT(metrics, Contains(",gpu=\"GPU-aaaa\"} 0.75\n") && !Contains("GPU-bbbb"));
  end(*job);
  const auto host = nlohmann::json::parse(*read_file(scratch.path("report.json")))["host_usage"][0];
  REQUIRE(host["gpus"].size() == 2);
  CHECK(host["gpus_unknown"].is_null());
  CHECK(host["gpus"][0]["name"] == "GPU-aaaa");
  CHECK(host["gpus"][0]["busy_ratio"] == 0.75);
  CHECK(host["gpus"][0]["memory_limit_bytes"] == std::int64_t{140} << 30);
  CHECK(host["gpus"][1]["name"] == "GPU-bbbb");
  CHECK(host["gpus"][1]["busy_ratio"].is_null());
  CHECK(host["gpus"][1]["joules"].is_null());

  const auto other = start({});
  CHECK_FALSE(asks(*other));
  end(*other);
  environment["DDL_FAKE_GPUS"] = "error";
  const auto failing = start({"--report-json", scratch.path("report.json")});
  end(*failing);
  const auto unknown = nlohmann::json::parse(*read_file(scratch.path("report.json")))["host_usage"][0];
  CHECK(unknown["gpus"].empty());
  CHECK_THAT(unknown["gpus_unknown"].get<std::string>(),
             Contains("Driver Not Loaded") || Contains("did not answer before"));
}

TEST_CASE("with --site ranks are in the order that the site advises", "[binding]") {
  const Scratch scratch;
  const std::string site = scratch.write("own.yaml", "name: own\nbinding: {rank-order: cpu}\n");
  const auto gpus = [&](std::vector<std::string> options) {
    options.insert(options.end(),
                   {"-np", "4", "--oversubscribe", "--visible-gpus", "own", "--dry-run", "true"});
    Command command = ddlrun(options);
    command.environment = with_libraries(scratch, DDL_E2E_TOPOLOGIES "/juwels-booster.xml", false);
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    std::string order;
    for (const auto& [rank, gpu] : by_rank(job.out(), R"(rank (\d): .* CUDA_VISIBLE_DEVICES=(\d))"))
      order += gpu;
    return order;
  };
  CHECK(gpus({}) == "0123");
  CHECK(gpus({"--site", site}) == "1032");
  CHECK(gpus({"--site", site, "--rank-order", "gpu"}) == "0123");
}

TEST_CASE("ranks that a rankfile puts on one core are a warning, unless that is asked for", "[binding]") {
  if (!CpuSet::allowed().contains(0)) DDL_SKIP("the first core may not be used");
  const Scratch scratch;
  const std::string file = scratch.path() + "/ranks";
  std::ofstream(file) << "rank 0=localhost slot=0\nrank 1=localhost slot=0\n";
  const auto warning = Contains("warning: local ranks 0 and 1 share the core of CPU 0");
  const Run warned = run({"--rankfile", file});
  CHECK(warned.status == 0);
  CHECK_THAT(warned.err, warning);
  CHECK_THAT(run({"--rankfile", file, "--oversubscribe"}).err, !warning);
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
