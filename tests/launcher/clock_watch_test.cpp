// The clocks of cores, as Linux states them in a folder of the test.
#include "launcher/node/clock_watch.h"

#include <filesystem>
#include <fstream>

#include "launcher/loop_driver.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::launcher;
using ddl::launcher::test::LoopDriver;

namespace {

RankLaunch rank_on_cpus(int rank, const std::vector<int>& cpus) {
  RankLaunch launch;
  launch.rank = rank;
  launch.cpus = ddl::CpuSet::of(cpus);
  return launch;
}

constexpr char kTwoCpus[] =
    "processor\t: 0\nmodel name\t: Some: CPU\ncpu MHz\t\t: 1200.500\n\nprocessor\t: 3\ncpu MHz\t\t: "
    "2400.000\n";

}  // namespace

TEST_CASE("clocks are read from /proc/cpuinfo") {
  CHECK(parse_clocks(kTwoCpus) == std::map<int, double>{{0, 1200.5e6}, {3, 2400e6}});
  CHECK(parse_clocks("").empty());
  CHECK(parse_clocks("cpu MHz : 1000\n").empty());
  CHECK(parse_clocks("processor : -1\ncpu MHz : 1000\nprocessor : 99999999999\ncpu MHz : 1000\n").empty());
  CHECK(parse_clocks("processor : 0\ncpu MHz : 0.000\nprocessor : 1\ncpu MHz : fast\nprocessor\n").empty());
  // Arm's has no clock.
  CHECK(parse_clocks("processor : 0\nBogoMIPS : 50.00\n").empty());
}

TEST_CASE("a rank's clock is that of the fastest of its cores") {
  const ddl::test::TemporaryDirectory root;
  std::filesystem::create_directories(root / "proc");
  std::ofstream(root / "proc/cpuinfo") << kTwoCpus;
  const std::string clock_driver = root / "sys/devices/system/cpu/cpu1/cpufreq";
  std::filesystem::create_directories(clock_driver);
  std::ofstream(clock_driver + "/scaling_cur_freq") << "1800000\n";
  EventLoop loop;
  LoopDriver driver(loop);
  ClockWatch watch(loop, root.path());
  watch.add(rank_on_cpus(0, {0}));
  watch.add(rank_on_cpus(1, {0, 1}));
  watch.add(rank_on_cpus(2, {1, 3}));
  watch.add(rank_on_cpus(3, {2}));
  watch.add(rank_on_cpus(4, {}));
  watch.add(rank_on_cpus(5, {0}));
  watch.end(5);
  CHECK(watch.hertz(0) < 0);
  EventLoop::Timer look;
  std::function<void()> again = [&] {
    driver.check();
    look = loop.after(std::chrono::milliseconds(5), again);
  };
  again();
  driver.run_until("the first look", [&] { return watch.hertz(0) > 0; });
  CHECK(watch.hertz(0) == 1'200'500'000);
  CHECK(watch.hertz(1) == 1'800'000'000);
  CHECK(watch.hertz(2) == 2'400'000'000);
  for (const int rank : {3, 4, 5}) CHECK(watch.hertz(rank) < 0);
  for (const int rank : {0, 1, 2, 3}) watch.end(rank);
  CHECK(watch.hertz(0) < 0);
}
