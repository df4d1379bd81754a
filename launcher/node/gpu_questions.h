// Which GPUs the ranks of a node see, as the vendor's runtime says it (--report-bindings). The runtime is asked in
// processes of their own, with the ranks' environments: it may hang or crash, and the loader reads LD_LIBRARY_PATH when
// a program starts.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// The program "ddlrun --ask-gpus VENDOR": prints one line of JSON, {"gpus": [{"bus_id", "uuid"}, ...]}, or
/// {"failure": why}, which is "" where the runtime is not installed. Returns its exit code.
int print_visible_gpus(const std::string& vendor);

/// Asks for ranks, and reports each answer on the loop's thread. Ranks that share their GPUs are asked for once.
class GpuQuestions {
 public:
  using Report = std::function<void(message::VisibleGpus&&)>;
  /// How it is asked; the default is this program, with time for a driver that is not kept loaded.
  struct Settings {
    Settings();
    std::vector<std::string> program;  ///< to which the vendor is added
    std::chrono::milliseconds patience;
  };

  GpuQuestions(EventLoop& loop, Report report, Settings settings = {})
      : loop_(loop), settings_(std::move(settings)), report_(std::move(report)) {}

  /// Nothing is reported of a rank without GPUs, or with GPUs of a vendor whose runtime cannot be asked. environment:
  /// the rank's whole one, NAME=VALUE.
  void ask(const RankLaunch& rank, const std::vector<std::string>& environment);
  /// Whether any rank has no answer yet.
  bool is_open() const { return !open_.empty(); }
  /// Ends what was asked; nothing more is reported.
  void give_up() { open_.clear(); }

 private:
  struct Question {
    std::vector<int> ranks;
    Child child;
    UniqueFd out;
    std::string text{};
    EventLoop::FdWatch watch{};  // before out is closed
    EventLoop::Timer deadline{};
  };
  void on_readable(const std::string& key);
  void answer(const std::string& key, const message::VisibleGpus& answer);

  EventLoop& loop_;
  Settings settings_;
  Report report_;
  std::map<std::string, Question> open_;  // by the variables that choose the GPUs
};

}  // namespace ddl::launcher
