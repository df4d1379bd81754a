// What ddlrun does for programs of frameworks, and programs of those that Debian has. tests/frameworks run the others.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include <list>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// What a program that serves does in a shell.
const std::string kRunUntilEnded = "exec tail -f /dev/null";

}  // namespace

TEST_CASE("a program of PyTorch's DistributedDataParallel trains as one process would", "[frameworks]") {
#ifndef DDL_E2E_TORCH
  DDL_SKIP("there was no torch in /usr/bin/python3 at configuration; scripts/setup installs it");
#else
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "/usr/bin/python3",
                           DDL_FRAMEWORK_PROGRAMS "/torch_ddp.py"}));
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  for (const std::string rank : {"0", "1", "2"})
    CHECK_THAT(job.out(), Contains("local rank " + rank + ", node 0: rank " + rank + " of 3: right"));
#endif
}

TEST_CASE("a program of mpi4py finds its ranks", "[frameworks]") {
#ifndef DDL_E2E_MPI4PY
  DDL_SKIP("there was no mpi4py in /usr/bin/python3 at configuration; scripts/setup installs it");
#else
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "--framework", "mpi", "/usr/bin/python3",
                           DDL_E2E_SOURCES "/programs/mpi4py_program.py"}));
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  for (const std::string rank : {"0", "1", "2"})
    CHECK_THAT(job.out(), Contains("mpi4py: rank " + rank + " of 3: sum 3, 1 hosts"));
#endif
}

TEST_CASE("an evaluator is a task of TensorFlow's cluster, and without roles all tasks are workers",
          "[frameworks]") {
  const auto tasks = [](std::vector<std::string> options) {
    const Scratch scratch;
    options.insert(options.end(), {"--oversubscribe", "--no-tag-output", "sh", "-c", "echo \"$TF_CONFIG\""});
    Job job(scratch, ddlrun(std::move(options)));
    CHECK(job.wait() == 0);
    std::multiset<std::string> found;
    for (const std::string_view line : split(trim(job.out()), '\n'))
      found.emplace(line.substr(line.find("\"task\"")));
    return found;
  };
  const auto task = [](const std::string& index, const std::string& type) {
    return R"("task":{"index":)" + index + R"(,"type":")" + type + "\"}}";
  };
  CHECK(tasks({"--tf-roles", "chief:1,evaluator:1"}) ==
        std::multiset{task("0", "chief"), task("0", "evaluator")});
  CHECK(tasks({"-np", "2", "--framework", "tensorflow"}) ==
        std::multiset{task("0", "worker"), task("1", "worker")});
}

TEST_CASE("a task that fails ends the job, also those that serve", "[frameworks]") {
  const Scratch scratch;
  const std::string fails = "case $TF_CONFIG in *chief*chief*) exit 5;; esac; " + kRunUntilEnded;
  Job job(scratch, ddlrun({"--tf-roles", "chief:1,worker:1,ps:1", "--oversubscribe", "--timeout", "30", "sh",
                           "-c", fails}));
  CHECK(job.wait_and_require_nothing_left() == 5);
  CHECK_THAT(job.err(), Contains("rank 0"));
}

TEST_CASE("how a task ends that serves is no failure once all others have ended", "[frameworks]") {
  // By the signal, or because the chief's end closes a connection, which may be reported first. The chief ends when the
  // task has written into a pipe.
  const auto ends = [](const std::string& worker, const std::string& server) {
    const Scratch scratch;
    const std::string pipe = scratch.path() + "/pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const std::string script = "case $TF_CONFIG in *'\"chief\"}}') read -r line <" + pipe +
                               "; exit 0;; *'\"worker\"}}') " + worker + ";; esac; " + server;
    Command command = ddlrun({"--tf-roles", "chief:1,worker:1,ps:1", "--oversubscribe", "--timeout", "30",
                              "--verbose", "sh", "-c", script});
    command.environment = {{"READY", pipe}};
    Job job(scratch, command);
    const int status = job.wait_and_require_nothing_left();
    INFO(job.err());
    CHECK_THAT(job.err(), Contains("1 rank exited with 0 after"));
    return status;
  };
  CHECK(ends(kRunUntilEnded, "trap 'exit 143' TERM; tail -f /dev/null & echo >$READY; wait") == 0);
  CHECK(ends("echo >$READY; exit 1", kRunUntilEnded) == 0);
}

TEST_CASE("MXNet's scheduler and servers run beside the ranks, and end with them", "[frameworks]") {
  // A worker ends when both have written into a pipe.
  const Scratch scratch;
  const std::string serves =
      "[ $DMLC_ROLE = worker ] || { echo >" + scratch.path() + "/$DMLC_ROLE; " + kRunUntilEnded + "; }; ";
  const std::string reads = "[ $PMIX_RANK = 0 ] || exit 0; read -r line <" + scratch.make_fifo("scheduler") +
                            "; read -r line <" + scratch.make_fifo("server");
  Job job(scratch, ddlrun({"-np", "2", "-H", "localhost:2", "--mxnet-servers", "1", "-x", "A=1", "sh", "-c",
                           "echo $DMLC_ROLE; " + serves + reads}));
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  for (const std::string role :
       {"[0]<stdout>:worker", "[1]<stdout>:worker", "[2]<stdout>:scheduler", "[3]<stdout>:server"})
    CHECK_THAT(job.out(), Contains(role + "\n"));
}

TEST_CASE("what a rank writes into Gloo's rendezvous, the others read", "[frameworks]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "--gloo", "/usr/bin/python3",
                           DDL_E2E_SOURCES "/programs/rendezvous_client.py"}));
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  for (const std::string rank : {"0", "1", "2"})
    CHECK_THAT(job.out(), Contains("rank " + rank + " read from 0 1 2\n"));
}

TEST_CASE("a rank that dies while others wait for it in Gloo's rendezvous ends the job", "[frameworks]") {
  const Scratch scratch;
  const std::string dies = "[ $HOROVOD_RANK = 1 ] && exit 7; exec /usr/bin/python3 " DDL_E2E_SOURCES
                           "/programs/rendezvous_client.py";
  Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "--gloo", "sh", "-c", dies}));
  CHECK(job.wait_and_require_nothing_left() == 7);
}

TEST_CASE("there is a rendezvous for Gloo only if it is asked for", "[frameworks]") {
  const auto address = [](std::vector<std::string> options) {
    const Scratch scratch;
    options.insert(options.end(), {"-np", "1", "sh", "-c", "echo at ${HOROVOD_GLOO_RENDEZVOUS_ADDR:-none}"});
    Command command = ddlrun(options);
    command.environment = {{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.9"}};
    Job job(scratch, command);
    CHECK(job.wait() == 0);
    return job.out();
  };
  CHECK(address({}) == "at none\n");
  CHECK(address({"--gloo"}) == "at 127.0.0.1\n");
  CHECK(address({"-x", "HOROVOD_CONTROLLER=gloo"}) == "at 127.0.0.1\n");
}

TEST_CASE("jobs that run at the same time on one host have ports of their own", "[frameworks]") {
  constexpr int kJobs = 20;
  const Scratch scratch;
  std::list<Job> jobs;
  for (int i = 0; i < kJobs; ++i) {
    Command command =
        ddlrun({"-np", "1", "sh", "-c", "echo port $MASTER_PORT $JAX_COORDINATOR_ADDRESS; read -r line"});
    command.input = Command::Input::kPipe;
    jobs.emplace_back(scratch, command);
  }
  std::set<std::string> ports;
  for (Job& job : jobs) {
    job.wait_for("port ");
    job.wait_until("a line", [&] { return job.out().ends_with('\n'); });
    for (const std::string_view word : split(trim(job.out()), ' '))
      if (word != "port") ports.emplace(word.substr(word.rfind(':') + 1));
  }
  CHECK(ports.size() == 2 * kJobs);
  for (Job& job : jobs) {
    job.close_input();
    (void)job.wait();
  }
}

TEST_CASE("another user who listens on MASTER_PORT before rank 0 ends the job", "[frameworks]") {
  if (::geteuid() != 0) DDL_SKIP("only root starts a process of another user");
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "--no-tag-output", "sh", "-c",
                           "echo port $MASTER_PORT.; " + kRunUntilEnded}));
  job.wait_for(".\n", 2);
  const std::string port = job.out().substr(5, job.out().find('.') - 5);
  const std::string listens =
      "import socket, signal; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
      "s.bind(('', " +
      port + ")); s.listen(); print('listens', flush=True); signal.pause()";
  Command other;
  other.argv = {"setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", listens};
  Job stranger(scratch, other);
  stranger.wait_for("listens");
  CHECK(job.wait_and_require_nothing_left() == 122);
  CHECK_THAT(job.err(),
             Contains("TCP port " + port + ", which ranks take for that of their own server, was opened") &&
                 Contains("another user (uid 65534)") && Contains("start it again"));
  stranger.send(SIGKILL);
  (void)stranger.wait();
}

}  // namespace ddl::e2e
