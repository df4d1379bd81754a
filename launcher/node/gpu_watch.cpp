#include "launcher/node/gpu_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "affinity/source/gpu_meter.h"
#include "base/files.h"
#include "contract/ddlrun.h"
#include "launcher/plan/node_binding.h"

namespace ddl::launcher {
namespace {

using affinity::GpuReading;
using affinity::GpuVendor;
using nlohmann::json;

constexpr std::size_t kMaxLine = 1 << 20;
constexpr char kUnanswered[] = "the library of the GPUs' vendor did not answer before the ranks had ended";

json to_json(const GpuReading& now) {
  const affinity::VendorGpu& gpu = now.gpu;
  return {{"index", gpu.index},
          {"name", gpu.uuid.empty() ? gpu.bus_id : gpu.uuid},
          {"model", gpu.model},
          {"busy_ratio", now.busy_ratio},
          {"memory", now.memory_bytes},
          {"memory_limit", now.memory_limit_bytes},
          {"joules", std::llround(std::clamp(now.joules, -1.0, 1e15))}};
}

bool print_line(const json& line) {
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return write_all(STDOUT_FILENO, text.data(), text.size()).has_value();
}

}  // namespace

int print_gpu_use(const std::string& vendor) {
  using namespace std::chrono_literals;
  const auto meter =
      vendor == name_of(GpuVendor::kAmd) ? affinity::open_rocm_smi_meter() : affinity::open_nvml_meter();
  if (!meter) return print_line({{"failure", meter.error().message()}}) ? 1 : 0;
  const auto began = std::chrono::steady_clock::now();
  // Short jobs are seen, too, and long ones cost little.
  for (auto pause = 1s;; pause = std::min(2 * pause, std::chrono::seconds(10s))) {
    json gpus = json::array();
    for (const GpuReading& one : (*meter)->read()) gpus.push_back(to_json(one));
    const std::chrono::duration<double> age = std::chrono::steady_clock::now() - began;
    if (!print_line({{"seconds", age.count()}, {"gpus", std::move(gpus)}})) return 0;
    std::this_thread::sleep_for(pause);
  }
}

void GpuWatch::Sum::add(GpuUse now, double seconds) {
  // A sample stands for the time since the one before.
  const double passed = last_seconds < 0 ? 0 : std::max(seconds - last_seconds, 0.0);
  last_seconds = seconds;
  if (now.last_busy_ratio >= 0) {
    busy_seconds += now.last_busy_ratio * passed;
    watched_seconds += passed;
  }
  now.busy_ratio = watched_seconds > 0 ? busy_seconds / watched_seconds : now.last_busy_ratio;
  now.memory_peak_bytes = std::max(use.memory_peak_bytes, now.memory_bytes);
  if (now.joules >= 0 && joules_before < 0) joules_before = now.joules;
  now.joules = now.joules < 0 ? use.joules : std::max(use.joules, now.joules - joules_before);
  use = now;
}

GpuWatch::GpuWatch(EventLoop& loop, std::vector<std::string> program)
    : loop_(loop), program_(std::move(program)), unknown_("ddlrun has given the ranks no GPUs") {
  if (program_.empty()) program_ = {own_path(), contract::kWatchGpusOption};
}

void GpuWatch::add(const RankLaunch& rank) {
  const auto vendor = vendor_of_gpus(rank.environment);
  if (!vendor || rank.gpus.empty()) return;
  if (watched_.empty()) start(*vendor);
  watched_.insert(rank.gpus.begin(), rank.gpus.end());
}

void GpuWatch::start(GpuVendor vendor) {
  if (vendor == GpuVendor::kIntel) {
    unknown_ = "ddlrun asks NVIDIA's and AMD's libraries, not Intel's";
    return;
  }
  unknown_ = kUnanswered;
  auto pipe = make_pipe();
  if (!pipe) return (void)(unknown_ = pipe.error().message());
  Command command;
  command.argv = program_;
  command.argv.emplace_back(name_of(vendor));
  command.streams = {kNullStream, pipe->second.get(), kNullStream};
  command.limits = {{RLIMIT_CORE, {0, 0}}};
  command.parent_death_signal = SIGKILL;
  auto child = Child::start(command);
  if (!child) return (void)(unknown_ = child.error().message());
  child_.emplace(std::move(*child));
  out_ = std::move(pipe->first);
  watch_ = loop_.watch(out_.get(), [this] { on_readable(); });
}

void GpuWatch::on_readable() {
  std::array<char, 4096> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(out_.get(), buffer.data(), buffer.size()); });
  if (got <= 0) return end("the program that asked the library of the GPUs' vendor was ended by it");
  text_.append(buffer.data(), static_cast<std::size_t>(got));
  std::size_t begin = 0;
  for (std::size_t line_end; (line_end = text_.find('\n', begin)) != std::string::npos; begin = line_end + 1)
    take(std::string_view(text_).substr(begin, line_end - begin));
  text_.erase(0, begin);
  if (text_.size() > kMaxLine) end("the program that asked the library of the GPUs' vendor prints nonsense");
}

/// What libraries print is no JSON.
void GpuWatch::take(std::string_view line) {
  const json read = json::parse(line, nullptr, false);
  if (!read.is_object()) return;
  try {
    if (read.contains("failure")) {
      unknown_ = read.at("failure").get<std::string>();
      return;
    }
    const auto seconds = read.at("seconds").get<double>();
    for (const json& one : read.at("gpus")) {
      GpuUse now;
      now.index = one.at("index").get<int>();
      now.name = one.at("name").get<std::string>();
      now.model = one.at("model").get<std::string>();
      now.last_busy_ratio = one.at("busy_ratio").get<double>();
      now.memory_bytes = one.at("memory").get<std::int64_t>();
      now.memory_limit_bytes = one.at("memory_limit").get<std::int64_t>();
      now.joules = one.at("joules").get<std::int64_t>();
      if (watched_.contains(now.index)) sums_[now.index].add(now, seconds);
    }
    unknown_ = "the library of the GPUs' vendor does not count those of the ranks";
  } catch (const json::exception&) {  // a library's own
  }
}

/// What is known stays.
void GpuWatch::end(const std::string& why) {
  if (unknown_ == kUnanswered) unknown_ = why;
  watch_.reset();
  out_.reset();
  child_.reset();
}

void GpuWatch::add_to(NodeUsage& usage) const {
  for (const auto& [index, sum] : sums_) usage.gpus.push_back(sum.use);
  if (usage.gpus.empty()) usage.gpus_unknown = unknown_;
}

}  // namespace ddl::launcher
