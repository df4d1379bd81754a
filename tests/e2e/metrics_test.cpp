// What a site's monitoring reads of running jobs, as Prometheus's own tools read it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

const std::string kJobName = "a \"b\" \\c\nd";

/// Two ranks that make calls until SIGUSR1.
class BusyJob {
 public:
  explicit BusyJob(const Words& options = {})
      : job_(scratch_, ddlrun(Words{"-np", "2", "--job-name", kJobName} + options +
                              Words{program("timeline_program"), "until_signal"})) {
    job_.wait_for("ready", 2);
  }

  Job& operator*() { return job_; }
  Job* operator->() { return &job_; }
  /// What ddlrun --metrics prints.
  std::string scrape(const Words& options = {}) {
    Job shown(scratch_, ddlrun(Words{"--metrics", std::to_string(job_.pid())} + options));
    const int exit_code = shown.wait();
    INFO(shown.err());
    REQUIRE(exit_code == 0);
    return shown.out();
  }
  /// Of a file: the job itself writes nothing meanwhile.
  void wait_until(const std::string& what, const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(kTestTimeout);
    INFO("waiting for: " << what);
    while (!condition()) {
      REQUIRE_FALSE(deadline.has_passed());
      (void)job_.is_silent_for(std::chrono::milliseconds(10));
    }
  }
  void end() {
    job_.send(SIGUSR1);
    CHECK(job_.wait_and_require_nothing_left() == 0);
  }

 private:
  const Scratch scratch_;
  Job job_;
};

/// By name and labels.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> samples;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t space = line.rfind(' ');
    if (line.empty() || line.starts_with('#') || space == std::string_view::npos) continue;
    samples[std::string(line.substr(0, space))] = std::stod(std::string(line.substr(space + 1)));
  }
  return samples;
}

/// Runs a line of shell with the text as its input.
void check_by(const std::string& line, const std::string& text) {
  const Scratch scratch;
  const std::string file = scratch.path("text");
  std::ofstream(file) << text;
  Job tool(scratch, {{"sh", "-c", line + " <" + file + " 2>&1"}});
  const int exit_code = tool.wait();
  INFO(tool.out());
  CHECK(exit_code == 0);
  CHECK(tool.out().empty());
}

TEST_CASE("counters of a running job rise, and never fall", "[metrics]") {
  constexpr int kScrapes = 20;
  BusyJob job;
  std::map<std::string, double> first, last;
  for (int scrape = 0; scrape < kScrapes; ++scrape) {
    const auto now = samples_of(job.scrape());
    for (const auto& [name, value] : last) {
      CAPTURE(name);
      REQUIRE(now.contains(name));
      if (name.find("_total{") != std::string::npos) CHECK(now.at(name) >= value);
    }
    if (first.empty()) first = now;
    last = now;
  }
  int rising = 0;
  for (const auto& [name, value] : last) {
    const bool is_of_calls = name.starts_with("ddlrun_rank_collectives_total{") ||
                             name.starts_with("ddlrun_rank_collective_bytes_total{");
    const bool is_of_program =
        name.starts_with("ddlrun_rank_steps_total{") || (is_of_calls && name.ends_with(",op=\"allreduce\"}"));
    if (!is_of_program) continue;
    CAPTURE(name);
    CHECK(value > first.at(name));
    ++rising;
  }
  CHECK(rising == 2 * 3);
  const auto of_job = [](const std::map<std::string, double>& samples, const std::string& name,
                         const std::string& label) {
    for (const auto& [key, value] : samples)
      if (key.starts_with(name + "{") && key.ends_with("," + label + "}")) return value;
    return -1.0;
  };
  for (const char* const label : {"direction=\"receive\"", "direction=\"transmit\""}) {
    CAPTURE(label);
    const double before = of_job(first, "ddlrun_link_bytes_total", label);
    CHECK(before > 0);
    CHECK(of_job(last, "ddlrun_link_bytes_total", label) > before);
  }
  const std::size_t lines = std::ranges::count(job->out(), '\n');
  CHECK(of_job(last, "ddlrun_output_bytes_total", "stream=\"stdout\"") ==
        static_cast<double>(job->out().size() - lines * std::string("[0]<stdout>:").size()));
  CHECK(last.size() > 20);
  job.end();
}

TEST_CASE("promtool finds nothing wrong with the metrics of a running job", "[metrics]") {
  if (!is_in_path("promtool")) DDL_SKIP("there is no promtool; scripts/setup --all installs it");
  BusyJob job;
  check_by("promtool check metrics", job.scrape());
  job.end();
}

TEST_CASE("a strict reader of OpenMetrics accepts the metrics of a running job", "[metrics]") {
  const std::string import =
      "from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse";
  if (std::system(("/usr/bin/python3 -c '" + import + "' 2>/dev/null").c_str()) != 0)
    DDL_SKIP("there is no python3-prometheus-client; scripts/setup --all installs it");
  BusyJob job;
  check_by("/usr/bin/python3 -c 'import sys; " + import +
               "; found = {family.name: family for family in parse(open(0, newline=\"\").read())}; "
               "assert \"ddlrun_rank_steps\" in found, found; "
               "name = found[\"ddlrun_job\"].samples[0].labels[\"name\"]; "
               "assert name == sys.argv[1], name' '" +
               kJobName + "'",
           job.scrape({"--openmetrics"}));
  job.end();
}

TEST_CASE("a folder of metrics has a whole file of each job while it runs", "[metrics]") {
  const Scratch scratch;
  const std::string folder = scratch.path("");
  const auto names = [&] {
    Words found;
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (file.path().extension() == ".prom") found.push_back(file.path().filename());
    std::ranges::sort(found);
    return found;
  };
  std::array<char, 256> hostname{};
  REQUIRE(::gethostname(hostname.data(), hostname.size()) == 0);
  const std::string host = hostname.data();
  // No process has this number. That of another host may have.
  const std::string dead = "ddlrun-" + host + "-4194305-0a.prom", other = "ddlrun-other-4194305-0a.prom";
  for (const std::string& name : {dead, other, std::string("node.prom")})
    std::ofstream(scratch.path(name)) << "x 1\n";

  BusyJob job(
      {"--metrics-file", folder, "--metrics-history", scratch.path("h.om"), "--metrics-interval", "0.05"});
  job.wait_until("a file of the job", [&] { return names().size() == 3; });
  const std::string start = "ddlrun-" + host + "-" + std::to_string(job->pid()) + "-";
  std::string file;
  for (const std::string& name : names()) {
    CHECK(name != dead);
    if (name.starts_with(start)) file = folder + "/" + name;
  }
  // It is read all the time while it is written anew ten times.
  constexpr int kFiles = 10;
  std::set<std::string> seen;
  const Deadline deadline = Deadline::after(kTestTimeout);
  while (seen.size() < kFiles) {
    REQUIRE_FALSE(deadline.has_passed());
    const std::string text = bytes_of(file);
    REQUIRE_THAT(text, Contains("ddlrun_job_info{"));
    REQUIRE(text.ends_with("\n"));
    REQUIRE(samples_of(text).size() > 5);
    seen.insert(text);
  }
  job.wait_until("calls in the file",
                 [&] { return bytes_of(file).find("ddlrun_rank_collectives_total{") != std::string::npos; });
  job.end();
  CHECK(names() == Words{other, "node.prom"});

  const std::string history = bytes_of(scratch.path("h.om"));
  CHECK(history.ends_with("\n# EOF\n"));
  CHECK(history.find("# EOF") == history.size() - 6);
  if (!is_in_path("promtool")) DDL_SKIP("there is no promtool; scripts/setup --all installs it");
  Job blocks(scratch, {{"promtool", "tsdb", "create-blocks-from", "openmetrics", scratch.path("h.om"),
                        scratch.path("blocks")}});
  CHECK(blocks.wait() == 0);
  std::filesystem::create_directory(scratch.path("blocks/wal"));  // promtool wants to see one
  Job listed(scratch, {{"promtool", "tsdb", "dump", scratch.path("blocks")}});
  CHECK(listed.wait() == 0);
  // The last number of rank 0's steps, with its time in milliseconds.
  std::smatch last;
  const std::size_t at = history.rfind("ddlrun_rank_steps_total{");
  REQUIRE(at != std::string::npos);
  const std::string sample = history.substr(at, history.find('\n', at) - at);
  REQUIRE(std::regex_match(sample, last, std::regex("(\\S+)\\{.*\\} ([0-9]+) ([0-9]+)\\.([0-9]{3})")));
  CHECK_THAT(listed.out(), Contains("__name__=\"ddlrun_rank_steps_total\"") &&
                               Contains(" " + last.str(2) + " " + last.str(3) + last.str(4) + "\n"));
}

TEST_CASE("node_exporter shows the metrics of two jobs that write into its folder", "[metrics]") {
  const std::string exporter = "prometheus-node-exporter";
  if (!is_in_path(exporter)) DDL_SKIP("there is no " + exporter + "; scripts/setup --all installs it");
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("metrics"));
  const Words options = {"--metrics-file", scratch.path("metrics"), "--metrics-interval", "0.1"};
  BusyJob one(options), other(options);
  one.wait_until("files of both", [&] {
    return std::distance(std::filesystem::directory_iterator(scratch.path("metrics")), {}) == 2;
  });
  Command command{{exporter, "--collector.disable-defaults", "--collector.textfile",
                   "--collector.textfile.directory=" + scratch.path("metrics"),
                   "--web.listen-address=127.0.0.1:0"}};
  Job served(scratch, command);
  served.wait_for("Listening on");
  std::smatch address;
  const std::string log = served.err();
  REQUIRE(std::regex_search(log, address, std::regex("address=(127[0-9.:]+)")));
  Job asked(scratch, {{"/usr/bin/python3", "-c",
                       "import sys, urllib.request; "
                       "print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())",
                       "http://" + address.str(1) + "/metrics"}});
  const int exit_code = asked.wait();
  INFO(asked.err());
  CHECK(exit_code == 0);
  CHECK_THAT(asked.out(), Contains("node_textfile_scrape_error 0\n"));
  const auto samples = samples_of(asked.out());
  CHECK(std::ranges::count_if(
            samples, [](const auto& sample) { return sample.first.starts_with("ddlrun_job_info{"); }) == 2);
  served.send(SIGKILL);
  one.end();
  other.end();
}

TEST_CASE("metrics that cannot be written are refused before the job", "[metrics]") {
  const Scratch scratch;
  const std::vector<std::pair<Words, std::string>> wrong = {
      {{"--metrics-file", scratch.path("x.txt")},
       "is neither a folder, nor a file with a name that ends with .prom"},
      {{"--metrics-file", scratch.path("none/x.prom")}, "none/x.prom"},
      {{"--metrics-history", scratch.path("none/x.om")}, "none/x.om"},
      {{"--metrics-file", scratch.path("x.prom"), "--metrics-interval", "0"}, "leaves no time"},
      {{"--metrics-file", scratch.path("x.prom"), "--metrics-interval", "0.04"},
       "'0.04' seconds is less than"},
      {{"--metrics-file", scratch.path("x.prom"), "--metrics-detail", "all"}, "--metrics-detail"},
      {{"--openmetrics"}, "--openmetrics belongs to --metrics"},
  };
  for (const auto& [options, message] : wrong) {
    Job refused(scratch, ddlrun(Words{"-np", "1"} + options + Words{"echo", "ran"}));
    CHECK(refused.wait() == 2);
    CHECK_THAT(refused.err(), Contains(message) && Contains("hint: "));
    CHECK(refused.out().empty());
  }
}

}  // namespace
}  // namespace ddl::e2e
