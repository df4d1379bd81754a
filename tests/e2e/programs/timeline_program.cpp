// timeline_program steps|own|slow_steps|late|until_signal|hang: a rank whose timeline or report a test reads.
//   steps         kSteps times: a range "step N", a mark, an ordered call, and two named tensors that it waits for
//   own           the same, with a timeline of its own, own.json, of all but the first step
//   slow_steps    the same kSlowSteps times, with a pause after each, so that clocks are compared several times
//   late          kLateSteps ordered calls, and as many named tensors; the last rank makes each 20 ms after the others
//   until_signal  prints "ready pidRANK=PID", then does the same until all ranks are to end by SIGUSR1; rank 0 prints
//                 "ten more" ten times after SIGUSR2; the ranks that survive a lost one print the error and exit with 0
//   hang          begins the range "the end" and prints the same; rank 1 makes no call in it, and the others wait for
//                 it: rank 0 in a barrier, the others for a named tensor
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <ddl/ddl.hpp>

namespace {

constexpr int kSteps = 5, kSlowSteps = 60, kLateSteps = 10;
volatile std::sig_atomic_t is_to_end = 0, is_to_count = 0;

/// Returns whether some rank is to end.
bool step(ddl::Context& context, int number) {
  const ddl::Range range = context.range("step " + std::to_string(number));
  context.mark("begun");
  std::vector<float> one(1000, 1.0F), other(3, 1.0F);
  auto first = context.allreduce_async("first", one);
  auto second = context.allreduce_async("second", other, ddl::Op::average);
  first.get();
  second.get();
  std::vector<int> ends{static_cast<int>(is_to_end)};
  context.allreduce(ends, ddl::Op::max);
  return ends.front() != 0;
}

void print_ready(const ddl::Context& context) {
  std::printf("ready pid%d=%d\n", context.rank(), static_cast<int>(::getpid()));
}

int run(const std::string& what) {
  ddl::Context context;
  if (what == "steps") {
    for (int number = 0; number < kSteps; ++number) (void)step(context, number);
    return 0;
  }
  if (what == "own") {
    (void)step(context, 0);
    context.start_timeline("own.json");
    for (int number = 1; number < kSteps; ++number) (void)step(context, number);
    context.stop_timeline();
    return 0;
  }
  if (what == "slow_steps") {
    constexpr int kPause = 20'000;  // us
    for (int number = 0; number < kSlowSteps; ++number) {
      (void)step(context, number);
      ::usleep(kPause);
    }
    return 0;
  }
  if (what == "late") {
    constexpr int kPause = 20'000;  // us
    std::vector<float> data(100, 1.0F);
    const bool is_late = context.rank() == context.size() - 1;
    for (int number = 0; number < 2 * kLateSteps; ++number) {
      if (is_late) ::usleep(kPause);
      if (number < kLateSteps) {
        context.allreduce(data);
      } else {
        context.allreduce_async("data", data).get();
      }
    }
    return 0;
  }
  if (what == "until_signal") {
    (void)step(context, 0);
    print_ready(context);
    constexpr int kPause = 1000;  // us; no test needs more steps than that leaves
    int left = 0;                 // until that is printed
    for (int number = 1; !step(context, number); ++number) {
      if (--left == 0 && context.rank() == 0) std::puts("ten more");
      if (is_to_count != 0) left = 10;
      is_to_count = 0;
      ::usleep(kPause);
    }
    return 0;
  }
  if (what == "hang") {
    (void)step(context, 0);
    // It is never ended.
    [[maybe_unused]] const ddl::Range range = context.range("the end");
    std::vector<float> tensor(10);
    if (context.rank() >= 2) {
      auto awaited = context.allreduce_async("awaited", tensor);
      print_ready(context);
      awaited.get();
    }
    print_ready(context);
    if (context.rank() == 0) context.barrier();
    for (;;) ::pause();
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGUSR1, [](int) { is_to_end = 1; });
  std::signal(SIGUSR2, [](int) { is_to_count = 1; });
  std::signal(SIGTERM,
              SIG_IGN);  // ddlrun ends the survivors of a lost rank, too: they must print their error
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc != 2) return 2;
  try {
    return run(argv[1]);
  } catch (const ddl::Error& error) {
    std::printf("error: %s\n", error.what());
    return error.status() == DDL_ERROR_PEER_LOST ? 0 : 1;
  }
}
