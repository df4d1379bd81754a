// ddlrun --inspect: what it shows of running jobs, from outside of them.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "net/abstract_socket.h"
#include "net/frame.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

/// Three ranks, two of which wait in a call for rank 1; it has been reported when this returns.
class HangingJob {
 public:
  explicit HangingJob(const Scratch& scratch, std::vector<std::string> options = {})
      : job_(scratch, command(std::move(options))) {
    job_.wait_for("2 of 3 ranks have waited");
  }
  ~HangingJob() { job_.send(SIGKILL); }
  HangingJob(const HangingJob&) = delete;
  HangingJob& operator=(const HangingJob&) = delete;

  Job& operator*() { return job_; }
  Job* operator->() { return &job_; }
  std::string pid() const { return std::to_string(job_.pid()); }

 private:
  static Command command(std::vector<std::string> options) {
    options.insert(options.begin(), {"-np", "3", "--oversubscribe", "--kill-grace", "0",
                                     "--stall-check-warning-time-seconds", "0.3"});
    options.insert(options.end(), {program("ddl_program"), "wait"});
    return ddlrun(options);
  }
  Job job_;
};

struct Shown {
  int exit_code = 0;
  std::string out;
  std::string err;
  json parsed() const { return json::parse(out); }
};
Shown run(const Scratch& scratch, const Command& command) {
  Job job(scratch, command);
  const int exit_code = job.wait();
  return {exit_code, job.out(), job.err()};
}
Shown inspect(const Scratch& scratch, std::vector<std::string> words) {
  words.insert(words.begin(), "--inspect");
  return run(scratch, ddlrun(words));
}

/// The abstract name of the socket of the ddlrun with this pid.
std::string socket_of(const std::string& pid) {
  const auto text = net::read_proc_net_unix();
  REQUIRE(text);
  for (const std::string_view name : net::abstract_names(*text)) {
    if (name.find("/head/" + pid + "/") != std::string_view::npos) return std::string(name);
  }
  FAIL("process " + pid + " has no socket");
  return "";
}

/// All that is sent by the other side until it closes.
std::string read_to_end(int fd) {
  std::string all;
  char buffer[4096];
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer, sizeof buffer); });
    if (got <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(got));
  }
}

TEST_CASE("a job is shown by pid, name or id, with who waits for whom", "[inspect]") {
  const Scratch scratch;
  const std::string name = "hang-" + std::to_string(::getpid());
  HangingJob job(scratch, {"--job-name", name});
  const Shown text = inspect(scratch, {job.pid()});
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, Contains(name + " (ddlrun " + job.pid() + " on ") && Contains("3 ranks on 1 node") &&
                           Contains("ddl_program wait") && Contains("allreduce #2") &&
                           Contains("user code after allreduce #1") && Contains("rank 1") &&
                           Contains("allreduce #2: 2 of 3 ranks have waited for "));
  const json by_name = inspect(scratch, {name, "--json"}).parsed();
  CHECK(by_name["job"]["head_pid"] == job->pid());
  REQUIRE(by_name["ranks"].size() == 3);
  const json by_id = inspect(scratch, {by_name["job"]["id"].get<std::string>(), "--json"}).parsed();
  CHECK(by_id["job"]["name"] == name);
  for (const int rank : {0, 2}) {
    const json& one = by_id["ranks"][static_cast<std::size_t>(rank)];
    INFO(one.dump());
    CHECK(one["work"]["text"] == "allreduce #2");
    CHECK(by_id["waits"][one["wait"].get<std::size_t>()]["missing"] == json{1});
    CHECK(one["pid"].get<int>() > 0);
    CHECK(one["resident_bytes"].get<std::int64_t>() > 1'000'000);
    CHECK(one["threads"].get<int>() >= 1);
    CHECK(one["cpu_seconds"].get<double>() >= 0);
  }
  CHECK(by_id["ranks"][1]["work"]["kind"] == "user_code");
}

TEST_CASE("several jobs are listed, and a name that both have is refused", "[inspect]") {
  const Scratch scratch;
  const std::string name = "both-" + std::to_string(::getpid());
  HangingJob one(scratch, {"--job-name", name}), other(scratch, {"--job-name", name});
  const Shown list = inspect(scratch, {});
  CHECK(list.exit_code == 0);
  CHECK_THAT(list.out,
             Contains(" jobs run here") && Contains(one.pid()) && Contains(other.pid()) && Contains(name));
  const json jobs = inspect(scratch, {"--json"}).parsed();
  CHECK(jobs["kind"] == "jobs");
  // Jobs of other tests may have no name: one that does not answer has none.
  CHECK(std::count_if(jobs["jobs"].begin(), jobs["jobs"].end(),
                      [&](const json& job) { return job.value("name", "") == name; }) == 2);
  const Shown ambiguous = inspect(scratch, {name});
  CHECK(ambiguous.exit_code == contract::kUsageError);
  CHECK_THAT(ambiguous.err,
             Contains("2 jobs are called " + name) && Contains(one.pid()) && Contains(other.pid()));
  CHECK(inspect(scratch, {"--watch"}).exit_code == contract::kUsageError);
}

TEST_CASE("a job that does not exist, or has ended, is said not to be there", "[inspect]") {
  const Scratch scratch;
  const auto check_that_there_is_no = [&](const std::string& job) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"--inspect", job}, {"--metrics", job}, {"--timeline", "stop", job}}) {
      const Shown none = run(scratch, ddlrun(words));
      CHECK_THAT(none.err, Contains("no running job " + job + " is seen on this host"));
      CHECK_THAT(none.err, Contains("hint: "));
      // Jobs of other tests may be stopped.
      const bool all_have_names = none.err.find("does not say its name") == std::string::npos;
      CHECK(none.exit_code == (all_have_names ? 1 : contract::kLostHost));
    }
  };
  check_that_there_is_no("no-such-job");
  std::string pid;
  {
    HangingJob job(scratch);
    pid = job.pid();
    job->send(SIGTERM);
    (void)job->wait();
  }
  check_that_there_is_no(pid);
}

TEST_CASE("a stopped rank is shown as such, also without the check for stalls", "[inspect]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "--kill-grace", "0", "--no-stall-check",
                           program("ddl_program"), "loop"}));
  job.wait_for("ready", 3);
  const std::string pid = std::to_string(job.pid());
  const json before = inspect(scratch, {pid, "--json"}).parsed();
  const auto stopped = before["ranks"][2]["pid"].get<pid_t>();
  REQUIRE(::kill(stopped, SIGSTOP) == 0);
  const Shown shown = inspect(scratch, {pid, "--json"});
  REQUIRE(::kill(stopped, SIGCONT) == 0);
  CHECK(shown.exit_code == 0);
  const json after = shown.parsed();
  CHECK(after["ranks"][2]["state"] == "stopped");
  CHECK(after["ranks"][0]["work"]["kind"] == "call");
  const json& wait = after["waits"][after["ranks"][0]["wait"].get<std::size_t>()];
  CHECK(wait["missing"] == json{2});
  CHECK_THAT(wait["sentence"].get<std::string>(), Contains("is stopped (SIGSTOP)"));
  job.send(SIGKILL);
}

TEST_CASE("the first look at a job knows how long its ranks have waited", "[inspect]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "--kill-grace", "0", "--no-stall-check",
                           program("timeline_program"), "hang"}));
  job.wait_for("ready", 3);
  const json rank = inspect(scratch, {std::to_string(job.pid()), "--json"}).parsed()["ranks"][2];
  INFO(rank.dump());
  CHECK(rank["work"]["kind"] == "tensor");
  // Its last event is that it waits for the tensor.
  constexpr double kRounding = 0.001;
  CHECK(rank["work"]["seconds"].get<double>() >= rank["last_event_seconds"].get<double>() - kRounding);
  job.send(SIGKILL);
}

TEST_CASE("of programs without libddl the processes are shown", "[inspect]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "sh", "-c", "echo ready; exec sleep 1000"}));
  job.wait_for("ready", 2);
  const std::string pid = std::to_string(job.pid());
  const json shown = inspect(scratch, {pid, "--json"}).parsed();
  CHECK(shown["job"]["name"] == "sh");
  CHECK(shown["waits"].empty());
  for (const json& rank : shown["ranks"]) {
    CHECK(rank["work"]["kind"] == "none");
    CHECK(rank["resident_bytes"].get<std::int64_t>() > 0);
  }
  CHECK_THAT(inspect(scratch, {pid}).out, !Contains("does") && Contains("CPU time"));
  job.send(SIGTERM);
  (void)job.wait_and_require_nothing_left();
}

TEST_CASE("--watch shows a job again and again, until it has ended", "[inspect]") {
  const Scratch scratch;
  HangingJob job(scratch);
  Job watch(scratch, ddlrun({"--inspect", job.pid(), "--watch"}));
  watch.wait_for("allreduce #2: 2 of 3 ranks", 2);
  job->send(SIGTERM);
  (void)job->wait();
  CHECK(watch.wait() == 0);
  CHECK_THAT(watch.err(), Contains("job " + job.pid() + " has ended"));
  CHECK_THAT(watch.out(), !Contains("\x1b"));
}

TEST_CASE("--watch rewrites a terminal, and ends at ^C", "[inspect]") {
  const Scratch scratch;
  HangingJob job(scratch);
  Command command = ddlrun({"--inspect", job.pid(), "--watch"});
  command.terminal = true;
  command.environment["TERM"] = "xterm";
  Job watch(scratch, command);
  watch.wait_for("\x1b[H\x1b[2J", 2);
  watch.write("\x03");
  CHECK(watch.wait() == 0);
}

TEST_CASE("a ddlrun that is stopped cannot answer, and is said to be, also by the name of its job",
          "[inspect]") {
  const Scratch scratch;
  const std::string name = "stopped-" + std::to_string(::getpid());
  HangingJob job(scratch, {"--job-name", name});
  job->send(SIGTSTP);
  (void)job->wait_until_stopped();
  Job by_pid(scratch, ddlrun({"--inspect", job.pid()})), by_name(scratch, ddlrun({"--inspect", name}));
  CHECK(by_pid.wait() == contract::kLostHost);
  CHECK(by_name.wait() == contract::kLostHost);
  job->send(SIGCONT);
  const std::string why = "its process " + job.pid() + " is stopped; continue it with fg";
  CHECK_THAT(by_pid.err(), Contains(why));
  CHECK_THAT(by_name.err(), Contains("no running job " + name + " is seen on this host, ") &&
                                Contains("job " + job.pid() + " does not say its name: " + why) &&
                                Contains("name it by the pid of its ddlrun: ") && Contains(job.pid()));
  CHECK(inspect(scratch, {job.pid()}).exit_code == 0);
}

TEST_CASE("bytes that are no request, and clients that say nothing, do no harm", "[inspect]") {
  const Scratch scratch;
  HangingJob job(scratch);
  const std::string name = socket_of(job.pid());
  const auto silent = net::connect_abstract(name);
  REQUIRE(silent);
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4000, '\xff')}) {
    const auto client = net::connect_abstract(name);
    REQUIRE(client);
    REQUIRE(set_nonblocking(client->get(), false));
    REQUIRE(write_all(client->get(), garbage.data(), garbage.size()));
    CHECK(read_to_end(client->get()).empty());
  }
  CHECK(inspect(scratch, {job.pid()}).exit_code == 0);
}

TEST_CASE("a job that has too many clients is not said to be missing", "[inspect]") {
  const Scratch scratch;
  const std::string name = "busy-" + std::to_string(::getpid());
  HangingJob job(scratch, {"--job-name", name});
  std::vector<UniqueFd> clients;
  for (int client = 0; client < 8; ++client) {
    auto connection = net::connect_abstract(socket_of(job.pid()));
    REQUIRE(connection);
    clients.push_back(*std::move(connection));
  }
  const Shown busy = inspect(scratch, {name});
  CHECK(busy.exit_code == contract::kLostHost);
  CHECK_THAT(busy.err,
             Contains("job " + job.pid() + " does not say its name: too many others look at this job"));
}

TEST_CASE("another user is refused by both sides with a sentence, and root is not", "[inspect]") {
  if (::getuid() != 0) DDL_SKIP("only root can become another user");
  constexpr uid_t kStranger = 65534;
  const std::string sentence = "only that user and root may look at it";
  const Scratch scratch;
  HangingJob job(scratch);
  Command command = ddlrun({"--inspect", job.pid()});
  command.argv.insert(command.argv.begin(), {"setpriv", "--reuid=65534", "--clear-groups"});
  const Shown refused = run(scratch, command);
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Contains("job " + job.pid() + ": the job belongs to user 0") && Contains(sentence));
  // The job itself, if a client does not ask who it is.
  auto pipe = make_pipe();
  REQUIRE(pipe);
  const std::string name = socket_of(job.pid());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kStranger, kStranger, kStranger) != 0) ::_exit(1);
    const auto client = net::connect_abstract(name);
    if (!client || !set_nonblocking(client->get(), false)) ::_exit(2);
    const std::string answer = read_to_end(client->get());
    ::_exit(write_all(pipe->second.get(), answer.data(), answer.size()) ? 0 : 3);
  }
  pipe->second.reset();
  CHECK_THAT(read_to_end(pipe->first.get()), Contains("this job belongs to user 0") && Contains(sentence));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace ddl::e2e
