// Programs that use the real PMIx client library with the agent's server.
#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "base/text.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

Command pmix_client(int size, const std::string& what) {
  return ddlrun(
      {"-np", std::to_string(size), "--oversubscribe", "--tag-output", program("pmix_client"), what});
}

TEST_CASE("a host may have a name of 64 letters, and is this machine by that name", "[pmix_client]") {
  if (::geteuid() != 0) DDL_SKIP("only root gives a host a name");
  for (const std::size_t length : {57U, 63U, 64U}) {
    CAPTURE(length);
    const std::string name(length, 'a');
    const Scratch scratch;
    Command command = ddlrun({"-H", name + ":2", "--oversubscribe", program("pmix_client"), "identity"});
    command.argv.insert(command.argv.begin(),
                        {"unshare", "--uts", "sh", "-c",
                         "echo " + name + " >/proc/sys/kernel/hostname && exec \"$@\"", "sh"});
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (const char* const tag : {"[0]<stdout>:", "[1]<stdout>:"})
      CHECK_THAT(job.out(), Contains(std::string(tag) + "hostname_is_right=1\n"));
  }
}

/// The port of the agent's server, from the environment that a rank has printed.
std::uint16_t port_in(const std::string& out) {
  const std::string before = "tcp4://127.0.0.1:";
  const std::size_t at = out.find(before);
  REQUIRE(at != std::string::npos);
  return static_cast<std::uint16_t>(std::stoi(out.substr(at + before.size())));
}

constexpr uid_t kNobody = 65534;

/// A connection that a user has opened and sent these bytes on.
UniqueFd connect_as(uid_t user, std::uint16_t port, const std::string& bytes) {
  const auto before = static_cast<uid_t>(::setfsuid(user));  // the owner of sockets that this thread makes
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setfsuid(before);
  const timeval patience{kTestTimeout.count(), 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  if (fd && !bytes.empty()) (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return fd;
}

/// A header that announces 100 bytes, and these bytes: a libpmix that reads this message ends.
std::string noise(std::mt19937& random) {
  struct {
    std::int32_t index = 0;
    std::uint32_t tag = 0;
    std::uint64_t size = 100;
  } header;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  while (bytes.size() < sizeof header + header.size) bytes += static_cast<char>(random());
  return bytes;
}

/// Runs a job whose ranks use PMIx after another user has attacked the server this number of times.
void attack_while_ranks_join(int times) {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "sh", "-c",
                           "env | grep ^PMIX_SERVER_URI; read -r line <" + go.path() + "; exec " +
                               program("pmix_client") + " modex"}));
  job.wait_for("tcp4://127.0.0.1:", 2);
  const std::uint16_t port = port_in(job.out());
  std::mt19937 random(1);
  // Two connections at the beginning send nothing and stay open: the server must not wait for them.
  const UniqueFd silent = connect_as(kNobody, port, ""), unfinished = connect_as(kNobody, port, "123");
  for (int i = 0; i < times; ++i) {
    UniqueFd fd = connect_as(kNobody, port, i % 2 == 0 ? noise(random) : "");
    if (i % 3 == 0) continue;  // closed directly after sending
    char byte = 0;
    const ssize_t got = ::recv(fd.get(), &byte, 1, 0);  // until the server closes it
    REQUIRE((got == 0 || (got < 0 && errno == ECONNRESET)));
  }
  go.write("go\ngo\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:modex=2\n") && Contains("[1]<stdout>:modex=2\n"));
}

TEST_CASE("another user of the node can neither end nor delay a job through the PMIx server's port",
          "[pmix_client]") {
  if (::geteuid() != 0) DDL_SKIP("only root makes connections of another user");
  attack_while_ranks_join(300);
}

TEST_CASE("another user of the node who claims to be the job's user is refused by the PMIx server",
          "[pmix_client]") {
  if (::geteuid() != 0) DDL_SKIP("only root makes connections of another user");
  // What a process prints that connects as this user and claims to be the rank, before the rank itself does next.
  const auto outcome_of = [](uid_t user, const std::string& next) {
    const Scratch scratch;
    Fifo go(scratch, "go");
    Job job(scratch,
            ddlrun({"-np", "1", "--no-tag-output", "sh", "-c",
                    "env | grep ^PMIX_; echo ready; read -r line <" + go.path() + "; exec " + next}));
    job.wait_for("ready\n");
    // Nothing but the user is asked for, also where munge runs.
    CHECK_THAT(job.out(), Contains("PMIX_SECURITY_MODE=native\n"));
    Command command;
    command.argv = {program("pmix_stranger"), std::to_string(user)};
    for (const std::string_view line : split(job.out(), '\n')) {
      if (const std::size_t equals = line.find('='); equals != std::string_view::npos)
        command.environment.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    const Scratch own;
    Job stranger(own, command);
    CHECK(stranger.wait() == 0);
    go.write("go\n");
    CHECK(job.wait_and_require_nothing_left() == 0);
    return stranger.out() + job.out().substr(job.out().find("ready\n"));
  };
  CHECK_THAT(outcome_of(kNobody, program("pmix_client") + " modex"),
             Contains("init=-") && Contains("modex=1\n"));
  CHECK_THAT(outcome_of(::geteuid(), "true"), Contains("init=0\n"));
}

TEST_CASE("a process of the same user that connects to the PMIx server and falls silent does not stop a job",
          "[pmix_client]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Job job(scratch, ddlrun({"-np", "1", "sh", "-c",
                           "env | grep ^PMIX_SERVER_URI; read -r line <" + go.path() + "; exec " +
                               program("pmix_client") + " modex"}));
  job.wait_for("tcp4://127.0.0.1:");
  // The server waits for this one first; kTestTimeout is the deadline.
  const UniqueFd silent = connect_as(::geteuid(), port_in(job.out()), "123");
  go.write("go\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("modex=1\n"));
}

TEST_CASE("ten thousand connections of another user do not affect a job", "[.][pmix_strangers]") {
  if (::geteuid() != 0) DDL_SKIP("only root makes connections of another user");
  attack_while_ranks_join(10000);
}

TEST_CASE("a PMIx client learns rank, size and the other job-level keys", "[pmix_client]") {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const Scratch scratch;
    Job job(scratch, pmix_client(size, "identity"));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK(job.err().empty());
    std::vector<std::string> peers;
    for (int rank = 0; rank < size; ++rank) peers.push_back(std::to_string(rank));
    for (int rank = 0; rank < size; ++rank) {
      const std::string self = std::to_string(rank), all = std::to_string(size);
      const std::vector<std::string> expected = {
          "rank=" + self,       "job_size=" + all,   "univ_size=" + all,
          "max_procs=" + all,   "num_apps=1",        "num_nodes=1",
          "local_size=" + all,  "node_size=" + all,  "local_peers=" + join(peers, ","),
          "local_rank=" + self, "node_rank=" + self, "global_rank=" + self,
          "app_rank=" + self,   "node_id=0",         "hostname_is_right=1",
      };
      for (const std::string& line : expected)
        CHECK_THAT(job.out(), Contains("[" + self + "]<stdout>:" + line + "\n"));
    }
  }
}

TEST_CASE("data that a rank puts and commits reach all ranks after a fence, collected or on demand",
          "[pmix_client]") {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const Scratch scratch;
    Job job(scratch, pmix_client(size, "modex"));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (int rank = 0; rank < size; ++rank) {
      CHECK_THAT(job.out(),
                 Contains("[" + std::to_string(rank) + "]<stdout>:modex=" + std::to_string(size) + "\n"));
    }
  }
}

TEST_CASE("published data can be looked up and waited for, and are not found after unpublish",
          "[pmix_client]") {
  const Scratch scratch;
  Job job(scratch, pmix_client(4, "publish"));
  CHECK(job.wait_and_require_nothing_left() == 0);
  for (const std::string rank : {"[0]", "[1]", "[2]", "[3]"}) {
    CHECK_THAT(job.out(), Contains(rank + "<stdout>:found=here I am from rank 0\n"));
    // As libpmix 4 and as libpmix 5 name it.
    CHECK_THAT(job.out(), Contains(rank + "<stdout>:after_unpublish=NOT-FOUND\n") ||
                              Contains(rank + "<stdout>:after_unpublish=PMIX_ERR_NOT_FOUND\n"));
  }
}

TEST_CASE("PMIx_Abort ends the job with the given code, and the report contains rank and message",
          "[pmix_client]") {
  const Scratch scratch;
  Job job(scratch, pmix_client(4, "abort"));
  CHECK(job.wait_and_require_nothing_left() == 42);
  CHECK_THAT(job.err(), Contains("ddlrun: rank 1 on ") && Contains("aborted the job with code 42") &&
                            Contains("the loss is not a number"));
  CHECK_THAT(job.err(), Contains("ranks 0, 2, 3 were ended with SIGTERM"));
}

TEST_CASE("a rank that exits with 0 without PMIx_Finalize has succeeded", "[pmix_client]") {
  const Scratch scratch;
  Job job(scratch, pmix_client(2, "silent"));
  CHECK(job.wait_and_require_nothing_left() == 0);
}

TEST_CASE("groups of ranks fence independently of each other", "[pmix_client]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "5", "--oversubscribe", program("pmix_client"), "subset"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK(occurrences(job.out(), "subset=6\n") == 3);  // ranks 0, 2, 4
  CHECK(occurrences(job.out(), "subset=4\n") == 2);  // ranks 1, 3
}

TEST_CASE("an event that one rank sends reaches all other ranks with a handler", "[pmix_client]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "4", "--oversubscribe", program("pmix_client"), "event"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  for (const std::string rank : {"[1]", "[2]", "[3]"})
    CHECK_THAT(job.out(), Contains(rank + "<stdout>:event=it is time from rank 0\n"));
}

TEST_CASE("every program gets the variables of the PMIx server, also a shell", "[pmix_client]") {
  const Scratch scratch;
  // A client that is started by a shell finds the server, because every program gets the variables.
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c",
                           "env | grep -c '^PMIX_SERVER_URI'; exec " + program("pmix_client") + " modex"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:modex=2\n") && Contains("[1]<stdout>:modex=2\n"));
  CHECK_THAT(job.out(), !Contains("<stdout>:0\n"));
}

TEST_CASE("the server's files are in a directory that only its owner may enter", "[pmix_client]") {
  const Scratch scratch;
  Command command = ddlrun({"-np", "1", "sh", "-c", "echo ready; read line"});
  command.input = Command::Input::kPipe;
  Job job(scratch, command);
  job.wait_for("ready");
  const auto names = names_in(scratch.path("tmp"));
  REQUIRE(names.size() == 1);
  CHECK(names.front().starts_with("ddlrun-" + std::to_string(::getuid()) + "-"));
  struct stat status {};
  REQUIRE(::stat(scratch.path("tmp/" + names.front()).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  job.close_input();
  CHECK(job.wait_and_require_nothing_left() == 1);  // exit code of read at the end of its input
}

}  // namespace
}  // namespace ddl::e2e
