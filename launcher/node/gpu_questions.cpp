#include "launcher/node/gpu_questions.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include <nlohmann/json.hpp>

#include "affinity/source/vendor_gpus.h"
#include "base/files.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "launcher/plan/node_binding.h"

namespace ddl::launcher {

namespace {

using affinity::GpuVendor;
using message::VisibleGpus;
using nlohmann::json;

constexpr std::size_t kMaxGpusText = 1 << 16;

json answer_of(const Result<std::vector<affinity::VendorGpu>>& gpus) {
  if (!gpus) return {{"failure", gpus.error().code() == ErrorCode::kNotFound ? "" : gpus.error().message()}};
  json list = json::array();
  for (const affinity::VendorGpu& gpu : *gpus) list.push_back({{"bus_id", gpu.bus_id}, {"uuid", gpu.uuid}});
  return {{"gpus", std::move(list)}};
}

/// The last line counts: libraries may print something before.
VisibleGpus read_answer(std::string_view text) {
  text = trim(text);
  VisibleGpus answer;
  try {
    const json read = json::parse(text.substr(text.rfind('\n') + 1));
    answer.is_known = !read.contains("failure");
    if (!answer.is_known) answer.failure = read.at("failure").get<std::string>();
    for (const json& gpu : answer.is_known ? read.at("gpus") : json::array())
      answer.gpus.push_back({gpu.at("bus_id").get<std::string>(), gpu.at("uuid").get<std::string>()});
    return answer;
  } catch (const json::exception&) {
    return {0, false, {}, "the vendor's runtime has ended the program that asked it"};
  }
}

/// Ranks with equal values of these see the same GPUs.
std::string key_of(GpuVendor vendor, const Environment& rank) {
  std::string key = name_of(vendor);
  std::vector<std::string> names = visible_device_variables();
  names.emplace_back(contract::env::kCudaDeviceOrder);
  for (const std::string& name : names) key += "\n" + value_of(rank, name);
  return key;
}

}  // namespace

int print_visible_gpus(const std::string& vendor) {
  // It hangs where the runtime does, and is no descendant of the spawner: it must not outlive its agent.
  constexpr unsigned kMostSeconds = 60;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kMostSeconds);
  const auto gpus = vendor == name_of(GpuVendor::kAmd) ? affinity::ask_hip() : affinity::ask_cuda();
  const std::string line = answer_of(gpus).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return write_all(STDOUT_FILENO, line.data(), line.size()) ? 0 : 1;
}

GpuQuestions::Settings::Settings()
    : program({own_path(), contract::kAskGpusOption}), patience(std::chrono::seconds(10)) {}

void GpuQuestions::ask(const RankLaunch& rank, const std::vector<std::string>& environment) {
  const auto vendor = vendor_of_gpus(rank.environment);
  if (!vendor || *vendor == GpuVendor::kIntel) return;
  const std::string key = key_of(*vendor, rank.environment);
  if (const auto same = open_.find(key); same != open_.end()) return same->second.ranks.push_back(rank.rank);
  auto pipe = make_pipe();
  if (!pipe) return report_({rank.rank, false, {}, pipe.error().message()});
  Command command;
  command.argv = settings_.program;
  command.argv.emplace_back(name_of(*vendor));
  command.environment = environment;
  command.streams = {kNullStream, pipe->second.get(), kNullStream};
  command.limits = {{RLIMIT_CORE, {0, 0}}};
  auto child = Child::start(command);
  if (!child) return report_({rank.rank, false, {}, child.error().message()});
  Question& asked =
      open_.emplace(key, Question{{rank.rank}, std::move(*child), std::move(pipe->first)}).first->second;
  asked.watch = loop_.watch(asked.out.get(), [this, key] { on_readable(key); });
  asked.deadline = loop_.after(settings_.patience, [this, key] {
    answer(key, {0, false, {}, "the vendor's runtime has not answered in time"});
  });
}

void GpuQuestions::on_readable(const std::string& key) {
  Question& asked = open_.at(key);
  std::array<char, 4096> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(asked.out.get(), buffer.data(), buffer.size()); });
  if (got > 0) asked.text.append(buffer.data(), got);
  if (got <= 0 || asked.text.size() > kMaxGpusText) answer(key, read_answer(asked.text));
}

void GpuQuestions::answer(const std::string& key, const message::VisibleGpus& answer) {
  // The process ends with its question, before the report: that may be all that its owner waits for.
  const std::vector<int> ranks = std::move(open_.at(key).ranks);
  VisibleGpus report = answer;
  open_.erase(open_.find(key));
  for (const int rank : ranks) {
    report.rank = rank;
    report_(VisibleGpus(report));
  }
}

}  // namespace ddl::launcher
