#include "launcher/node/rank_process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/fd.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::launcher;
using ddl::StartStage;

namespace {

struct Described {
  int exit_code;
  std::string sentence;
  bool operator==(const Described&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Described& one) {
  return out << one.exit_code << ": " << one.sentence;
}

Described describe(StartStage stage, int error, const std::string& command = "./train",
                   const std::string& workdir = "/data", const std::string& path = "/bin") {
  const RankOutcome outcome = start_failure({0, stage, error}, {command, workdir, path});
  return {outcome.exit_code, outcome.start_error};
}

void make_file(const std::string& path) { CHECK(std::ofstream(path)); }

}  // namespace

TEST_CASE("a command that is not in PATH is 127, and what is proposed exists") {
  CHECK(describe(StartStage::kExec, ENOENT, "train") ==
        Described{127, "command not found: train (no such program in PATH)"});
  const ddl::test::TemporaryDirectory directory;
  const std::string& here = directory.path();
  make_file(here + "/train.py");
  make_file(here + "/test.py");
  const auto not_found = [&here](const std::string& command) {
    return describe(StartStage::kExec, ENOENT, command, here, here).sentence;
  };
  CHECK(describe(StartStage::kExec, ENOENT, "train.py", here).sentence ==
        "command not found: train.py (no such program in PATH; write ./train.py for the one in " + here +
            ")");
  CHECK(not_found("trian.py") ==
        "command not found: trian.py (no such program in PATH; " + here + " has train.py)");
  CHECK(not_found("./trian.py") == "no such file: " + here + "/./trian.py; " + here + " has train.py");
  CHECK(not_found("./other") == "no such file: " + here + "/./other");
  CHECK(not_found("python") == "command not found: python (no such program in PATH)");
  make_file(here + "/python3");
  CHECK(not_found("python") ==
        "command not found: python (no such program in PATH; python3 is there: write python3)");
}

TEST_CASE("a path that does not exist is 127, with the whole path") {
  CHECK(describe(StartStage::kExec, ENOENT, "./train", "/no/such/place") ==
        Described{127, "no such file: /no/such/place/./train"});
  CHECK(describe(StartStage::kExec, ENOENT, "/no/such/file") ==
        Described{127, "no such file: /no/such/file"});
  CHECK(describe(StartStage::kExec, ENOTDIR, "/etc/passwd/x").exit_code == 127);
}

TEST_CASE("a file that exists although exec says it does not lacks its interpreter") {
  CHECK(describe(StartStage::kExec, ENOENT, "/etc/passwd") ==
        Described{127, "cannot execute /etc/passwd: its interpreter or dynamic loader does not exist"});
  CHECK(describe(StartStage::kExec, ENOENT, "passwd/../passwd", "/etc").exit_code == 127);
}

TEST_CASE("a file that may not or cannot be executed is 126") {
  CHECK(describe(StartStage::kExec, EACCES) == Described{126, "cannot execute ./train: Permission denied"});
  CHECK(describe(StartStage::kExec, ENOEXEC) == Described{126, "cannot execute ./train: Exec format error"});
  CHECK(describe(StartStage::kExec, E2BIG) ==
        Described{126, "cannot execute ./train: Argument list too long"});
}

TEST_CASE("a working directory that is not there is 127, one that may not be entered 126") {
  CHECK(describe(StartStage::kDirectory, ENOENT) ==
        Described{127, "working directory /data: No such file or directory"});
  CHECK(describe(StartStage::kDirectory, ENOTDIR) ==
        Described{127, "working directory /data: Not a directory"});
  CHECK(describe(StartStage::kDirectory, EACCES) ==
        Described{126, "working directory /data: Permission denied"});
}

TEST_CASE("other failures have the exit code of a start failure") {
  CHECK(describe(StartStage::kFork, EAGAIN) ==
        Described{122,
                  "fork: Resource temporarily unavailable (see ulimit -u and the pids limit of the cgroup)"});
  CHECK(describe(StartStage::kStreams, EBADF) ==
        Described{122, "redirecting its standard streams: Bad file descriptor"});
}

TEST_CASE("reasons that errno does not distinguish are found in the program's file") {
  const ddl::test::TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path() + "/" + name) << text;
    REQUIRE(::chmod((directory.path() + "/" + name).c_str(), 0755) == 0);
  };
  const auto in_it = [&](const std::string& command, int error) {
    return describe(StartStage::kExec, error, command, directory.path(), "/bin:" + directory.path()).sentence;
  };
  const std::string here = "cannot execute " + directory.path() + "/";

  REQUIRE(::mkdir((directory.path() + "/folder").c_str(), 0755) == 0);
  CHECK(in_it("./folder", EACCES) == here + "./folder: it is a directory; name the program in it");

  write("train", "#! /no/such/python3 -u\nprint(1)\n");
  const std::string missing = ": its first line names the interpreter /no/such/python3, which does not exist";
  CHECK(in_it("./train", ENOENT) == here + "./train" + missing);
  CHECK(in_it("train", ENOENT) == here + "train" + missing);  // not: no such program in PATH

  write("windows", "#!/bin/sh\r\necho\r\n");
  CHECK_THAT(in_it("./windows", ENOENT), Catch::Contains("carriage return (\\r)") &&
                                             Catch::Contains("there is no /bin/sh\\r") &&
                                             Catch::Contains("sed -i") && !Catch::Contains("\r"));

  write("closed", "#!/etc/passwd\n");
  CHECK(in_it("./closed", EACCES) == here + "./closed: its interpreter /etc/passwd may not be executed");
  write("other",
        "\x7f"
        "ELF\x02\x01\x01");
  CHECK(in_it("./other", ENOEXEC) == here + "./other: it was built for another kind of machine");
  write("words", "print(1)\n");
  CHECK(in_it("./words", ENOEXEC) == "cannot execute ./words: Exec format error");

  // The test's own program, with a loader that does not exist.
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string program((std::istreambuf_iterator<char>(self)), {});
  const std::string loader = "/ld-linux";
  if (const std::size_t at = program.find(loader); at != std::string::npos && at < 4096) {
    program.replace(at, loader.size(), "/ld-nonix");
    write("program", program.substr(0, 8192));
    CHECK_THAT(in_it("./program", ENOENT), Catch::Contains("it needs the dynamic loader /lib") &&
                                               Catch::Contains("/ld-nonix") &&
                                               Catch::Contains("does not exist"));
  }
  for (const std::string& odd : {std::string("#!"), std::string("#!\n"), std::string("#! \t"),
                                 std::string("\x7f"
                                             "ELF")}) {
    write("odd", odd);
    CHECK_THAT(in_it("./odd", ENOENT),
               Catch::EndsWith("./odd: its interpreter or dynamic loader does not exist"));
  }
}

TEST_CASE("a carriage return is named as well if the interpreter has started and rejects it") {
  const ddl::test::TemporaryDirectory directory;
  const auto explained = [&](const std::string& text, int exit_code) {
    std::ofstream(directory.path() + "/script") << text;
    RankOutcome outcome;
    outcome.kind = RankOutcome::Kind::kExited;
    outcome.exit_code = exit_code;
    describe_carriage_return({"./script", directory.path(), "/bin"}, outcome);
    return outcome.start_error;
  };
  const std::string file = directory.path() + "/./script";
  const std::string wanted =
      file +
      ": its first line ends with a carriage return (\\r), as files from Windows do; remove "
      "them with: sed -i 's/\\r$//' " +
      file;
  CHECK(explained("#!/usr/bin/env bash\r\necho\r\n", 127) == wanted);
  CHECK(explained("#!/bin/sh -e\r\necho\r\n", 2) == wanted);
  CHECK(explained("#!/usr/bin/env bash\r\n", 1).empty());
  CHECK(explained("#!/usr/bin/env bash\necho\r\n", 127).empty());
  CHECK(explained("echo\r\n", 127).empty());
}
