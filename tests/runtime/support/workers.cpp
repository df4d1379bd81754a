#include "runtime/support/workers.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/process_tree.h"

namespace ddl::runtime::test {
namespace {

/// Separates the results of several work items.
constexpr char kEnd = '\f';

/// Kills orphaned processes that still exist; reports their number.
std::string sweep() {
  const int left = kill_descendants(Deadline::never());
  return left == 0 ? "" : std::to_string(left) + " processes were left behind; ";
}

[[noreturn]] void be_child(std::atomic<std::size_t>& next, std::size_t items, int report,
                           const std::function<std::string(std::size_t)>& work) {
  const Status subreaper = become_subreaper();
  DDL_CHECK(subreaper.has_value(), subreaper.error().message());
  for (;;) {
    const std::size_t item = next.fetch_add(1);
    if (item >= items) ::_exit(0);
    std::string output = work(item);
    output += sweep();
    if (output.empty()) continue;
    output += kEnd;
    // A write of at most PIPE_BUF bytes is atomic.
    if (output.size() > PIPE_BUF) output = output.substr(0, PIPE_BUF - 1) + kEnd;
    (void)write_all(report, output.data(), output.size());
  }
}

}  // namespace

std::vector<std::string> run_in_workers(int children, std::size_t items,
                                        const std::function<std::string(std::size_t)>& work) {
  void* memory = ::mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  DDL_CHECK(memory != MAP_FAILED, "mmap");
  auto* next = new (memory) std::atomic<std::size_t>(0);
  auto pipe = make_pipe();
  DDL_CHECK(pipe.has_value(), pipe.error().message());
  std::vector<pid_t> pids;
  for (int child = 0; child < children; ++child) {
    const pid_t pid = ::fork();
    DDL_CHECK(pid >= 0, "fork");
    if (pid == 0) {
      pipe->first.reset();
      be_child(*next, items, pipe->second.get(), work);
    }
    pids.push_back(pid);
  }
  pipe->second.reset();
  std::string all;
  std::array<char, 4096> buffer;
  for (ssize_t got;
       (got = retry_eintr([&] { return ::read(pipe->first.get(), buffer.data(), buffer.size()); })) > 0;) {
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::vector<std::string> output;
  for (std::size_t begin = 0, end; (end = all.find(kEnd, begin)) != std::string::npos; begin = end + 1) {
    output.push_back(all.substr(begin, end - begin));
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) output.push_back("a worker process ended with status " + std::to_string(status));
  }
  ::munmap(memory, sizeof(std::atomic<std::size_t>));
  return output;
}

}  // namespace ddl::runtime::test
