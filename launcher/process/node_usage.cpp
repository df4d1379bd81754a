#include "launcher/process/node_usage.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> number_in(const std::string& file) {
  const auto text = read_file(file);
  return text ? parse_integer(trim(*text)) : std::nullopt;
}

/// The names in a folder, in order; empty if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::ranges::sort(names);
  return names;
}

void add_interfaces(const std::string& root, std::map<std::string, NetworkUse>& networks) {
  const std::string folder = root + "/sys/class/net/";
  for (const std::string& name : names_in(folder)) {
    if (name == "lo") continue;
    const auto received = number_in(folder + name + "/statistics/rx_bytes");
    const auto sent = number_in(folder + name + "/statistics/tx_bytes");
    if (!received || !sent) continue;
    constexpr std::int64_t kBytesPerMegabit = 1'000'000 / 8, kMostMegabits = 100'000'000;
    const std::int64_t speed =
        std::clamp<std::int64_t>(number_in(folder + name + "/speed").value_or(0), 0, kMostMegabits);
    networks[name] = {name, *received, *sent, speed * kBytesPerMegabit};
  }
}

/// The first number of "200 Gb/sec (4X HDR)", in bytes per second.
std::int64_t speed_of_infiniband(const std::string& text) {
  constexpr std::int64_t kBytesPerGigabit = 1'000'000'000 / 8, kMostGigabits = 100'000;
  const auto words = split(trim(text), ' ');
  if (words.size() < 2 || words[1] != "Gb/sec") return 0;
  const auto gigabits = parse_integer(words[0].substr(0, words[0].find('.')));
  return std::clamp<std::int64_t>(gigabits.value_or(0), 0, kMostGigabits) * kBytesPerGigabit;
}

void add_infiniband(const std::string& root, std::map<std::string, NetworkUse>& networks) {
  const std::string folder = root + "/sys/class/infiniband/";
  for (const std::string& device : names_in(folder)) {
    for (const std::string& port : names_in(folder + device + "/ports")) {
      const std::string here = folder + device + "/ports/" + port;
      const auto received = number_in(here + "/counters/port_rcv_data");
      const auto sent = number_in(here + "/counters/port_xmit_data");
      if (!received || !sent) continue;
      constexpr std::int64_t kWord = 4;  // bytes that one count stands for
      constexpr std::int64_t kMostWords = std::numeric_limits<std::int64_t>::max() / kWord;
      const std::string name = device + "/" + port;
      networks[name] = {name, kWord * std::clamp<std::int64_t>(*received, 0, kMostWords),
                        kWord * std::clamp<std::int64_t>(*sent, 0, kMostWords),
                        speed_of_infiniband(read_file(here + "/rate").value_or(""))};
    }
  }
}

}  // namespace

NodeUsageWatch::NodeUsageWatch(std::string root) : root_(std::move(root)), before_(read()) {}

NodeUsageWatch::Counters NodeUsageWatch::read() const {
  Counters now;
  add_interfaces(root_, now.networks);
  add_infiniband(root_, now.networks);
  // HPE Cray: "12345 J 1700000000000000 us", of the whole node.
  if (const auto text = read_file(root_ + "/sys/cray/pm_counters/energy")) {
    const std::string_view number = trim(*text);
    if (const auto joules = parse_integer(number.substr(0, number.find(' '))))
      now.joules["node"] = static_cast<double>(*joules);
    return now;
  }
  const std::string folder = root_ + "/sys/class/powercap/";
  now.energy_unknown = "this machine has no counter of energy that Linux shows";
  for (const std::string& zone : names_in(folder)) {
    // "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it.
    if (!zone.starts_with("intel-rapl:") || std::ranges::count(zone, ':') != 1) continue;
    constexpr double kMicrojoules = 1e6;
    const auto energy = number_in(folder + zone + "/energy_uj");
    if (!energy) {
      now.energy_unknown = folder + zone + "/energy_uj may be read by root only";
      continue;
    }
    const std::string name(trim(read_file(folder + zone + "/name").value_or(zone)));
    now.joules[name] = static_cast<double>(*energy) / kMicrojoules;
    now.joules_until_zero[name] =
        static_cast<double>(number_in(folder + zone + "/max_energy_range_uj").value_or(0)) / kMicrojoules;
  }
  if (!now.joules.empty()) now.energy_unknown.clear();
  return now;
}

NodeUsage NodeUsageWatch::use(const MemoryCgroup& memory, int cpus) const {
  const Counters now = read();
  NodeUsage usage;
  usage.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  usage.cpus = cpus;
  usage.memory = memory.use();
  for (const auto& [name, network] : now.networks) {
    const auto before = before_.networks.find(name);
    if (before == before_.networks.end()) continue;
    NetworkUse used = network;
    used.received_bytes -= before->second.received_bytes;
    used.sent_bytes -= before->second.sent_bytes;
    // A driver that was loaded anew has begun at 0.
    if (used.received_bytes < 0 || used.sent_bytes < 0 || used.received_bytes + used.sent_bytes == 0)
      continue;
    usage.networks.push_back(std::move(used));
  }
  std::ranges::stable_sort(usage.networks, std::ranges::greater(),
                           [](const NetworkUse& one) { return one.received_bytes + one.sent_bytes; });
  for (const auto& [name, joules] : now.joules) {
    const auto before = before_.joules.find(name);
    if (before == before_.joules.end()) continue;
    double used = joules - before->second;
    if (used < 0) {
      const auto range = now.joules_until_zero.find(name);
      used += range == now.joules_until_zero.end() ? 0 : range->second;
    }
    if (used >= 0) usage.energy.push_back({name, static_cast<std::int64_t>(used)});
  }
  usage.energy_unknown = now.energy_unknown;
  return usage;
}

}  // namespace ddl::launcher
