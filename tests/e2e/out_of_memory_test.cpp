// A rank that the kernel kills for lack of memory is reported as out of memory.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// A memory cgroup for this test, version 1 or 2, removed at the end.
class MemoryCgroup {
 public:
  /// If there is no cgroup, problem() is the reason.
  explicit MemoryCgroup(std::int64_t limit_bytes) {
    const std::string name = "/ddl-e2e-" + std::to_string(::getpid());
    const bool v1 = ::access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) == 0;
    if (!v1 && ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) != 0) {
      problem_ = "no memory cgroup hierarchy is mounted in /sys/fs/cgroup";
      return;
    }
    const std::string path = (v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") + name;
    if (::mkdir(path.c_str(), 0755) != 0) {
      problem_ = "no cgroup may be made in " + path.substr(0, path.rfind('/'));
      return;
    }
    path_ = path;
    std::ofstream(path_ + (v1 ? "/memory.limit_in_bytes" : "/memory.max")) << limit_bytes << std::flush;
    // With swap the test would be slow.
    std::ofstream(path_ + (v1 ? "/memory.swappiness" : "/memory.swap.max")) << 0 << std::flush;
    if (::access((path_ + (v1 ? "/memory.limit_in_bytes" : "/memory.max")).c_str(), F_OK) != 0) {
      problem_ = "the memory controller is not enabled for children of " + path.substr(0, path.rfind('/'));
    }
  }
  ~MemoryCgroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string problem_;
};

TEST_CASE("a rank that is killed for lack of memory is reported as out of memory", "[out_of_memory]") {
  if (::geteuid() != 0) DDL_SKIP("making a memory cgroup needs root");
  const MemoryCgroup cgroup(std::int64_t{256} << 20);
  if (!cgroup.problem().empty()) DDL_SKIP(cgroup.problem());
  const Scratch scratch;
  // The shell joins the cgroup and then becomes ddlrun.
  Command command = ddlrun({"-np", "2", "--report", scratch.path("r.html"), "sh", "-c",
                            "[ $RANK = 1 ] && exec " + program("memory_eater") + " 4096; exec sleep 1000"});
  command.argv.insert(command.argv.begin(),
                      {"sh", "-c", "echo $$ > " + cgroup.path() + "/cgroup.procs && exec \"$@\"", "sh"});
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGKILL);
  CHECK_THAT(job.err(), Contains("ddlrun: rank 1 on ") && Contains("was killed by SIGKILL"));
  CHECK_THAT(job.err(), Contains("killed by the kernel for lack of memory"));
  CHECK_THAT(job.err(), Contains("with a limit of 256 MiB and a peak of 25"));
  const std::string page = bytes_of(scratch.path("r.html"));
  CHECK_THAT(page, Contains("killed by the kernel for lack of memory") &&
                       Contains("has killed 1 process for lack of memory: the job used 0.2 of 0.2 GiB"));
  CHECK_THAT(job.err(), Contains("| reading the data set"));
  CHECK_THAT(job.err(), Contains("rank 0 was ended with SIGTERM"));
}

}  // namespace
}  // namespace ddl::e2e
