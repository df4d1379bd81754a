#include "bench/scoreboard.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <new>

#include <fmt/format.h>

#include "base/core_distance.h"
#include "base/text.h"

namespace ddl::bench {
namespace {

constexpr std::size_t kCacheLine = 64;

std::size_t all_calls(const std::vector<SizePlan>& plan) {
  std::size_t calls = 0;
  for (const SizePlan& size : plan) calls += size.calls;
  return calls;
}

std::size_t row_bytes(const std::vector<SizePlan>& plan) {
  return (all_calls(plan) * sizeof(double) + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// Of the calls of this size and their warm-ups, and after the last.
std::size_t distances_of(const SizePlan& size) { return size.warm_ups + size.calls + 1; }

// The bytes before the distances.
std::size_t times_bytes(int ranks, const std::vector<SizePlan>& plan) {
  return ranks * (2 * kCacheLine + row_bytes(plan));
}

std::size_t total_bytes(int ranks, const std::vector<SizePlan>& plan) {
  std::size_t bytes = times_bytes(ranks, plan);
  for (const SizePlan& size : plan) bytes += distances_of(size) * sizeof(Distance);
  return bytes;
}

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Not FUTEX_PRIVATE_FLAG: the ranks are processes, also in different namespaces.
void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Waits until the word has reached turn. For kYield the rank yields at first, so that all leave the barrier together.
// When a millisecond has passed it sleeps, so that a rank that is far ahead does not take the CPU time of the others.
class BarrierWait {
 public:
  BarrierWait(Wait wait, const std::function<void()>& progress) : wait_(wait), progress_(progress) {}

  void until(std::atomic<std::uint32_t>& word, std::uint32_t turn) {
    std::uint32_t seen = word.load(std::memory_order_acquire);
    for (; seen < turn; seen = word.load(std::memory_order_acquire)) {
      if (wait_ == Wait::kSpin) {
        pause_cpu();
        if (++pauses_ % kPausesBetweenLooks != 0) continue;
      }
      const auto now = Clock::now();
      if (wait_ == Wait::kYield && now < yield_end_) {
        ::sched_yield();
      } else if (wait_ != Wait::kSpin) {
        sleep(word, seen);
      }
      if (progress_ && now >= next_progress_) {
        progress_();
        next_progress_ = now + kMillisecond;
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMillisecond{1};
  static constexpr int kPausesBetweenLooks = 256;

  void sleep(std::atomic<std::uint32_t>& word, std::uint32_t seen) const {
    const timespec millisecond{0, 1'000'000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, progress_ ? &millisecond : nullptr, nullptr, 0);
  }

  Wait wait_;
  const std::function<void()>& progress_;
  const Clock::time_point yield_end_ = Clock::now() + kMillisecond;
  Clock::time_point next_progress_ = yield_end_;
  int pauses_ = 0;
};

}  // namespace

Scoreboard::Scoreboard(UniqueFd fd, MappedMemory memory, std::string path, int ranks,
                       std::vector<SizePlan> plan)
    : fd_(std::move(fd)),
      memory_(std::move(memory)),
      path_(std::move(path)),
      ranks_(ranks),
      plan_(std::move(plan)) {}

Result<Scoreboard> Scoreboard::create(int ranks, const std::vector<SizePlan>& plan) {
  UniqueFd fd(::memfd_create("ddl-bench scoreboard", MFD_CLOEXEC));
  if (!fd) return fail_errno("memfd_create");
  // A memfd, because a killed harness would leave a file in /dev/shm behind.
  std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), fd.get());
  return create_in(std::move(fd), std::move(path), ranks, plan);
}

Result<Scoreboard> Scoreboard::create_file(const std::string& path, int ranks,
                                           const std::vector<SizePlan>& plan) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("create the scoreboard " + path);
  return create_in(std::move(fd), path, ranks, plan);
}

Result<Scoreboard> Scoreboard::create_in(UniqueFd fd, std::string path, int ranks,
                                         const std::vector<SizePlan>& plan) {
  const std::size_t size = total_bytes(ranks, plan);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return fail_errno("ftruncate the scoreboard");
  DDL_ASSIGN(memory, MappedMemory::map_shared(fd.get(), size));
  return Scoreboard(std::move(fd), std::move(memory), std::move(path), ranks, plan);
}

Result<Scoreboard> Scoreboard::open(const std::string& path, int ranks, const std::vector<SizePlan>& plan) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return fail_errno("open the scoreboard " + path);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return fail_errno("fstat " + path);
  const std::size_t size = total_bytes(ranks, plan);
  if (static_cast<std::size_t>(facts.st_size) != size) {
    return fail(ErrorCode::kProtocol, fmt::format("the scoreboard has {} bytes, but {} and this plan need {}",
                                                  facts.st_size, counted(ranks, "rank"), size));
  }
  DDL_ASSIGN(memory, MappedMemory::map_shared(fd.get(), size));
  return Scoreboard(std::move(fd), std::move(memory), path, ranks, plan);
}

// One rank's cache line; only that rank writes it. No rank is more than one barrier ahead of another, so two values
// of enough, used in turn, are sufficient.
struct Scoreboard::RankLine {
  std::atomic<std::uint32_t> arrivals;  // a futex
  bool enough[2];
};

Scoreboard::RankLine& Scoreboard::rank_line(int rank) const {
  static_assert(sizeof(RankLine) <= kCacheLine && std::atomic<std::uint32_t>::is_always_lock_free);
  // A new memfd or file is all zeros, which is a counter at zero on every supported platform.
  return *std::launder(reinterpret_cast<RankLine*>(memory_.data() + rank * kCacheLine));
}

bool Scoreboard::barrier(int rank, Wait wait, bool enough) {
  RankLine& own = rank_line(rank);
  const std::uint32_t turn = own.arrivals.load(std::memory_order_relaxed) + 1;
  own.enough[turn % 2] = enough;
  own.arrivals.store(turn, std::memory_order_release);
  if (wait != Wait::kSpin) wake_all(own.arrivals);
  BarrierWait waiting(wait, progress_);
  for (int other = 0; other < ranks_; ++other) waiting.until(rank_line(other).arrivals, turn);
  return rank_line(0).enough[turn % 2];
}

double* Scoreboard::seconds(int rank, std::size_t size_index) const {
  std::size_t calls_before = 0;
  for (std::size_t i = 0; i < size_index; ++i) calls_before += plan_[i].calls;
  auto* row = memory_.data() + ranks_ * 2 * kCacheLine + rank * row_bytes(plan_);
  return reinterpret_cast<double*>(row) + calls_before;
}

TimedCalls Scoreboard::timed_calls(std::size_t size_index) const {
  TimedCalls calls;
  std::vector<double>& slowest = calls.seconds;
  slowest.assign(plan_[size_index].calls, 0.0);
  for (int rank = 0; rank < ranks_; ++rank) {
    const double* times = seconds(rank, size_index);
    const std::size_t made = std::find(times, times + slowest.size(), 0.0) - times;
    slowest.resize(made);
    for (std::size_t call = 0; call < made; ++call) slowest[call] = std::max(slowest[call], times[call]);
  }
  const Distance* before = distances(size_index) + plan_[size_index].warm_ups;
  for (std::size_t call = 0; call < slowest.size(); ++call)
    calls.distances.push_back(before[call] == before[call + 1] ? before[call] : Distance::kUnknown);
  return calls;
}

std::atomic<std::uint32_t>& Scoreboard::ping(int rank) const {
  return *std::launder(
      reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.data() + (ranks_ + rank) * kCacheLine));
}

Distance* Scoreboard::distances(std::size_t size_index) const {
  auto* at = reinterpret_cast<Distance*>(memory_.data() + times_bytes(ranks_, plan_));
  for (std::size_t i = 0; i < size_index; ++i) at += distances_of(plan_[i]);
  return at;
}

Distance Scoreboard::measure_distance(int rank) {
  if (rank != 0) {
    answer_round_trips(ping(rank), Deadline::never());
    return Distance::kUnknown;
  }
  std::size_t far = 0;
  for (int other = 1; other < ranks_; ++other) {
    if (*measure_round_trip(ping(other), Deadline::never()) >= kFarCores) ++far;
  }
  return distance_by(far, ranks_ - 1);
}

void Scoreboard::record_distance(int rank, std::size_t size_index, std::uint64_t call) {
  const Distance found = measure_distance(rank);
  if (rank == 0) distances(size_index)[call] = found;
}

}  // namespace ddl::bench
