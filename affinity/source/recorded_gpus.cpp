#include "affinity/source/recorded_gpus.h"

#include <algorithm>
#include <iterator>
#include <regex>

#include "base/text.h"

namespace ddl::affinity {
namespace {

/// More than any machine has: a number with too many digits is a mistake, or an attack.
constexpr std::int64_t kMaxObjects = 4096;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(line) + ' ') {
    if (c == ' ' || c == '\t' || c == '\r') {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  }
  return words;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_bus_id(const std::string& word) {
  static const std::regex kBusId("[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-9a-fA-F]");
  return std::regex_match(word, kBusId);
}

/// What follows the bus id in a line of `lspci -D`, if it has a class; "" for another line.
std::string_view behind_bus_id(std::string_view line) {
  line = trim(line);
  line = trim(line.substr(std::min(line.find_first_of(" \t"), line.size())));
  return line.find(": ") != std::string_view::npos ? line : "";
}

/// "Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran"; not the vendor's bridges and sound devices.
bool is_amd_gpu(std::string_view device) {
  constexpr std::string_view kClasses[] = {"VGA compatible controller", "3D controller", "Display controller",
                                           "Processing accelerators"};
  return device.find("Advanced Micro Devices") != std::string_view::npos &&
         std::any_of(std::begin(kClasses), std::end(kClasses),
                     [device](std::string_view one) { return device.starts_with(one); });
}

}  // namespace

std::optional<int> small_number(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < -1 || *number >= kMaxObjects) return std::nullopt;
  return static_cast<int>(*number);
}

void RecordedGpus::read_rocm_smi(const std::string& line) {
  static const std::regex kLine(R"(GPU\s?\[?(\d{1,4})\]?\s*:\s*\(Topology\)\s*Numa Node:\s*(-?\d{1,4}))");
  std::smatch parts;
  if (!std::regex_search(line, parts, kLine)) return;
  const auto gpu = small_number(parts[1].str()), node = small_number(parts[2].str());
  if (!gpu || !node) return;
  RecordedGpu& own = gpus_[{GpuVendor::kAmd, *gpu}];
  own.numa = *node;
  own.from = "rocm-smi";
}

/// `amd-smi static --numa` has a paragraph for each GPU, `amd-smi topology` a row in each of its tables, and `lspci -D` a
/// line for each device.
void RecordedGpus::read_amd_smi(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty()) return;
  const std::string& key = words.front();
  const std::string value = words.size() == 2 ? words[1] : "";
  const std::string_view device = behind_bus_id(line);
  if (words.size() > 1 && is_bus_id(key) && !is_bus_id(words[1]) && (device.empty() || is_amd_gpu(device))) {
    const bool is_new = std::find(amd_bus_ids_.begin(), amd_bus_ids_.end(), key) == amd_bus_ids_.end();
    if (is_new && std::ssize(amd_bus_ids_) < kMaxObjects) amd_bus_ids_.push_back(in_lower_case(key));
  }
  if (key == "GPU:") {
    amd_gpu_ = small_number(value);
    is_near_amd_gpu_ = false;
  }
  if (!amd_gpu_ || *amd_gpu_ < 0) return;
  if (key == "NODE:") {
    RecordedGpu& own = gpus_[{GpuVendor::kAmd, *amd_gpu_}];
    own.numa = small_number(value);
    own.from = "amd-smi";
  }
  const auto gpu = gpus_.find({GpuVendor::kAmd, *amd_gpu_});
  if (key == "CPU_AFFINITY:") is_near_amd_gpu_ = true;
  if (key == "SOCKET_AFFINITY:") is_near_amd_gpu_ = false;
  const bool has_cpus = key == "CPU_AFFINITY:" || key == "CPU_CORES_AFFINITY:";
  if (!has_cpus || !is_near_amd_gpu_ || gpu == gpus_.end() || value.empty()) return;
  if (const auto cpus = CpuSet::parse_list(value)) gpu->second.cpus |= *cpus;
}

std::optional<RecordedGpus::NvidiaHead> RecordedGpus::nvidia_head(const std::string& line) {
  const std::size_t behind = line.find("CPU Affinity");
  if (behind == std::string::npos || line.find("GPU") > behind) return std::nullopt;
  NvidiaHead head;
  head.devices = words_of(line.substr(0, behind)).size();
  head.has_numa = line.find("NUMA Affinity") != std::string::npos;
  head.columns = 1 + (head.has_numa ? 1 : 0) + (line.find("GPU NUMA ID") != std::string::npos ? 1 : 0);
  head.has_tabs = behind > 0 && line[behind - 1] == '\t';
  return head;
}

Status RecordedGpus::read_nvidia_row(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() <= nvidia_->devices || !words.front().starts_with("GPU")) return {};
  const auto gpu = small_number(words.front().substr(3));
  if (!gpu || *gpu < 0) return {};
  std::string cpus, numa;
  if (nvidia_->has_tabs && line.find('\t') != std::string::npos) {
    const std::vector<std::string_view> cells = split(line, '\t');
    const auto cell = [&](std::size_t i) { return std::string(i < cells.size() ? trim(cells[i]) : ""); };
    cpus = cell(nvidia_->devices + 1);
    numa = cell(nvidia_->devices + 2);
  } else {
    const std::vector<std::string> behind(words.begin() + 1 + std::ptrdiff_t(nvidia_->devices), words.end());
    // Without tabs an empty column cannot be seen; a single number is then that of the NUMA node.
    const bool lacks_cpus =
        behind.size() < nvidia_->columns && !behind.empty() && small_number(behind.front());
    if (!behind.empty() && !lacks_cpus) cpus = behind.front();
    if (lacks_cpus) numa = behind.front();
    if (behind.size() > 1 && !lacks_cpus) numa = behind[1];
  }
  RecordedGpu& own = gpus_[{GpuVendor::kNvidia, *gpu}];
  own.from = "nvidia-smi";
  own.numa = nvidia_->has_numa ? small_number(numa) : std::nullopt;
  // "N/A", "", or a list that nvidia-smi has cut.
  if (cpus.empty() || !is_digit(cpus.front()) || cpus.find("...") != std::string::npos) return {};
  auto list = CpuSet::parse_list(cpus);
  if (!list) return fail(std::move(list.error()).during("\"" + line + "\""));
  own.cpus = *std::move(list);
  return {};
}

Status RecordedGpus::read(const std::string& line) {
  read_rocm_smi(line);
  read_amd_smi(line);
  if (const auto begins = nvidia_head(line)) {
    nvidia_ = begins;
    return {};
  }
  return nvidia_ ? read_nvidia_row(line) : Status{};
}

std::map<std::pair<GpuVendor, int>, RecordedGpu> RecordedGpus::take() && {
  for (int i = 0; i < std::ssize(amd_bus_ids_); ++i) {
    RecordedGpu& own = gpus_[{GpuVendor::kAmd, i}];
    own.bus_id = amd_bus_ids_[i];
    if (own.from.empty()) own.from = "amd-smi topology";
  }
  return std::move(gpus_);
}

}  // namespace ddl::affinity
