// How much GPUs are used is said by processes that may do anything: here shell scripts.
#include "launcher/node/gpu_watch.h"

#include <optional>

#include "launcher/loop_driver.h"
#include "support/catch.h"

using namespace ddl::launcher;
using Catch::Matchers::Contains;
using ddl::launcher::test::LoopDriver;

namespace {

RankLaunch rank_with(const ddl::Environment& environment, std::vector<int> gpus) {
  RankLaunch rank;
  rank.environment = environment;
  rank.gpus = std::move(gpus);
  return rank;
}

const ddl::Environment kNvidia{{"CUDA_VISIBLE_DEVICES", "0"}};

/// A sample of GPUs 0 and 1.
std::string sample(const std::string& seconds, const std::string& busy, const std::string& memory,
                   const std::string& joules) {
  std::string text = "echo '{\"seconds\":" + seconds + ",\"gpus\":[";
  for (int gpu = 0; gpu < 2; ++gpu)
    text += std::string(gpu == 0 ? "" : ",") + "{\"index\":" + std::to_string(gpu) + ",\"name\":\"GPU-" +
            std::to_string(gpu) + "\",\"model\":\"H200\",\"busy_ratio\":" + (gpu == 0 ? busy : "-1") +
            ",\"memory\":" + memory + ",\"memory_limit\":100,\"joules\":" + joules + "}";
  return text + "]}'\n";
}

/// Ranks whose GPUs are watched by a script.
class Watched {
 public:
  Watched(const std::string& script, const std::vector<RankLaunch>& ranks)
      : watch_(loop_, {"/bin/sh", "-c", script, "sh"}) {
    for (const RankLaunch& rank : ranks) watch_.add(rank);
  }
  /// What is known when that is wanted.
  template <class Wanted>
  NodeUsage until(Wanted wanted) {
    NodeUsage usage;
    EventLoop::Timer look;
    std::function<void()> again = [&] {
      driver_.check();
      look = loop_.after(std::chrono::milliseconds(5), again);
    };
    again();
    driver_.run_until("the use of GPUs", [&] {
      usage = {};
      watch_.add_to(usage);
      return wanted(usage);
    });
    return usage;
  }
  std::string unknown_after(const std::string& first = "did not answer") {
    return until([&](const NodeUsage& usage) {
             return usage.gpus.empty() && usage.gpus_unknown.find(first) == std::string::npos;
           })
        .gpus_unknown;
  }

 private:
  EventLoop loop_;
  LoopDriver driver_{loop_};
  GpuWatch watch_;
};

}  // namespace

TEST_CASE("samples of a GPU are a mean, a peak and a difference; a GPU of two ranks counts once") {
  Watched watched("echo noise; echo '[1]'; " + sample("0", "0.25", "10", "100") +
                      sample("1", "0.5", "30", "160") + sample("3", "1", "20", "-1") + "exec sleep 1000",
                  {rank_with(kNvidia, {0}), rank_with(kNvidia, {0})});
  const NodeUsage usage = watched.until(
      [](const NodeUsage& now) { return !now.gpus.empty() && now.gpus[0].last_busy_ratio == 1; });
  // 0.5 for one second, and 1 for two.
  CHECK(usage.gpus == std::vector<GpuUse>{{"GPU-0", 0, "H200", 2.5 / 3, 1, 20, 30, 100, 60}});
  CHECK(usage.gpus_unknown.empty());
}

TEST_CASE("what a library does not say of a GPU is not known, and what was said stays") {
  Watched watched(sample("0", "-1", "-1", "-1") + sample("5", "0.5", "7", "9"), {rank_with(kNvidia, {0, 1})});
  const NodeUsage usage = watched.until(
      [](const NodeUsage& now) { return now.gpus.size() == 2 && now.gpus[0].memory_bytes == 7; });
  CHECK(usage.gpus[0].busy_ratio == 0.5);
  CHECK(usage.gpus[0].joules == 0);
  CHECK(usage.gpus[1].busy_ratio < 0);
}

TEST_CASE("why nothing is known of GPUs is said") {
  CHECK(Watched("exit 1", {rank_with({}, {})}).unknown_after() == "ddlrun has given the ranks no GPUs");
  CHECK_THAT(Watched("exit 1", {rank_with({{"ZE_AFFINITY_MASK", "0"}}, {0})}).unknown_after(),
             Contains("not Intel's"));
  CHECK(Watched("echo '{\"failure\":\"no driver\"}'", {rank_with(kNvidia, {0})}).unknown_after() ==
        "no driver");
  CHECK_THAT(Watched("kill -SEGV $$", {rank_with(kNvidia, {0})}).unknown_after(),
             Contains("was ended by it"));
  CHECK_THAT(Watched("yes | tr -d '\\n'", {rank_with(kNvidia, {0})}).unknown_after(),
             Contains("prints nonsense"));
  CHECK_THAT(Watched(sample("0", "0", "0", "0"), {rank_with(kNvidia, {7})}).unknown_after(),
             Contains("does not count those of the ranks"));
  CHECK_THAT(Watched("exec sleep 1000", {rank_with(kNvidia, {0})}).unknown_after("nothing else"),
             Contains("did not answer before the ranks had ended"));
}
