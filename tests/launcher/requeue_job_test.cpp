// An agent that has lost the host of its head has a stand-in for Slurm start the job again.
#include "launcher/node/requeue_job.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl;
using namespace ddl::launcher;
using namespace std::chrono_literals;

namespace {

/// A scontrol, first in PATH, that notes how it was called.
class Scontrol {
 public:
  explicit Scontrol(const std::string& shows, const std::string& requeues = "exit 0") {
    std::ofstream(folder_.path() + "/scontrol") << "#!/bin/sh\necho \"$*\" >>" + folder_.path() +
                                                       "/calls\n[ \"$1\" = requeue ] && { " + requeues +
                                                       "; }\n" + shows + "\n";
    REQUIRE(::chmod((folder_.path() + "/scontrol").c_str(), 0755) == 0);
    ::setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);
  }
  ~Scontrol() { ::setenv("PATH", path_.c_str(), 1); }

  std::string calls() const {
    std::ifstream file(folder_.path() + "/calls");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  ddl::test::TemporaryDirectory folder_;
  const std::string path_ = std::getenv("PATH");
};

const std::string kRuns = "echo 'JobId=7 JobName=train JobState=RUNNING Requeue=1 Restarts=0 BatchFlag=1'";
const std::string kAsks = "show job --oneliner 7\n";

/// What it says.
std::string requeue(bool is_done, bool does_answer = false, int turn = 0) {
  RequeueSettings settings;
  settings.max_turns = 3;
  settings.turn = 1ms;
  settings.does_answer = [&](const std::string& host, const std::string& port) {
    CHECK(host == "node1");
    CHECK(port == "6818");
    return does_answer;
  };
  std::string said;
  settings.say = [&](const std::string& sentence) { said = sentence; };
  CHECK(requeue_job({"Slurm", "7", "node1", turn}, settings) == is_done);
  return said;
}

}  // namespace

TEST_CASE("a job whose head is lost with its host is requeued") {
  for (const int turn : {0, 2}) {
    const Scontrol scontrol(kRuns);
    CHECK(requeue(true, false, turn) == "node1, where ddlrun runs, is lost: Slurm job 7 is requeued");
    CHECK(scontrol.calls() == kAsks + "requeue 7\n");
  }
  const Scontrol refuses(kRuns, "echo 'Job is pending execution' >&2; exit 1");
  CHECK(requeue(false) == "Slurm job 7 is not requeued: scontrol exits with 1: Job is pending execution");
}

TEST_CASE("a job is not requeued if this host was cut off, or the head's host answers") {
  const Scontrol unreachable("echo 'Unable to contact slurm controller' >&2; exit 1");
  CHECK(requeue(false) ==
        "Slurm job 7 is not requeued: scontrol exits with 1: Unable to contact slurm controller");
  CHECK(unreachable.calls() == kAsks);
  const Scontrol scontrol(kRuns);
  CHECK(requeue(false, true) == "Slurm job 7 is not requeued, because node1, where ddlrun runs, answers");
  CHECK(scontrol.calls() == kAsks);
}

TEST_CASE("a job is not requeued that ends, that is interactive, or whose user does not want that") {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"RUNNING", "COMPLETING"}, {"BatchFlag=1", "BatchFlag=0"}, {"Requeue=1", "Requeue=0"}}) {
    std::string shows = kRuns;
    shows.replace(shows.find(from), from.size(), to);
    const Scontrol scontrol(shows);
    CHECK(requeue(false).empty());
    CHECK(scontrol.calls() == kAsks);
  }
}

TEST_CASE("of many agents only the first ones ask") {
  const Scontrol scontrol(kRuns);
  CHECK(requeue(false, false, 3).empty());
  CHECK(scontrol.calls().empty());
}

TEST_CASE("a host answers that accepts or refuses a connection") {
  CHECK(does_host_answer("localhost", "6818", 2s));
  CHECK(does_host_answer("no such name", "6818", 2s));
  CHECK_FALSE(
      does_host_answer("255.255.255.255", "6818", 2s));  // of no host; one that is silent: slurm_elastic_test
}
