#include "bench/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/core_distance.h"
#include "base/cpu_set.h"
#include "base/fd.h"
#include "base/text.h"
#include "bench/peer_mpi.h"
#include "contract/version.h"

namespace ddl::bench {
namespace {

// The rest of the first line that starts with key, without separators and quotes around it.
std::string field(const std::string& path, std::string_view key, std::string_view separators) {
  const auto text = read_file(path);
  if (!text) return {};
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(key)) continue;
    std::string_view rest = line.substr(key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(separators), rest.size()));
    return std::string(rest.substr(0, rest.find('"')));
  }
  return {};
}

std::string open_mpi_version(const std::string& mpirun) {
  if (mpirun.empty()) return {};
  const auto version = version_of_mpi(mpirun);
  return version && version->family == MpiVersion::Family::kOpenMpi ? version->number : std::string();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double used_by(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Machine describe_machine(const std::string& mpirun) {
  Machine machine;
  machine.cpu_model = field("/proc/cpuinfo", "model name", " \t:");
  if (machine.cpu_model.empty()) machine.cpu_model = field("/proc/cpuinfo", "CPU part", " \t:");
  machine.cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  machine.system = field("/etc/os-release", "PRETTY_NAME=", "\"");
  utsname name{};
  if (::uname(&name) == 0) machine.kernel = name.release;
  machine.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
  machine.build_type = DDL_BENCH_BUILD_TYPE;
  machine.version = contract::kVersion;
  machine.open_mpi = open_mpi_version(mpirun);
  return machine;
}

LoadWatch::LoadWatch(std::function<double()> also_own) : also_own_(std::move(also_own)), start_(sample()) {}

LoadWatch::Sample LoadWatch::sample() const {
  Sample now;
  now.own = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
  if (also_own_) now.own += also_own_();
  // proc(5): "cpu  user nice system idle iowait irq softirq steal guest ..."; guest time is contained in user time.
  const std::string text = field("/proc/stat", "cpu ", " ");
  const auto fields = split(text, ' ');
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (std::size_t i = 0; i < std::min<std::size_t>(fields.size(), 8); ++i) {
    const double value = tick * static_cast<double>(parse_integer(fields[i]).value_or(0));
    now.total += value;
    if (i != 3 && i != 4) now.busy += value;
  }
  return now;
}

double LoadWatch::other_load() const {
  const Sample now = sample();
  const double total = now.total - start_.total;
  if (total <= 0) return 0;
  return std::clamp(((now.busy - start_.busy) - (now.own - start_.own)) / total, 0.0, 1.0);
}

const char* name_of(Distance distance) {
  switch (distance) {
    case Distance::kUnknown: return "unknown";
    case Distance::kNear: return "near";
    case Distance::kFar: return "far";
    case Distance::kMixed: return "mixed";
  }
  return "unknown";
}

namespace {

/// Between two measurements of CPUs that a virtual machine may move: nothing reports that it has.
constexpr std::chrono::milliseconds kPause{50};
/// A thread that has not begun to run by then has no CPU.
constexpr std::chrono::seconds kTimeToAnswer{1};

}  // namespace

Distance distance_of(const std::vector<int>& cpus) {
  if (cpus.size() < 2) return Distance::kUnknown;
  const Deadline deadline = Deadline::after(kTimeToAnswer);
  // Each in a cache line of its own: the threads spin on them.
  struct alignas(64) Line {
    std::atomic<std::uint32_t> word{0};
  };
  std::vector<Line> lines(cpus.size());
  std::atomic<bool> is_bound = true;
  std::size_t far = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      threads.emplace_back([&, i] {
        if (CpuSet::of({cpus[i]}).bind_this_thread() != 0) is_bound = false;
        if (i > 0) return answer_round_trips(lines[i].word, deadline);
        for (std::size_t other = 1; other < lines.size(); ++other) {
          const auto found = measure_round_trip(lines[other].word, deadline);
          if (!found) is_bound = false;
          if (found && *found >= kFarCores) ++far;
        }
      });
    }
  }
  return is_bound ? distance_by(far, cpus.size() - 1) : Distance::kUnknown;
}

std::vector<int> far_cpus(const std::vector<int>& allowed, int ranks, Deadline deadline) {
  const std::size_t wanted = ranks;
  if (allowed.size() <= wanted) return allowed;
  do {
    for (const int first : allowed) {
      std::vector<int> cpus{first};
      for (const int other : allowed) {
        if (cpus.size() < wanted && other != first && distance_of({first, other}) == Distance::kFar)
          cpus.push_back(other);
      }
      if (cpus.size() == wanted) return cpus;
    }
    std::this_thread::sleep_for(kPause);
  } while (!deadline.has_passed());
  return {allowed.begin(), allowed.begin() + ranks};
}

bool wait_until_far(const std::vector<int>& cpus, Deadline deadline) {
  while (distance_of(cpus) != Distance::kFar) {
    if (deadline.has_passed()) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace ddl::bench
