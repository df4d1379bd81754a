#include "launcher/agent/start_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"
#include "support/catch.h"

using namespace ddl::launcher;
using Stage = message::ChildFailed::Stage;

namespace {

struct Described {
  int exit_code;
  std::string sentence;
  bool operator==(const Described&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Described& one) {
  return out << one.exit_code << ": " << one.sentence;
}

Described describe(Stage stage, int error, const std::string& command = "./train",
                   const std::string& workdir = "/data") {
  RankOutcome outcome;
  describe_start_failure({0, stage, error}, command, workdir, outcome);
  return {outcome.exit_code, outcome.start_error};
}

}  // namespace

TEST_CASE("a command that is nowhere in PATH is 127, with the usual slip named") {
  CHECK(describe(Stage::kExec, ENOENT, "train") ==
        Described{127, "command not found: train (no such program in PATH; write ./train for one in /data)"});
}

TEST_CASE("a path that does not exist is 127, with the whole path") {
  CHECK(describe(Stage::kExec, ENOENT, "./train", "/no/such/place") ==
        Described{127, "no such file: /no/such/place/./train"});
  CHECK(describe(Stage::kExec, ENOENT, "/no/such/file") == Described{127, "no such file: /no/such/file"});
  CHECK(describe(Stage::kExec, ENOTDIR, "/etc/passwd/x").exit_code == 127);
}

TEST_CASE("a file that exists although exec says it does not lacks its interpreter") {
  CHECK(describe(Stage::kExec, ENOENT, "/etc/passwd") ==
        Described{127, "cannot execute /etc/passwd: its interpreter or dynamic loader does not exist"});
  CHECK(describe(Stage::kExec, ENOENT, "passwd/../passwd", "/etc").exit_code == 127);
}

TEST_CASE("a file that may not or cannot be executed is 126") {
  CHECK(describe(Stage::kExec, EACCES) == Described{126, "cannot execute ./train: Permission denied"});
  CHECK(describe(Stage::kExec, ENOEXEC) == Described{126, "cannot execute ./train: Exec format error"});
  CHECK(describe(Stage::kExec, E2BIG) == Described{126, "cannot execute ./train: Argument list too long"});
}

TEST_CASE("a working directory that is not there is 127, one that may not be entered 126") {
  CHECK(describe(Stage::kWorkdir, ENOENT) ==
        Described{127, "working directory /data: No such file or directory"});
  CHECK(describe(Stage::kWorkdir, ENOTDIR) == Described{127, "working directory /data: Not a directory"});
  CHECK(describe(Stage::kWorkdir, EACCES) == Described{126, "working directory /data: Permission denied"});
}

TEST_CASE("what is not the command's fault is a start failure of ours") {
  CHECK(describe(Stage::kFork, EAGAIN) ==
        Described{122,
                  "fork: Resource temporarily unavailable (see ulimit -u and the pids limit of the cgroup)"});
  CHECK(describe(Stage::kRedirect, EBADF) ==
        Described{122, "redirecting its standard streams: Bad file descriptor"});
}
