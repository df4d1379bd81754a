#include "base/process_tree.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl {
namespace {

using ChildLists = std::map<pid_t, std::vector<pid_t>>;

// Reads every process of the machine.
ChildLists child_lists_of_all() {
  ChildLists lists;
  for (const pid_t pid : listed_pids()) {
    if (const auto stat = read_process_stat(pid)) lists[stat->parent].push_back(pid);
  }
  return lists;
}

/// Whether the kernel lists the children of a process (proc(5): CONFIG_PROC_CHILDREN, which distributions have).
bool kernel_lists_children() { return ::access("/proc/thread-self/children", R_OK) == 0; }

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const pid_t thread : listed_pids(tasks)) {
    const auto text = read_file(tasks + "/" + std::to_string(thread) + "/children");
    if (!text) continue;  // ended meanwhile
    for (const auto word : split(*text, ' ')) {
      if (const auto child = parse_integer(word)) children.push_back(static_cast<pid_t>(*child));
    }
  }
  return children;
}

/// Passes each living descendant of root to on_found as soon as it is read, and returns all of them. A parent comes
/// before its children, since a parent that is killed starts no more. all: the children of all processes; null: the
/// kernel is asked for those of each.
template <class OnFound>
std::vector<ProcessId> visit_below(pid_t root, ChildLists* all, const std::vector<ProcessId>& preexisting,
                                   OnFound on_found) {
  const auto children = [all](pid_t pid) { return all != nullptr ? (*all)[pid] : children_of(pid); };
  std::vector<ProcessId> found;
  std::vector<pid_t> pending = children(root);
  std::set<pid_t> seen;  // what is read is not a snapshot: a recycled pid must not make a loop
  while (!pending.empty()) {
    const pid_t pid = pending.back();
    pending.pop_back();
    if (!seen.insert(pid).second) continue;
    const auto stat = read_process_stat(pid);
    const ProcessId process{pid, stat ? stat->start_time : 0};
    if (stat && std::find(preexisting.begin(), preexisting.end(), process) != preexisting.end()) continue;
    const auto below = children(pid);
    if (stat && stat->is_alive()) {
      found.push_back(process);
      on_found(process);
    }
    pending.insert(pending.end(), below.begin(), below.end());
  }
  return found;
}

template <class OnFound>
std::vector<ProcessId> visit_descendants(pid_t root, const std::vector<ProcessId>& preexisting,
                                         OnFound on_found) {
  if (kernel_lists_children()) return visit_below(root, nullptr, preexisting, on_found);
  auto all = child_lists_of_all();
  return visit_below(root, &all, preexisting, on_found);
}

void reap_finished_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

/// Whether a pidfd was refused because there is no such process any more.
bool is_gone(const Error& refused) { return refused.system_errno() == ESRCH; }

}  // namespace

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

Status check_proc() {
  std::array<char, 32> text{};
  const ssize_t size = ::readlink("/proc/self", text.data(), text.size());
  const std::string_view self(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (parse_integer(self) == ::getpid()) return {};
  return fail(
      ErrorCode::kUnavailable,
      std::string(self.empty() ? "/proc is not mounted" : "/proc is that of another PID namespace") +
          ", and without it processes that a job leaves behind are not found: mount -t proc proc /proc");
}

Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) != 0)
    return fail_errno("prctl(PR_SET_CHILD_SUBREAPER)");
  return {};
}

std::vector<ProcessId> descendants_of(pid_t root) {
  return visit_descendants(root, {}, [](const ProcessId&) {});
}

std::vector<ProcessId> signal_descendants(int signal) {
  return visit_descendants(::getpid(), {},
                           [signal](const ProcessId& process) { signal_process(process, signal); });
}

void signal_process(const ProcessId& process, int signal) {
  const auto pidfd = open_pidfd(process.pid);
  if (!pidfd && is_gone(pidfd.error())) return;
  // The descriptor pins the process; what it pins is checked after that.
  const auto stat = read_process_stat(process.pid);
  if (!stat || stat->start_time != process.start_time) return;
  if (pidfd) {
    (void)send_signal(pidfd->get(), signal);
  } else {
    ::kill(process.pid, signal);  // nothing pins it, but a job must end also where the kernel has no pidfds
  }
}

void wait_until_one_ends(const std::vector<ProcessId>& processes, Deadline deadline) {
  constexpr std::size_t kMaxWatched =
      64;  // a tree may have more processes than this one may have descriptors
  std::vector<UniqueFd> pidfds;
  std::vector<pollfd> watched;
  for (const ProcessId& process : processes) {
    if (watched.size() == kMaxWatched) break;
    auto pidfd = open_pidfd(process.pid);
    if (!pidfd && is_gone(pidfd.error())) return;
    if (!pidfd) break;
    watched.push_back({pidfd->get(), POLLIN, 0});
    pidfds.push_back(std::move(*pidfd));
  }
  // Without a process to watch, a parent is about to reap its zombies, or the kernel has no pidfds: polled.
  const int patience = watched.empty() ? poll_period_milliseconds(deadline) : deadline.poll_milliseconds();
  retry_eintr([&] { return ::poll(watched.data(), watched.size(), patience); });
}

namespace {

// Lists the descendants again after every death: those that are left may have forked meanwhile.
template <class OnFound>
bool until_none_left(Deadline deadline, const std::vector<ProcessId>& preexisting, OnFound on_found) {
  for (;;) {
    reap_finished_children();
    if (!has_children()) return true;
    auto found = visit_descendants(::getpid(), preexisting, on_found);
    if (found.empty()) {
      // The last child may have ended since then. If not, the lists have missed one while another ended.
      reap_finished_children();
      if (!has_children()) return true;
      auto all = child_lists_of_all();
      found = visit_below(::getpid(), &all, preexisting, on_found);
      if (found.empty() && !preexisting.empty()) return true;
    }
    if (deadline.has_passed()) return false;
    wait_until_one_ends(found, deadline);
  }
}

}  // namespace

bool wait_for_descendants(Deadline deadline, const std::vector<ProcessId>& preexisting) {
  return until_none_left(deadline, preexisting, [](const ProcessId&) {});
}

int kill_descendants(Deadline deadline, const std::vector<ProcessId>& preexisting) {
  std::set<std::pair<pid_t, std::uint64_t>> killed;
  until_none_left(deadline, preexisting, [&](const ProcessId& process) {
    signal_process(process, SIGKILL);
    killed.insert({process.pid, process.start_time});
  });
  return static_cast<int>(killed.size());
}

OrphanReaper::OrphanReaper() : preexisting_(descendants_of(::getpid())) { (void)become_subreaper(); }

OrphanReaper::~OrphanReaper() {
  constexpr std::chrono::seconds kPatience{2};
  (void)kill_descendants(Deadline::after(kPatience), preexisting_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0L, 0L, 0L, 0L);
}

}  // namespace ddl
