// The port that a job opens for a site's Prometheus: whom it answers, how Prometheus finds it, and that the shipped
// dashboards have data then.
#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "e2e/harness/elastic_job.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;
using Words = std::vector<std::string>;

/// A connection to a port of this host by a socket of this user; the caller must be root if it is another one.
UniqueFd connect_as(uid_t user, std::uint16_t port) {
  const auto before = static_cast<uid_t>(::setfsuid(user));
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setfsuid(before);
  const timeval limit{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(port);
  REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&in), sizeof in) == 0);
  return socket;
}

/// The whole answer; request: "GET /metrics".
std::string ask_port(std::uint16_t port, const std::string& request, const std::string& headers = "",
                     uid_t user = ::geteuid()) {
  const UniqueFd socket = connect_as(user, port);
  const std::string text = request + " HTTP/1.0\r\n" + headers + "\r\n";
  if (!write_all(socket.get(), text.data(), text.size())) return "";
  std::string answer, buffer(1 << 16, '\0');
  for (ssize_t got = 0; (got = ::recv(socket.get(), buffer.data(), buffer.size(), 0)) > 0;)
    answer.append(buffer, 0, static_cast<std::size_t>(got));
  return answer;
}

/// "HTTP/1.0 200 OK" -> 200; 0: there is no answer.
int status_of(const std::string& answer) { return answer.size() < 12 ? 0 : std::stoi(answer.substr(9)); }

/// What the only file for discovery in the folder says.
std::uint16_t told_port(const std::string& targets) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(targets))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  const json list = json::parse(*read_file(files.front()));
  const std::string target = list.at(0).at("targets").at(0);
  REQUIRE_THAT(target, StartsWith("127.0.0.1:"));
  return static_cast<std::uint16_t>(std::stoi(target.substr(10)));
}

/// The counters of ranks in an answer, by name and labels.
std::map<std::string, double> rank_counters(const std::string& answer) {
  std::map<std::string, double> counters;
  for (const std::string_view line : split(answer, '\n')) {
    const std::size_t space = line.rfind(' '), labels = line.find("_total{");
    if (line.starts_with("ddlrun_rank_") && labels != std::string_view::npos)
      counters[std::string(line.substr(0, space))] = parse_number(trim(line.substr(space))).value();
  }
  return counters;
}

/// Two ranks that make calls until SIGUSR1, and a port.
class WatchedJob {
 public:
  explicit WatchedJob(const Words& options = {})
      : job_(scratch_, ddlrun(Words{"-np", "2", "--metrics-listen", "0", "--metrics-discovery", targets()} +
                              options + Words{program("timeline_program"), "until_signal"})) {
    job_.wait_for("ready", 2);
  }

  Job* operator->() { return &job_; }
  std::string targets() const {
    std::filesystem::create_directory(scratch_.path("targets"));
    return scratch_.path("targets");
  }
  std::uint16_t port() const { return told_port(targets()); }
  void end() {
    job_.send(SIGUSR1);
    CHECK(job_.wait_and_require_nothing_left() == 0);
    CHECK(std::filesystem::is_empty(targets()));
  }
  const Scratch& scratch() const { return scratch_; }

 private:
  const Scratch scratch_;
  Job job_;
};

TEST_CASE("Prometheus's question is answered at the port, in the format that it wants", "[monitoring]") {
  WatchedJob job;
  const std::string classic = ask_port(job.port(), "GET /metrics");
  CHECK(status_of(classic) == 200);
  CHECK_THAT(classic, Contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n") &&
                          Contains("\nddlrun_ranks{") && Contains("state=\"running\"} 2\n") &&
                          Contains("\nddlrun_startup_seconds{") && Contains("phase=\"all_ranks_started\"") &&
                          Contains("\nddlrun_head_cpu_seconds_total{") && !Contains("# EOF"));
  const std::string open = ask_port(
      job.port(), "GET /metrics?a=b",
      "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n");
  CHECK_THAT(open,
             Contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n") &&
                 Catch::EndsWith("# EOF\n"));
  CHECK(status_of(ask_port(job.port(), "GET /")) == 404);
  CHECK(status_of(ask_port(job.port(), "PUT /metrics", "Content-Length: 0\r\n")) == 405);
  CHECK(status_of(ask_port(job.port(), "GET /metrics", "X: " + std::string(1 << 20, 'x') + "\r\n")) != 200);
  job.end();
}

TEST_CASE("in a thousand answers of a running job no counter falls", "[monitoring]") {
  WatchedJob job;
  const std::uint16_t port = job.port();
  std::map<std::string, double> last;
  for (int answer = 0; answer < 1000; ++answer) {
    const auto now = rank_counters(ask_port(port, "GET /metrics"));
    REQUIRE(now.size() > 4);
    for (const auto& [name, value] : last) {
      CAPTURE(answer, name);
      REQUIRE(now.contains(name));
      REQUIRE(now.at(name) >= value);
    }
    last = now;
  }
  job.end();
}

TEST_CASE("the port answers its own user, those who are named, and those who know the token",
          "[monitoring]") {
  if (::geteuid() != 0) DDL_SKIP("only root makes sockets of another user");
  constexpr uid_t kNamed = 65533, kOther = 65534;
  const Scratch scratch;
  const std::string token = "a-token-that-nobody-else-knows", file = scratch.path("token");
  std::ofstream(file) << token << "\n";
  ::chmod(file.c_str(), 0600);
  WatchedJob job({"--metrics-users", std::to_string(kNamed)});
  CHECK(status_of(ask_port(job.port(), "GET /metrics", "", kNamed)) == 200);
  const std::string refused = ask_port(job.port(), "GET /metrics", "", kOther);
  CHECK(status_of(refused) == 403);
  CHECK(refused.find("ddlrun_") == std::string::npos);
  job.end();
  WatchedJob guarded({"--metrics-token-file", file, "--report", scratch.path("r.html"), "--report-json",
                      scratch.path("r.json")});
  CHECK(status_of(ask_port(guarded.port(), "GET /metrics", "", kOther)) == 401);
  CHECK(status_of(ask_port(guarded.port(), "GET /metrics", "Authorization: Bearer " + token + "\r\n",
                           kOther)) == 200);
  for (const Process& process : guarded->processes()) {
    const std::string folder = "/proc/" + std::to_string(process.pid);
    for (const char* const name : {"/cmdline", "/environ"}) {
      CAPTURE(folder + name);
      CHECK(read_file(folder + name).value_or("").find(token) == std::string::npos);
    }
  }
  guarded.end();
  for (const std::string& text :
       {guarded->out(), guarded->err(), bytes_of(scratch.path("r.html")), bytes_of(scratch.path("r.json"))})
    CHECK(text.find(token) == std::string::npos);
}

TEST_CASE("clients that ask for nothing do not keep the job from its end", "[monitoring]") {
  WatchedJob job;
  const std::uint16_t port = job.port();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect_as(::geteuid(), port));
  const std::string half = "GET /metr";
  for (const UniqueFd& one : silent) (void)write_all(one.get(), half.data(), half.size());
  job.end();
}

TEST_CASE("a port, a token or a folder that cannot be used is refused, and nothing is started",
          "[monitoring]") {
  const Scratch scratch;
  const auto write = [&](const std::string& name, const std::string& text, mode_t mode) {
    std::ofstream(scratch.path(name)) << text;
    ::chmod(scratch.path(name).c_str(), mode);
    return scratch.path(name);
  };
  WatchedJob other;
  const std::string used = std::to_string(other.port());
  const std::string open = write("open", "0123456789abcdef\n", 0640), brief = write("brief", "0123\n", 0600),
                    two = write("two", "0123456789 abcdef\n", 0600);
  const std::vector<std::pair<Words, std::string>> wrong = {
      {{"--metrics-listen", used}, "127.0.0.1:" + used + ": Address already in use"},
      {{"--metrics-listen", "0.0.0.0:0"},
       "other hosts can reach this address, so it needs --metrics-token-file"},
      {{"--metrics-listen", "localhost:0"}, "is neither a port, nor an address with one"},
      {{"--metrics-listen", "70000"}, "is neither a port"},
      {{"--metrics-listen", "0", "--metrics-users", "no-such-user"}, "this host has no user no-such-user"},
      {{"--metrics-listen", "0", "--metrics-users", "root,"}, "a name of a user is empty"},
      {{"--metrics-listen", "0", "--metrics-token-file", scratch.path("none")}, "No such file"},
      {{"--metrics-listen", "0", "--metrics-token-file", scratch.path("")}, "it is not a regular file"},
      {{"--metrics-listen", "0", "--metrics-token-file", open}, "its mode must be 0600"},
      {{"--metrics-listen", "0", "--metrics-token-file", brief}, "at least 16 characters"},
      {{"--metrics-listen", "0", "--metrics-token-file", two}, "it is not one word"},
      {{"--metrics-listen", "0", "--metrics-discovery", scratch.path("none")}, "there is no folder"},
      {{"--metrics-discovery", scratch.path("")},
       "--metrics-discovery is about the port of --metrics-listen"},
      {{"--metrics-users", "root"}, "--metrics-users is about the port"},
  };
  for (const auto& [options, message] : wrong) {
    Job refused(scratch, ddlrun(Words{"-np", "1"} + options + Words{"echo", "ran"}));
    INFO(join(options, " "));
    CHECK(refused.wait() == 2);
    CHECK_THAT(refused.err(), Contains(message) && (Contains("hint: ") || Contains("next: ")));
    CHECK(refused.out().empty());
  }
  other.end();
}

TEST_CASE("a job that goes on has the same port, also after it has forked", "[monitoring]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("targets"));
  ElasticJob job(
      kTwoNames + kOthersAtOnce +
      Words{"--min-np", "2", "--metrics-listen", "0", "--metrics-discovery", scratch.path("targets")});
  const auto pids = job.pids(0, 4);
  const std::uint16_t port = told_port(scratch.path("targets"));
  const std::string first = ask_port(port, "GET /metrics");
  CHECK_THAT(first, Contains("state=\"running\"} 4\n"));
  const UniqueFd waiting = connect_as(::geteuid(), port);
  ::kill(pids.at(3), SIGKILL);
  job.pids(2, 4);  // with another process in its place
  const std::string answer = ask_port(port, "GET /metrics");
  CHECK_THAT(answer, Contains("\nddlrun_generation{") && Contains("} 2\n") &&
                         Contains("state=\"running\"} 4\n") && Contains("reason=\"rank_failed\"} 1\n") &&
                         !Contains("ddlrun_output_bytes_total"));
  // No counter has fallen, not even those of the rank that has another process now.
  const auto before = rank_counters(first), after = rank_counters(answer);
  CHECK(std::ranges::count_if(before, [](const auto& one) {
          return one.first.starts_with("ddlrun_rank_collectives_total{");
        }) >= 4);
  for (const auto& [name, value] : before) {
    INFO(name);
    REQUIRE(after.contains(name));
    CHECK(after.at(name) >= value);
  }
  CHECK(told_port(scratch.path("targets")) == port);
  CHECK(job.stop() == 0);
  CHECK(std::filesystem::is_empty(scratch.path("targets")));
}

TEST_CASE("each generation of a job that is started again tells Prometheus its own port", "[monitoring]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("targets"));
  Command command = ddlrun({"-np", "1", "--max-restarts", "2", "--metrics-listen", "0", "--metrics-discovery",
                            scratch.path("targets"), "--metrics-file", scratch.path("targets"),
                            "--metrics-interval", "0.05", "sh", "-c", "echo begun; read line; exit $line"});
  command.input = Command::Input::kPipe;
  Job job(scratch, command);
  job.wait_for("begun");
  const std::uint16_t first = told_port(scratch.path("targets"));
  CHECK(status_of(ask_port(first, "GET /metrics")) == 200);
  job.write("1\n");
  job.wait_for("begun", 2);
  const std::string answer = ask_port(told_port(scratch.path("targets")), "GET /metrics");
  CHECK_THAT(answer, Contains("\nddlrun_generation{") && Contains("} 1\n"));
  job.write("0\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(std::filesystem::is_empty(scratch.path("targets")));
}

TEST_CASE("without discovery ddlrun says which free port it has", "[monitoring]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "1", "--metrics-listen", "127.0.0.2:0", "true"}));
  CHECK(job.wait() == 0);
  CHECK(std::regex_search(job.err(), std::regex("metrics: http://127\\.0\\.0\\.2:[0-9]+/metrics\n")));
}

TEST_CASE("what a killed ddlrun has told Prometheus is removed by the next one", "[monitoring]") {
  std::string left;
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("targets"));
  std::ofstream(scratch.path("targets/other.json")) << "[]\n";
  const Words options = {"--metrics-listen", "0", "--metrics-discovery", scratch.path("targets")};
  {
    Job killed(scratch,
               ddlrun(Words{"-np", "1"} + options + Words{"sh", "-c", "echo begun; exec sleep 1000"}));
    killed.wait_for("begun");
    killed.send(SIGKILL);
    (void)killed.wait_for_exit();
    killed.require_all_gone();
  }
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(scratch.path("targets")), {});
  };
  CHECK(count() == 2);
  Job next(scratch,
           ddlrun(Words{"-np", "1"} + options + Words{"sh", "-c", "ls \"$0\"", scratch.path("targets")}));
  CHECK(next.wait() == 0);
  CHECK(split(trim(next.out()), '\n').size() == 2);  // its own, and that of somebody else
  CHECK(count() == 1);
}

// ---- a real Prometheus ----

/// Asks one job every second, and finds it by the files of --metrics-discovery.
class Prometheus {
 public:
  Prometheus(const Scratch& scratch, const std::string& targets)
      : scratch_(scratch), server_(scratch, command(targets)) {
    server_.wait_for("Server is ready to receive web requests");
    server_.wait_for("Listening on");  // another thread says it
    std::smatch listening;
    const std::string log = server_.err();
    REQUIRE(std::regex_search(log, listening, std::regex("Listening on\" address=(\\S+)")));
    address_ = listening[1];
  }
  ~Prometheus() { server_.send(SIGKILL); }
  Prometheus(const Prometheus&) = delete;
  Prometheus& operator=(const Prometheus&) = delete;

  /// What promtool prints: a line for each series; "": there is none. Error: the query is not valid.
  Result<std::string> ask(const std::string& query) const {
    Job promtool(scratch_, {{"promtool", "query", "instant", "http://" + address_, query}});
    const int exit_code = promtool.wait();
    if (exit_code != 0) return fail(ErrorCode::kInvalidArgument, promtool.err());
    return std::string(trim(promtool.out()));
  }
  /// Whether the query has an answer within the patience of a test.
  bool answers(const std::string& query, bool is_wanted = true) {
    const Deadline deadline = Deadline::after(kTestTimeout);
    while (!deadline.has_passed()) {
      const auto answer = ask(query);
      if (answer && answer->empty() != is_wanted) return true;
      (void)server_.is_silent_for(std::chrono::milliseconds(100));
    }
    return false;
  }

 private:
  Command command(const std::string& targets) const {
    std::ofstream(scratch_.path("prometheus.yml"))
        << "global: {scrape_interval: 1s}\n"
        << "rule_files: ['" << DDL_MONITORING << "/alerts.yml']\n"
        << "scrape_configs:\n"
        << "  - {job_name: ddlrun, file_sd_configs: [{files: ['" << targets << "/*.json']}]}\n";
    return {{"prometheus", "--config.file=" + scratch_.path("prometheus.yml"),
             "--storage.tsdb.path=" + scratch_.path("data"), "--web.listen-address=127.0.0.1:0"}};
  }

  const Scratch& scratch_;
  std::string address_;
  Job server_;
};

struct Query {
  std::string panel;
  std::string text;
};

/// All queries of a dashboard, of the job with this id.
std::vector<Query> queries_of(const std::string& dashboard, const std::string& job_id) {
  std::vector<Query> queries;
  const json file = json::parse(*read_file(std::string(DDL_MONITORING) + "/" + dashboard));
  for (const json& panel : file["panels"])
    for (const json& target : panel.value("targets", json::array())) {
      std::string text = target["expr"];
      text = std::regex_replace(text, std::regex("\\$jobid"), job_id);
      queries.push_back({panel["title"], std::regex_replace(text, std::regex("\\$__rate_interval"), "5s")});
    }
  return queries;
}

TEST_CASE("Prometheus finds a job, every panel of the dashboards has data, and the job's end is seen",
          "[monitoring]") {
  for (const char* const name : {"prometheus", "promtool"})
    if (!is_in_path(name)) DDL_SKIP(std::string("there is no ") + name + "; scripts/setup --all installs it");
  WatchedJob job;
  const std::string metrics = ask_port(job.port(), "GET /metrics");
  std::smatch id;
  REQUIRE(std::regex_search(metrics, id, std::regex("ddlrun_job_info\\{jobid=\"([^\"]+)\"")));
  Prometheus prometheus(job.scratch(), job.targets());
  REQUIRE(prometheus.answers("rate(ddlrun_rank_collectives_total[5s]) > 0"));
  for (const char* const dashboard : {"dashboard-job.json", "dashboard-jobs.json"}) {
    for (const Query& query : queries_of(dashboard, id[1])) {
      CAPTURE(dashboard, query.panel, query.text);
      // What was not measured here has no data, unless it came later: another test may make a network.
      bool is_measured = true;
      for (const char* const family :
           {"ddlrun_host_network_bytes_total", "ddlrun_host_energy_joules_total",
            "ddlrun_host_memory_peak_bytes", "ddlrun_host_memory_limit_bytes", "ddlrun_host_oom_kills_total",
            "ddlrun_gpu_utilization_ratio", "ddlrun_gpu_memory_used_bytes", "ddlrun_gpu_energy_joules_total"})
        is_measured &=
            query.text.find(family) == std::string::npos || metrics.find(family) != std::string::npos;
      const auto answer = prometheus.ask(query.text);
      REQUIRE(answer);
      if (is_measured) CHECK_FALSE(answer->empty());
    }
  }
  job.end();
  CHECK(prometheus.answers("up", false));
}

}  // namespace
}  // namespace ddl::e2e
