#include "launcher/process/process_tree.h"

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/process.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

struct Entry {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t start_time = 0;
};

// /proc/PID/stat: "pid (comm) state ppid ... starttime(22nd) ...". comm may hold anything, so parse after the last ')'.
std::optional<Entry> read_entry(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 8192);
  if (!text) return std::nullopt;
  const std::size_t end_of_name = text->rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 > text->size()) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(end_of_name + 2), ' ');
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  Entry entry;
  entry.state = fields[0][0];
  entry.parent = static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
  entry.start_time = static_cast<std::uint64_t>(parse_integer(fields[19]).value_or(0));
  return entry;
}

std::vector<pid_t> numbered_entries(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return numbers;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const auto number = parse_integer(entry->d_name)) numbers.push_back(static_cast<pid_t>(*number));
  }
  return numbers;
}

using ChildLists = std::map<pid_t, std::vector<pid_t>>;

// Reads every process of the machine.
ChildLists child_lists_of_all() {
  ChildLists lists;
  for (const pid_t pid : numbered_entries("/proc")) {
    if (const auto entry = read_entry(pid)) lists[entry->parent].push_back(pid);
  }
  return lists;
}

// Reads only what is below root, by /proc/PID/task/TID/children (proc(5); needs CONFIG_PROC_CHILDREN, which
// distributions have). nullopt without it.
std::optional<ChildLists> child_lists_below(pid_t root) {
  ChildLists lists;
  std::vector<pid_t> pending = {root};
  while (!pending.empty()) {
    const pid_t pid = pending.back();
    pending.pop_back();
    if (lists.contains(pid)) continue;
    auto& children = lists[pid];
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const pid_t thread : numbered_entries(tasks)) {
      const auto text = read_file(tasks + "/" + std::to_string(thread) + "/children");
      if (!text && pid == root) return std::nullopt;
      if (!text) continue;  // ended meanwhile
      for (const auto word : split(*text, ' ')) {
        if (const auto child = parse_integer(word)) children.push_back(static_cast<pid_t>(*child));
      }
    }
    pending.insert(pending.end(), children.begin(), children.end());
  }
  return lists;
}

std::vector<ProcessId> living_below(pid_t root, ChildLists lists, const std::vector<ProcessId>& bystanders) {
  std::vector<ProcessId> found;
  std::vector<pid_t> pending = lists[root];
  std::set<pid_t> seen;  // the lists are no snapshot: a recycled pid must not make a loop
  while (!pending.empty()) {
    const pid_t pid = pending.back();
    pending.pop_back();
    if (!seen.insert(pid).second) continue;
    const auto entry = read_entry(pid);
    const auto is_it = [&](const ProcessId& one) {
      return entry && one.pid == pid && one.start_time == entry->start_time;
    };
    if (std::any_of(bystanders.begin(), bystanders.end(), is_it)) continue;
    if (entry && entry->state != 'Z' && entry->state != 'X') found.push_back({pid, entry->start_time});
    const auto& below = lists[pid];
    pending.insert(pending.end(), below.begin(), below.end());
  }
  return found;
}

// Whoever lost its parent became a subreaper's child: without children it has no descendants.
bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void reap_finished_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

/// Whether a pidfd was refused because there is no such process any more.
bool is_gone(const Error& refused) { return refused.system_errno() == ESRCH; }

std::vector<ProcessId> descendants_without(pid_t root, const std::vector<ProcessId>& bystanders) {
  auto lists = child_lists_below(root);
  return living_below(root, lists ? std::move(*lists) : child_lists_of_all(), bystanders);
}

}  // namespace

Status check_proc() {
  std::array<char, 32> text{};
  const ssize_t size = ::readlink("/proc/self", text.data(), text.size());
  const std::string_view self(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (parse_integer(self) == ::getpid()) return {};
  return fail(ErrorCode::kUnavailable,
              std::string(self.empty() ? "/proc is not mounted" : "/proc is that of another PID namespace") +
                  ", and without it what a job leaves behind is not found: mount -t proc proc /proc");
}

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L); }

std::vector<ProcessId> descendants_of(pid_t root) { return descendants_without(root, {}); }

void signal_process(const ProcessId& process, int signal) {
  const auto pidfd = open_pidfd(process.pid);
  if (!pidfd && is_gone(pidfd.error())) return;
  // The descriptor pins the process; what it pins is checked after that.
  const auto entry = read_entry(process.pid);
  if (!entry || entry->start_time != process.start_time) return;
  if (pidfd) {
    (void)send_signal(pidfd->get(), signal);
  } else {
    ::kill(process.pid, signal);  // nothing pins it, but a job must end also where the kernel has no pidfds
  }
}

namespace {

// Both kinds of ending look again after every death: what is left may have forked meanwhile.
template <class OnFound>
bool until_none_left(Deadline deadline, const std::vector<ProcessId>& bystanders, OnFound on_found) {
  for (;;) {
    reap_finished_children();
    if (!has_children()) return true;
    auto found = descendants_without(::getpid(), bystanders);
    // The lists below us may miss one while another ends; a child that is not among them must be found.
    if (found.empty()) found = living_below(::getpid(), child_lists_of_all(), bystanders);
    if (found.empty() && !bystanders.empty()) return true;
    UniqueFd first;
    bool all_have_ended = !found.empty();
    for (const ProcessId& process : found) {
      if (!first) {
        auto pidfd = open_pidfd(process.pid);
        all_have_ended = all_have_ended && !pidfd && is_gone(pidfd.error());
        if (pidfd) first = *std::move(pidfd);
      }
      on_found(process);
    }
    if (deadline.has_passed()) return false;
    if (!first) {
      // Where all of them ended since they were listed, what they have started is looked for at once.
      if (!all_have_ended) (void)::poll(nullptr, 0, nap_milliseconds(deadline));
      continue;
    }
    pollfd entry{first.get(), POLLIN, 0};
    retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); });
  }
}

}  // namespace

bool wait_for_descendants(Deadline deadline, const std::vector<ProcessId>& bystanders) {
  return until_none_left(deadline, bystanders, [](const ProcessId&) {});
}

int kill_descendants(Deadline deadline, const std::vector<ProcessId>& bystanders) {
  std::set<std::pair<pid_t, std::uint64_t>> killed;
  until_none_left(deadline, bystanders, [&](const ProcessId& process) {
    signal_process(process, SIGKILL);
    killed.insert({process.pid, process.start_time});
  });
  return static_cast<int>(killed.size());
}

void Terminator::begin(int signal, double grace_seconds) {
  if (done_ || killed_) return;
  const bool first = !has_begun();
  const auto now = std::chrono::steady_clock::now();
  const auto grace = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(signal == SIGKILL ? 0.0 : grace_seconds));
  if (!first && *kill_at_ <= now + grace) return;
  kill_at_ = now + grace;
  if (grace.count() <= 0) return kill_now();
  if (first) actions_.ask(signal);
  timer_ = loop_.after(grace, [this] { kill_now(); });
}

void Terminator::kill_now() {
  if (done_ || killed_) return;
  killed_ = true;
  timer_.cancel();
  actions_.kill();
}

}  // namespace ddl::launcher
