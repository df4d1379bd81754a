// Jobs whose ranks are started again: on this machine, whose two names count as two hosts.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "e2e/harness/listed_hosts.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

const Words kTwoHosts = {"-H", "localhost:2,127.0.0.1:2", "--elastic", "restart"};

/// A program that fails in its first two generations, on rank 1 after rank 0 has written a line. The fifos are in the
/// scratch folder.
constexpr char kFailsTwice[] =
    "echo \"generation $DDL_GENERATION restart $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS\"; "
    "[ $DDL_GENERATION = 2 ] && exit 0; "
    "[ $RANK = 1 ] && { read line <gate$DDL_GENERATION; exit 7; }; echo >gate$DDL_GENERATION; exec sleep "
    "1000";

void make_gates(const Scratch& scratch) {
  for (const char* const name : {"gate0", "gate1"}) REQUIRE(::mkfifo(scratch.path(name).c_str(), 0666) == 0);
}

TEST_CASE("ranks are started again after a failure, and the job succeeds with its last generation",
          "[elastic]") {
  const Scratch scratch;
  make_gates(scratch);
  Job job(scratch, ddlrun({"-np", "2", "--max-restarts", "3", "sh", "-c", kFailsTwice}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  for (const char* const line :
       {"[0]<stdout>:generation 0 restart 0 of 3", "[1]<stdout>:generation 0 restart 0 of 3",
        "[0]<stdout>:generation 1 restart 1 of 3", "[1]<stdout>:generation 2 restart 2 of 3"})
    CHECK_THAT(job.out(), Contains(line));
  CHECK_THAT(job.err(), Contains("rank 1") && Contains("exited with 7") &&
                            Contains("generation 1: starting 2 ranks on ") && Contains("(restart 1 of 3)") &&
                            Contains("generation 2: starting 2 ranks on "));
}

TEST_CASE("a job that fails too often ends with the exit code of its last failure", "[elastic]") {
  const Scratch scratch;
  make_gates(scratch);
  Job job(scratch, ddlrun({"-np", "2", "--max-restarts", "1", "--json", "sh", "-c", kFailsTwice}));
  CHECK(job.wait_and_require_nothing_left() == 7);
  CHECK_THAT(job.err(),
             Contains("the job ends: the ranks were started again as often as --max-restarts 1 allows"));
  // The report is the last line.
  const std::string err = job.err().substr(0, job.err().size() - 1);
  const auto report = nlohmann::json::parse(err.substr(err.rfind('\n') + 1));
  CHECK(report["reason"] == "rank_failed");
  CHECK(report["generations"].size() == 2);
  CHECK(report["generations"][0]["first_failure"] == 1);
  CHECK(report["generations"][1]["restarts"] == 1);
}

TEST_CASE("an elastic job has its ranks where an ordinary one has them", "[elastic]") {
  const Scratch scratch;
  const std::string show = "echo $RANK $LOCAL_RANK of $WORLD_SIZE";
  for (const Words& words : {Words{"-np", "2", "-H", "localhost,127.0.0.1", "--map-by", "node"},
                             Words{"-np", "3", "-H", "localhost:1,127.0.0.1:1", "--oversubscribe"}}) {
    Job plain(scratch, ddlrun(words + Words{"sh", "-c", show}));
    CHECK(plain.wait_and_require_nothing_left() == 0);
    Job elastic(scratch, ddlrun(words + Words{"--max-restarts", "1", "sh", "-c", show}));
    CHECK(elastic.wait_and_require_nothing_left() == 0);
    for (const std::string_view line : split(plain.out(), '\n'))
      CHECK_THAT(elastic.out(), Contains(std::string(line)));
  }
}

TEST_CASE("a command that cannot be started is not tried again", "[elastic]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "--max-restarts", "5", "no-such-program"}));
  CHECK(job.wait_and_require_nothing_left() == contract::kNotFound);
  CHECK(job.err().find("generation 1") == std::string::npos);
}

TEST_CASE("^C ends an elastic job, and so does a signal while it waits for hosts", "[elastic]") {
  const Scratch scratch;
  Job running(scratch, ddlrun({"-np", "2", "--max-restarts", "5", "sh", "-c", "echo up; exec sleep 1000"}));
  running.wait_for("up", 2);
  running.send(SIGINT);
  CHECK(running.wait_and_require_nothing_left() == 128 + SIGINT);
  const std::string script = scratch.write("hosts", "#!/bin/sh\n", true);
  Job waiting(scratch,
              ddlrun({"-np", "2", "--elastic", "restart", "--host-discovery-script", script, "true"}));
  waiting.wait_for("waiting for hosts");
  waiting.send(SIGTERM);
  CHECK(waiting.wait_and_require_nothing_left() == 128 + SIGTERM);
}

TEST_CASE("when a host is lost, the ranks start again on the others", "[elastic]") {
  for (const Words& words :
       {kTwoHosts + Words{"--min-np", "2"}, Words{"-H", "localhost:2,127.0.0.1:2", "--nnodes", "1:4"}}) {
    CAPTURE(join(words, " "));
    const Scratch scratch;
    Job job(scratch,
            ddlrun(words + Words{"sh", "-c",
                                 "echo \"$RANK of $WORLD_SIZE at $MASTER_PORT on agent $PPID, restart "
                                 "$TORCHELASTIC_RESTART_COUNT\"; [ $WORLD_SIZE = 2 ] || exec sleep 1000"}));
    job.wait_for(" of 4 at ", 4);
    const auto after = [&](const std::string& line, const std::string& word) {
      const auto at = job.out().find(line);
      REQUIRE(at != std::string::npos);
      return std::stoi(job.out().substr(job.out().find(word, at) + word.size()));
    };
    // The spawner of the second host, whose agent ends with it.
    ::kill(after("[3]<stdout>:3 of 4", " on agent "), SIGKILL);
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.err(),
               Contains("127.0.0.1: the spawner") && Contains("generation 1: starting 2 ranks on localhost"));
    CHECK(after("[1]<stdout>:1 of 2", " at ") == after("[0]<stdout>:0 of 2", " at "));
    CHECK(after("[1]<stdout>:1 of 2", ", restart ") == 0);  // no rank has failed
  }
}

TEST_CASE("hosts that a discovery script adds and removes are joined and left", "[elastic]") {
  const Scratch scratch;
  const ListedHosts hosts(scratch, "localhost:1\n");
  Job job(scratch, ddlrun({"-np", "1", "--elastic", "restart", "--host-discovery-script", hosts.script(),
                           "--elastic-settle", "0", "sh", "-c",
                           "echo \"rank $RANK of $WORLD_SIZE in $DDL_GENERATION\"; [ $DDL_GENERATION = 2 ] "
                           "|| exec sleep 1000"}));
  job.wait_for("rank 0 of 1 in 0");
  Job inspect(scratch, ddlrun({"--inspect", std::to_string(job.pid())}));
  CHECK(inspect.wait() == 0);
  CHECK_THAT(inspect.out(), Contains("generation 0, 1 rank on 1 node"));
  hosts.set("localhost:1\n127.0.0.1:2\n");
  job.wait_for(" of 3 in 1", 3);
  hosts.set("127.0.0.1:2\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("rank 1 of 2 in 2"));
  CHECK_THAT(job.err(), Contains("127.0.0.1 joins the job, so the ranks have been ended") &&
                            Contains("localhost is not a host of the job any more"));
}

TEST_CASE("a host that does not answer does not join, and the job goes on", "[elastic]") {
  const Scratch scratch;
  const ListedHosts hosts(scratch, "localhost:1\n");
  Job job(scratch, ddlrun({"-np", "1", "--elastic", "restart", "--host-discovery-script", hosts.script(),
                           "--elastic-settle", "0", "sh", "-c", "echo up; exec sleep 1000"}));
  job.wait_for("up");
  hosts.set("localhost:1\nnosuchhost.invalid:1\n");
  job.wait_for("nosuchhost.invalid cannot join the job, which goes on without it: ");
  job.send(SIGTERM);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGTERM);
}

TEST_CASE("a job that ends while it asks a host leaves nothing of that", "[elastic]") {
  const Scratch scratch;
  const ListedHosts hosts(scratch, "here:1\n");
  // There is no answer from any other host.
  const std::string agent = scratch.write("agent",
                                          "#!/bin/sh\nhost=$1; shift\n[ $host = here ] && exec \"$@\"\n"
                                          "echo asked >asked; exec sleep 1000\n",
                                          true);
  REQUIRE(::mkfifo(scratch.path("asked").c_str(), 0666) == 0);
  Job job(scratch, ddlrun({"-np", "1", "--elastic", "restart", "--host-discovery-script", hosts.script(),
                           "--launch-agent", agent + " %h", "sh", "-c",
                           "echo up; read line <asked; echo $line; exec sleep 1000"}));
  job.wait_for("up");
  hosts.set("here:1\nthere:1\n");
  job.wait_for("asked");
  job.send(SIGTERM);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGTERM);
}

TEST_CASE("a discovery script that fails first ends the job, and later is a note", "[elastic]") {
  const Scratch scratch;
  const std::string bad = scratch.write("bad", "#!/bin/sh\necho a b c d\n", true);
  Job refused(scratch, ddlrun({"-np", "1", "--elastic", "restart", "--host-discovery-script", bad, "true"}));
  CHECK(refused.wait_and_require_nothing_left() == 2);
  CHECK_THAT(refused.err(), Contains("bad:1: "));
  const std::string plain = scratch.write("plain", "echo localhost:1\n");
  Job forbidden(scratch,
                ddlrun({"-np", "1", "--elastic", "restart", "--host-discovery-script", plain, "true"}));
  CHECK(forbidden.wait_and_require_nothing_left() == 2);
  CHECK_THAT(forbidden.err(), Contains("next: make it executable: chmod +x " + plain));

  const std::string script = scratch.write(
      "discover", "#!/bin/sh\n[ -e broken ] && { echo lost the list >&2; exit 1; }\necho localhost:1\n",
      true);
  Job job(scratch, ddlrun({"-np", "1", "--elastic", "restart", "--host-discovery-script", script, "sh", "-c",
                           "echo up; exec sleep 1000"}));
  job.wait_for("up");
  scratch.write("broken", "");
  job.wait_for("exits with 1: lost the list; the job goes on with the hosts that were found before");
  job.send(SIGTERM);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGTERM);
}

/// Two hosts on this machine, whose ranks print their generation and the spawner that has started them.
class FailingJob {
 public:
  FailingJob() { wait_for_generation(0, 4); }

  void kill_rank() { kill_process(ranks_.at(random_() % ranks_.size()).pid); }
  void kill_spawner() { kill_process(ranks_.back().spawner); }
  void leave() { hosts_.set("localhost:2\n"); }
  void join() { hosts_.set(kBoth); }
  void wait_for_generation(int generation, int num_ranks) {
    const std::string begin = "in " + std::to_string(generation) + ":";
    job_.wait_until(begin, [&] { return occurrences(job_.out(), begin) >= num_ranks; });
    // Nothing of the generation before is left.
    for (const Rank& old : ranks_) {
      CHECK(::kill(old.pid, 0) == -1);
      CHECK(::kill(old.daemon, 0) == -1);
    }
    ranks_.assign(num_ranks, {});
    const std::string& out = job_.out();
    for (std::size_t at = out.find(begin); at != std::string::npos; at = out.find(begin, at + 1)) {
      Rank one;
      int rank = 0;
      REQUIRE(std::sscanf(out.c_str() + at + begin.size(), "%d %d %d %d", &rank, &one.pid, &one.spawner,
                          &one.daemon) == 4);
      ranks_.at(rank) = one;
    }
  }
  int end() {
    job_.send(SIGTERM);
    return job_.wait_and_require_nothing_left();
  }
  const std::string& err() const { return job_.err(); }
  std::size_t choose(std::size_t count) { return random_() % count; }

 private:
  struct Rank {
    int pid = 0;
    int spawner = 0;
    int daemon = 0;  ///< has left the rank's session
  };
  static constexpr char kBoth[] = "localhost:2\n127.0.0.1:2\n";

  static void kill_process(int pid) { REQUIRE(::kill(pid, SIGKILL) == 0); }

  std::mt19937 random_{20261128};
  const Scratch scratch_;
  const ListedHosts hosts_{scratch_, kBoth};
  std::vector<Rank> ranks_;
  Job job_{scratch_,
           ddlrun({"-np", "4", "--min-np", "1", "--elastic", "restart", "--max-restarts", "1000",
                   "--host-discovery-script", hosts_.script(), "--elastic-settle", "0",
                   "--blacklist-cooldown-range", "1", "1", "--kill-grace", "1", "sh", "-c",
                   // In one write, with its end. Each rank leaves a process in a session of its own.
                   "setsid sleep 1000 & printf 'in %s:%s %s %s %s\n' $DDL_GENERATION $RANK $$ $PPID $!; exec "
                   "sleep 1000"})};
};

TEST_CASE("after any sequence of losses, leaves and joins the ranks are there again, and nothing else",
          "[elastic]") {
  FailingJob job;
  constexpr int kEvents = 12;
  int generation = 0;
  int num_ranks = 4;
  for (int event = 0; event < kEvents; ++event) {
    const std::size_t choice = num_ranks == 4 ? job.choose(3) : 3;
    CAPTURE(event, choice, job.err());
    switch (choice) {
      case 0: job.kill_rank(); break;
      case 1:
        // Its host is not used for a second, and then joins again.
        job.kill_spawner();
        job.wait_for_generation(++generation, 2);
        break;
      case 2:
        job.leave();
        num_ranks = 2;
        break;
      default: job.join(); num_ranks = 4;
    }
    job.wait_for_generation(++generation, num_ranks);
  }
  CHECK(job.end() == 128 + SIGTERM);
}

TEST_CASE("--timeout is of the whole job, not of a generation", "[elastic]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "1", "--max-restarts", "1000000", "--timeout", "2", "sh", "-c", "exit 1"}));
  CHECK(job.wait_and_require_nothing_left() == contract::kTimeout);
}

TEST_CASE("the files of an elastic job hold all generations", "[elastic]") {
  const Scratch scratch;
  make_gates(scratch);
  Job job(scratch,
          ddlrun({"-np", "2", "--max-restarts", "3", "--output-filename", "logs", "sh", "-c", kFailsTwice}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  std::ifstream file(scratch.path("logs/rank.0/stdout"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const char* const line : {"generation 0 ", "generation 1 ", "generation 2 "})
    CHECK_THAT(text, Contains(line));
}

TEST_CASE("each generation of an elastic job has a timeline", "[elastic]") {
  const Scratch scratch;
  const std::string run = program("ddl_program") + " sum && [ $DDL_GENERATION = 1 ]";
  Job job(scratch, ddlrun({"-np", "2", "--max-restarts", "1", "--timeline-filename", "trace.json.gz", "sh",
                           "-c", run}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(std::filesystem::exists(scratch.path("trace.json.gz")));
  CHECK(std::filesystem::exists(scratch.path("trace.generation1.json.gz")));
}

}  // namespace
}  // namespace ddl::e2e
