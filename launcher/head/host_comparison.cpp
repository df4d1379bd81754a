#include "launcher/head/host_comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {

namespace {

constexpr std::int64_t kMinFreeBytes = std::int64_t{64} << 20;
constexpr double kMemoryTolerance = 0.05;
constexpr double kClockTolerance = 1.0;

/// "63.2 GB", "512 MB": powers of ten, as for disks and networks.
std::string bytes_text(std::int64_t bytes) {
  const double number = bytes;
  if (bytes >= 1'000'000'000'000) return fmt::format("{:.1f} TB", number / 1e12);
  if (bytes >= 100'000'000'000) return fmt::format("{:.0f} GB", number / 1e9);
  if (bytes >= 1'000'000'000) return fmt::format("{:.1f} GB", number / 1e9);
  return fmt::format("{:.0f} MB", std::floor(number / 1e6));
}

std::string limit_text(std::int64_t limit, bool is_bytes) {
  if (limit < 0) return "no limit";
  return is_bytes ? bytes_text(limit) : std::to_string(limit);
}

std::string interfaces_text(const NodeFacts& facts) {
  std::vector<std::string> names;
  for (const NodeAddress& address : facts.addresses) {
    if (std::find(names.begin(), names.end(), address.interface) == names.end())
      names.push_back(address.interface);
  }
  return names.empty() ? "none" : join(names, ",");
}

/// "0.2.0" of ".../libddl.so.0.2.0".
std::string libddl_text(const NodeFacts& facts) {
  if (facts.libddl.empty()) return "none";
  constexpr std::string_view kPrefix = "libddl.so.";
  const std::size_t at = facts.libddl.rfind(kPrefix);
  return at == std::string::npos ? facts.libddl : facts.libddl.substr(at + kPrefix.size());
}

std::int64_t median(std::vector<std::int64_t> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + (std::ssize(numbers) - 1) / 2;
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

/// Fills columns one by one from the hosts that answered.
class Comparison {
 public:
  explicit Comparison(const std::vector<HostCheck>& hosts) : hosts_(hosts) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].facts) {
        answered_.push_back(i);
      } else {
        ++result_.failed;
      }
    }
  }

  using Text = std::function<std::string(const NodeFacts&)>;
  using Number = std::function<std::int64_t(const NodeFacts&)>;

  /// Noticed: a value that at most half of the hosts share.
  void shared(const char* name, const char* heading, const Text& text) {
    std::map<std::string, std::size_t> counts;
    for (const std::size_t i : answered_) ++counts[text(*hosts_[i].facts)];
    HostColumn& column = begin(name, heading);
    const auto most_common = std::max_element(
        counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const std::size_t i : answered_) {
      const std::string value = text(*hosts_[i].facts);
      const bool noticed = 2 * counts[value] <= answered_.size() && answered_.size() > 1;
      column.values[i] = {value, noticed};
      if (!noticed) continue;
      const bool has_majority = 2 * most_common->second > answered_.size();
      remark(i, heading, value,
             has_majority ? "most hosts have " + most_common->first : "no value is shared by most hosts");
    }
  }

  /// Noticed: a value that differs from the median by more than the tolerance, which is relative.
  void close(const char* name, const char* heading, const Number& number, double tolerance) {
    const std::int64_t middle = median(numbers(number));
    HostColumn& column = begin(name, heading);
    for (const std::size_t i : answered_) {
      const std::int64_t value = number(*hosts_[i].facts);
      const double distance = std::abs(static_cast<double>(value - middle));
      const bool noticed = distance > tolerance * static_cast<double>(middle);
      column.values[i] = {value > 0 ? bytes_text(value) : "unknown", noticed};
      if (noticed) remark(i, heading, column.values[i].text, "the median is " + bytes_text(middle));
    }
  }

  /// Noticed: less than half of the median, less than kMinFreeBytes, or unreadable.
  void free_space(const char* name, const char* heading, const Number& number, const Text& place) {
    const std::int64_t middle = median(numbers(number));
    HostColumn& column = begin(name, heading);
    for (const std::size_t i : answered_) {
      const std::int64_t value = number(*hosts_[i].facts);
      const bool noticed = value < kMinFreeBytes || value < middle / 2;
      column.values[i] = {value < 0 ? "unreadable" : bytes_text(value), noticed};
      if (!noticed) continue;
      const std::string where = place(*hosts_[i].facts);
      if (value < 0) {
        remark_sentence(i, where + " cannot be read");
      } else {
        remark_sentence(i, "only " + column.values[i].text + " free in " + where +
                               (value < kMinFreeBytes ? "" : "; the median is " + bytes_text(middle)));
      }
    }
  }

  void clock(const char* name, const char* heading) {
    HostColumn& column = begin(name, heading);
    for (const std::size_t i : answered_) {
      const double offset = hosts_[i].clock_offset_seconds;
      const bool noticed = std::abs(offset) > kClockTolerance;
      column.values[i] = {fmt::format("{:+.1f} s", std::abs(offset) < 0.05 ? 0.0 : offset), noticed};
      if (noticed) {
        remark_sentence(i, fmt::format("its clock is {:.1f} s {} this machine's", std::abs(offset),
                                       offset > 0 ? "ahead of" : "behind"));
      }
    }
  }

  void answer(const char* name, const char* heading) {
    HostColumn& column = begin(name, heading);
    for (const std::size_t i : answered_)
      column.values[i].text = fmt::format("{:.2f} s", hosts_[i].answer_seconds);
  }

  void libddl(const char* name, const char* heading) {
    shared(name, heading, libddl_text);
    HostColumn& column = result_.columns.back();
    for (const std::size_t i : answered_) {
      if (!hosts_[i].facts->libddl.empty() || column.values[i].noticed) continue;
      column.values[i].noticed = true;
      remark_sentence(i, "there is no libddl beside its ddlrun");
    }
  }

  HostComparison take() {
    for (const auto& [sentence, names] : sentences_)
      result_.remarks.push_back(names_text(names) + ": " + sentence);
    return std::move(result_);
  }

 private:
  HostColumn& begin(const char* name, const char* heading) {
    result_.columns.push_back({name, heading, std::vector<HostValue>(hosts_.size())});
    return result_.columns.back();
  }
  std::vector<std::int64_t> numbers(const Number& number) const {
    std::vector<std::int64_t> all;
    for (const std::size_t i : answered_) all.push_back(number(*hosts_[i].facts));
    return all;
  }
  void remark(std::size_t host, const char* heading, const std::string& value, const std::string& others) {
    remark_sentence(host, std::string(heading) + " is " + value + "; " + others);
  }
  void remark_sentence(std::size_t host, const std::string& sentence) {
    auto known = std::find_if(sentences_.begin(), sentences_.end(),
                              [&sentence](const auto& one) { return one.first == sentence; });
    if (known == sentences_.end()) known = sentences_.insert(known, {sentence, {}});
    known->second.push_back(hosts_[host].name);
  }
  static std::string names_text(std::vector<std::string> names) {
    constexpr std::size_t kMaxNames = 8;
    if (names.size() <= kMaxNames) return join(names, ", ");
    const std::int64_t others = names.size() - kMaxNames;
    names.resize(kMaxNames);
    return join(names, ", ") + " and " + counted(others, "other");
  }

  const std::vector<HostCheck>& hosts_;
  std::vector<std::size_t> answered_;
  std::vector<std::pair<std::string, std::vector<std::string>>>
      sentences_;  // each sentence, and the hosts that it is true of
  HostComparison result_;
};

}  // namespace

HostComparison compare_hosts(const std::vector<HostCheck>& hosts) {
  Comparison comparison(hosts);
  comparison.answer("answer_seconds", "answer");
  comparison.shared("version", "version", [](const NodeFacts& facts) { return facts.version; });
  comparison.shared("cores", "cores/CPUs", [](const NodeFacts& facts) {
    return fmt::format("{}/{}", facts.allowed_cores, facts.allowed_cpus);
  });
  comparison.shared("numa_nodes", "NUMA/L3", [](const NodeFacts& facts) {
    return facts.topology.cores.empty()
               ? std::string("unknown")
               : fmt::format("{}/{}", facts.topology.numa_nodes.size(), facts.topology.l3s.size());
  });
  comparison.shared("gpus", "GPUs", [](const NodeFacts& facts) {
    const auto& gpus = facts.topology.gpus;
    return gpus.empty() ? std::string("none")
                        : fmt::format("{} {}", gpus.size(), affinity::name_of(gpus.front().vendor));
  });
  comparison.close(
      "memory_bytes", "memory", [](const NodeFacts& facts) { return facts.memory_bytes; }, kMemoryTolerance);
  comparison.shared("memlock_bytes", "memlock",
                    [](const NodeFacts& facts) { return limit_text(facts.memlock_bytes, true); });
  comparison.shared("nofile", "nofile",
                    [](const NodeFacts& facts) { return limit_text(facts.nofile, false); });
  comparison.free_space(
      "shm_free_bytes", "/dev/shm", [](const NodeFacts& facts) { return facts.shm_free_bytes; },
      [](const NodeFacts&) { return std::string("/dev/shm"); });
  comparison.free_space(
      "tmp_free_bytes", "tmp", [](const NodeFacts& facts) { return facts.tmp_free_bytes; },
      [](const NodeFacts& facts) { return facts.tmp_directory; });
  comparison.clock("clock_offset_seconds", "clock");
  comparison.shared("kernel", "kernel", [](const NodeFacts& facts) { return facts.kernel; });
  comparison.shared("architecture", "arch", [](const NodeFacts& facts) { return facts.architecture; });
  comparison.shared("interfaces", "interfaces", interfaces_text);
  comparison.libddl("libddl", "libddl");
  return comparison.take();
}

int exit_code_of(const HostComparison& comparison) {
  return comparison.failed == 0 ? contract::kSuccess : contract::kStartFailure;
}

}  // namespace ddl::launcher
