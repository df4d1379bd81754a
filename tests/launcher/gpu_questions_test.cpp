// Ranks' GPUs are asked for in processes that may do anything: here shell scripts.
#include "launcher/node/gpu_questions.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <optional>

#include "base/fd.h"
#include "base/text.h"
#include "launcher/loop_driver.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::launcher;
using namespace std::chrono_literals;
using ddl::launcher::message::VisibleGpus;
using ddl::launcher::test::LoopDriver;

namespace {

RankLaunch rank_of(int number, const ddl::Environment& environment) {
  RankLaunch rank;
  rank.rank = number;
  rank.environment = environment;
  return rank;
}

/// Asks for ranks 0, 1, ... with these variables, by a script whose $1 is the vendor.
class Asked {
 public:
  Asked(const std::string& script, const std::vector<ddl::Environment>& ranks,
        std::chrono::milliseconds patience = 60s) {
    GpuQuestions::Settings settings;
    settings.program = {"/bin/sh", "-c", script, "sh"};
    settings.patience = patience;
    questions_.emplace(
        loop_,
        [this](VisibleGpus&& answer) {
          answers_[answer.rank] = std::move(answer);
          driver_.check();
        },
        settings);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      questions_->ask(rank_of(static_cast<int>(i), ranks[i]), ddl::environment_entries(ranks[i]));
  }

  /// Runs until no question is open.
  const std::map<int, VisibleGpus>& answers() {
    driver_.run_until("all answers", [this] { return !questions_->is_open(); });
    return answers_;
  }
  GpuQuestions& questions() { return *questions_; }

 private:
  EventLoop loop_;
  LoopDriver driver_{loop_};
  std::map<int, VisibleGpus> answers_;
  std::optional<GpuQuestions> questions_;
};

const ddl::Environment kOneGpu{{"CUDA_VISIBLE_DEVICES", "1"}};

/// The failure of a script that answers nothing.
std::string failure_of(const std::string& script, std::chrono::milliseconds patience = 60s) {
  Asked asked(script, {kOneGpu}, patience);
  const VisibleGpus answer = asked.answers().at(0);
  CHECK_FALSE(answer.is_known);
  CHECK(answer.gpus.empty());
  return answer.failure;
}

}  // namespace

TEST_CASE("each rank is asked for in its environment, and ranks with the same GPUs together") {
  const ddl::test::TemporaryDirectory directory;
  const std::string log = directory.path() + "/asked";
  const std::string script = "echo $1 $CUDA_VISIBLE_DEVICES$ROCR_VISIBLE_DEVICES >>" + log +
                             "; echo noise; printf '{\"gpus\":[{\"bus_id\":\"%s\",\"uuid\":\"\"}]}\\n' "
                             "$CUDA_VISIBLE_DEVICES$ROCR_VISIBLE_DEVICES";
  Asked asked(script, {{{"CUDA_VISIBLE_DEVICES", "0"}},
                       {{"CUDA_VISIBLE_DEVICES", "1"}},
                       {{"CUDA_VISIBLE_DEVICES", "1"}, {"RANK", "2"}},
                       {{"ROCR_VISIBLE_DEVICES", "1"}},
                       {{"ZE_AFFINITY_MASK", "0"}},
                       {}});
  const auto& answers = asked.answers();
  REQUIRE(answers.size() == 4);
  for (const auto& [rank, answer] : answers) {
    CAPTURE(rank);
    CHECK(answer.is_known);
    CHECK(answer.gpus == std::vector<SeenGpu>{{rank == 0 ? "0" : "1", ""}});
  }
  std::vector<std::string> lines;
  const std::string text = ddl::read_file(log).value();
  for (const std::string_view line : ddl::split(ddl::trim(text), '\n')) lines.emplace_back(line);
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<std::string>{"amd 1", "nvidia 0", "nvidia 1"});
}

TEST_CASE("a runtime that is not installed, fails, crashes, says nonsense or hangs") {
  CHECK(failure_of("echo '{\"failure\":\"\"}'").empty());
  CHECK(failure_of("echo '{\"failure\":\"cuInit fails with 3\"}'") == "cuInit fails with 3");
  for (const char* script : {"kill -SEGV $$", "exit 3", "echo nonsense", "echo '[]'", "echo '{\"gpus\":[1]}'",
                             "echo '{\"gpus\":[{\"bus_id\":1}]}'", "echo '{\"failure\":1}'", "yes"}) {
    CAPTURE(script);
    CHECK(failure_of(script) == "the vendor's runtime has ended the program that asked it");
  }
  CHECK(failure_of("exec sleep 1000", 50ms) == "the vendor's runtime has not answered in time");
}

TEST_CASE("a question that is given up ends its program") {
  const ddl::test::TemporaryDirectory directory;
  const std::string started = directory.path() + "/started";
  REQUIRE(::mkfifo(started.c_str(), 0600) == 0);
  Asked asked("echo $$ >" + started + "; exec sleep 1000", {kOneGpu});
  std::ifstream fifo(started);
  pid_t pid = 0;
  REQUIRE(fifo >> pid);
  CHECK(asked.questions().is_open());
  asked.questions().give_up();
  CHECK_FALSE(asked.questions().is_open());
  CHECK(::kill(pid, 0) == -1);  // it has been reaped
}
