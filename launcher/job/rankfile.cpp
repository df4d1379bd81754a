#include "launcher/job/rankfile.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/cpu_set.h"
#include "base/text.h"
#include "launcher/job/allocation.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

constexpr std::string_view kForm = "a line is rank N=HOST slot=CORES, as in rank 0=node1 slot=0-3";

/// What is left of a line.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(trim(text)) {}

  bool is_at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  /// Takes the word and a "=" or a blank after it.
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_ = trim(rest_.substr(word.size()));
    return true;
  }
  /// Takes what is left up to a blank or "=".
  std::string_view take_word() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t="));
    rest_ = trim(rest_.substr(word.size()));
    return word;
  }

 private:
  std::string_view rest_;
};

/// A whole number below the limit, of digits alone.
std::optional<int> index_in(std::string_view text, std::int64_t limit) {
  const bool is_number =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto number = is_number ? parse_integer(text) : std::nullopt;
  return number && *number < limit ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

bool is_letter(std::string_view text, char lower) { return !text.empty() && (text.front() | 0x20) == lower; }

/// "3", "0-2", and with a package also "*", "c3". what: quoted in the error.
Result<affinity::CoreRange> parse_range(std::string_view numbers, std::optional<int> package,
                                        std::string_view what) {
  affinity::CoreRange range;
  range.package = package;
  if (package && is_letter(numbers, 'c')) numbers.remove_prefix(1);
  if (numbers == "*") {
    range.last = affinity::CoreRange::kToTheEnd;
    return range;
  }
  const std::size_t dash = numbers.find('-');
  const auto first = index_in(numbers.substr(0, dash), kMaxCpuNumbers);
  const auto last =
      dash == std::string_view::npos ? first : index_in(numbers.substr(dash + 1), kMaxCpuNumbers);
  if (!first || !last)
    return refuse(
        in_double_quotes(what) +
        " are no cores; they are numbers as in 0-3 or 0,2, of a package as in 1:0-3, all as in *, or those "
        "of CPUs as in p0-3");
  if (*first > *last) return refuse(in_double_quotes(what) + " runs backwards");
  range.first = *first;
  range.last = *last;
  return range;
}

/// More than any node has.
constexpr std::ptrdiff_t kMaxPackages = 4096;

/// "S0-1,3": whole packages.
Status parse_packages(std::string_view part, affinity::NamedCores& cores) {
  for (const std::string_view item : split(part.substr(1), ',')) {
    DDL_ASSIGN(packages, parse_range(trim(item), std::nullopt, part));
    if (packages.last == affinity::CoreRange::kToTheEnd)
      return refuse(in_double_quotes(part) + " names no package; all cores of the node are slot=*");
    if (std::ssize(cores) + packages.last - packages.first >= kMaxPackages)
      return refuse(in_double_quotes(part) + " names more packages than a node has");
    for (int package = packages.first; package <= packages.last; ++package)
      cores.push_back({package, 0, affinity::CoreRange::kToTheEnd});
  }
  return {};
}

/// "p0-3,8".
Status parse_cpus(std::string_view part, affinity::NamedCores& cores) {
  if (part.find(':') != std::string_view::npos)
    return refuse(in_double_quotes(part) +
                  " has a package, but p stands for CPUs of the operating system, as in p0-3");
  for (const std::string_view item : split(part.substr(1), ',')) {
    DDL_ASSIGN(range, parse_range(trim(item), std::nullopt, part));
    if (range.last == affinity::CoreRange::kToTheEnd)
      return refuse(in_double_quotes(part) + " has no number; all cores of the node are slot=*");
    range.are_cpus = true;
    cores.push_back(range);
  }
  return {};
}

/// What stands between two ";".
Status parse_part(std::string_view part, affinity::NamedCores& cores) {
  if (is_letter(part, 'p')) return parse_cpus(part, cores);
  const bool has_letter = is_letter(part, 's');
  if (has_letter && part.find(':') == std::string_view::npos) return parse_packages(part, cores);
  std::optional<int> package;
  bool is_first = true;
  for (const std::string_view untrimmed : split(part.substr(has_letter ? 1 : 0), ',')) {
    std::string_view item = trim(untrimmed);
    if (const std::size_t colon = item.find(':'); colon != std::string_view::npos) {
      if (!is_first && !package)
        return refuse(
            in_double_quotes(part) +
            " names cores without a package before others with one; write \";\" between them, as in "
            "0;1:2, or the package before each, as in 0:0,1:2");
      package = index_in(trim(item.substr(0, colon)), kMaxCpuNumbers);
      if (!package)
        return refuse(in_double_quotes(item) + " does not begin with the number of a package, as in 1:0-2");
      item = trim(item.substr(colon + 1));
    }
    DDL_ASSIGN(range, parse_range(item, package, part));
    cores.push_back(range);
    is_first = false;
  }
  return {};
}

Result<affinity::NamedCores> parse_cores(std::string_view list) {
  affinity::NamedCores cores;
  for (const std::string_view part : split(list, ';')) DDL_TRY(parse_part(trim(part), cores));
  return cores;
}

Status parse_host(std::string_view word, RankfileEntry& entry) {
  if (word.starts_with("+")) {
    entry.host_index =
        word.starts_with("+n") || word.starts_with("+N") ? index_in(word.substr(2), kMaxRanks) : std::nullopt;
    if (!entry.host_index) return refuse(in_double_quotes(word) + " is not a host's index, as in +n0");
    return {};
  }
  if (word.empty()) return refuse("the host is missing; " + std::string(kForm));
  if (word.find('@') != std::string_view::npos)
    return refuse(in_double_quotes(word) +
                  " has a user; write the host alone here, and the user with -H or in a hostfile: me@node1");
  DDL_TRY(check_host_name(word));
  entry.host = word;
  return {};
}

/// Returns the rank.
Result<int> parse_line(Line line, RankfileEntry& entry) {
  if (!line.take("rank")) return refuse("found " + in_double_quotes(line.rest()) + "; " + std::string(kForm));
  const std::string_view number = line.take_word();
  const auto rank = index_in(number, kMaxRanks);
  if (!rank)
    return refuse(in_double_quotes(number) + " is not a rank, a number from 0 to " +
                  std::to_string(kMaxRanks - 1));
  const std::string name = "rank " + std::to_string(*rank);
  if (!line.take("=")) return refuse("no \"=\" after " + name + "; " + std::string(kForm));
  if (auto host = parse_host(line.take_word(), entry); !host)
    return fail(std::move(host.error()).during(name));
  if (!(line.take("slots") || line.take("slot")) || !line.take("="))
    return refuse(name + " has no slot=CORES after its host; " + std::string(kForm));
  auto cores = parse_cores(line.rest());
  if (!cores) return fail(std::move(cores.error()).during(name));
  entry.cores = *std::move(cores);
  return *rank;
}

}  // namespace

Result<Rankfile> parse_rankfile(std::string_view whole_text, std::string_view name) {
  DDL_ASSIGN(text, without_byte_order_mark(whole_text, name));
  std::unordered_map<int, RankfileEntry> entries;
  int number = 0, last = -1;
  for (const std::string_view whole : split(text, '\n')) {
    ++number;
    const Line line(whole.substr(0, whole.find('#')));
    if (line.is_at_end()) continue;
    RankfileEntry entry;
    entry.origin = std::string(name) + ":" + std::to_string(number);
    const auto rank = parse_line(line, entry);
    if (!rank) return fail(Error(rank.error()).during(entry.origin));
    const std::string origin = entry.origin;
    const auto [known, is_new] = entries.try_emplace(*rank, std::move(entry));
    if (!is_new)
      return refuse(origin + ": rank " + std::to_string(*rank) + " was placed already, by " +
                    known->second.origin + "; remove one of these lines");
    last = std::max(last, *rank);
  }
  if (entries.empty()) return refuse(std::string(name) + " places no rank; " + std::string(kForm));
  Rankfile ranks;
  for (int rank = 0; rank <= last; ++rank) {
    const auto found = entries.find(rank);
    if (found == entries.end())
      return refuse(std::string(name) + " places rank " + std::to_string(last) + " and not rank " +
                    std::to_string(rank) + "; add a line for it");
    ranks.push_back(std::move(found->second));
  }
  return ranks;
}

Status resolve_hosts(Rankfile& ranks, const Allocation& allocation, const std::string& hostname) {
  std::unordered_map<std::string, int> nodes;
  std::optional<int> here;
  for (int i = 0; i < std::ssize(allocation.nodes); ++i) {
    nodes.emplace(host_key(allocation.nodes[i].name), i);
    if (is_this_machine(allocation.nodes[i], hostname)) here = i;
  }
  std::vector<int> counts(allocation.nodes.size(), 0);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RankfileEntry& entry = ranks[rank];
    const std::string place = entry.origin + ": rank " + std::to_string(rank);
    if (entry.host_index) {
      if (*entry.host_index >= std::ssize(allocation.nodes))
        return refuse(place + ": +n" + std::to_string(*entry.host_index) + " is beyond the " +
                      counted(allocation.nodes.size(), "host") + " of " + allocation.origin +
                      ", which count from +n0");
      entry.node = *entry.host_index;
    } else {
      const auto found = nodes.find(host_key(entry.host));
      AllocatedNode named;
      named.name = entry.host;
      if (found == nodes.end() && !(here && is_this_machine(named, hostname)))
        return refuse(place + ": " + entry.host + " is not a host of " + allocation.origin +
                      "; name one of its hosts, or add this one there");
      entry.node = found != nodes.end() ? found->second : *here;
    }
    const AllocatedNode& node = allocation.nodes[entry.node];
    if (node.max_slots && ++counts[entry.node] > *node.max_slots)
      return refuse(place + ": " + node.name + " takes " + counted(*node.max_slots, "rank") +
                    " (its max_slots); place this one on another host");
  }
  return {};
}

Result<std::vector<std::string>> hosts_of(const Rankfile& ranks, const std::string& hostname) {
  std::vector<std::string> hosts;
  std::unordered_set<std::string> known;
  for (const RankfileEntry& entry : ranks) {
    if (entry.host_index)
      return refuse(entry.origin + ": +n" + std::to_string(*entry.host_index) +
                    " counts the hosts of -H, of a hostfile or of a Slurm job; give one, or name the host");
    AllocatedNode named;
    named.name = entry.host;
    const std::string key = host_key(is_this_machine(named, hostname) ? hostname : entry.host);
    if (known.insert(key).second) hosts.push_back(entry.host);
  }
  return hosts;
}

}  // namespace ddl::launcher
