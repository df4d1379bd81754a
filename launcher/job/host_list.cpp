#include "launcher/job/host_list.h"

#include <algorithm>

#include "base/text.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

// The host's name and the text after its colon.
struct NameAndSlots {
  std::string_view name;
  std::optional<std::string_view> slots;
  bool is_ipv6 = false;
};

Result<NameAndSlots> split_slots(std::string_view text) {
  NameAndSlots result;
  const std::size_t close = text.find(']');
  result.is_ipv6 = text.starts_with('[') && text.substr(0, close).find(':') != std::string_view::npos;
  if (result.is_ipv6 && close == std::string_view::npos) return refuse("the brackets do not match");
  // The name ends at the first colon outside of brackets.
  std::size_t colon = std::string_view::npos;
  std::size_t colons = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] != ':' || depth > 0) continue;
    if (colons++ == 0) colon = i;
  }
  if (colons > 1) {
    return refuse(
        "more than one colon: a host is written node1:SLOTS, an IPv6 address "
        "[2001:db8::1]:SLOTS; ports belong in a hostfile");
  }
  result.name = text.substr(0, colon);
  if (colon != std::string_view::npos) result.slots = text.substr(colon + 1);
  if (result.is_ipv6) {
    if (close + 1 != result.name.size()) return refuse("there is unexpected text after the IPv6 address");
    result.name = result.name.substr(1, close - 1);
  }
  return result;
}

// Splits at commas outside of brackets.
std::vector<std::string_view> split_entries(std::string_view text) {
  std::vector<std::string_view> entries;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] != ',' || depth > 0) continue;
    entries.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  entries.push_back(trim(text.substr(begin)));
  return entries;
}

constexpr std::string_view kBlanks = " \t";

// The words of a line; "slots = 4" is one word, as in Open MPI's hostfiles.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool glue = false;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    if (!words.empty() && (glue || word.starts_with('='))) {
      words.back() += word;
    } else {
      words.emplace_back(word);
    }
    glue = word.ends_with('=');
  }
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// LSF's form, hosts and their slots in turn: "node1 4 node2 8".
bool are_hosts_and_slots(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_slots = i % 2 == 1;
    if (is_digits(words[i]) != is_slots || words[i].find('=') != std::string::npos) return false;
  }
  return !words.empty() && words.size() % 2 == 0;
}

/// The word has no slots of its own.
Status add_host_with_slots(std::string_view word, std::string_view slots, std::string_view binding,
                           NodeList& nodes) {
  DDL_ASSIGN(entry, parse_host_entry(word, nodes.remaining()));
  if (entry.slots) return refuse("slots is given twice");
  AllocatedNode node;
  node.user = entry.user;
  node.unused_binding = binding;
  DDL_ASSIGN(count, parse_slots(slots, "slots"));
  node.slots = count;
  for (std::string& name : entry.names) {
    node.name = std::move(name);
    DDL_TRY(nodes.add(node));
  }
  return {};
}

Status add_hosts_and_slots(const std::vector<std::string>& words, NodeList& nodes) {
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    DDL_TRY(add_host_with_slots(words[i], words[i + 1], "", nodes));
  return {};
}

Error about(std::string_view entry, Error error) {
  return std::move(error).during(entry.empty() ? "an empty entry" : in_double_quotes(entry));
}

}  // namespace

Result<int> parse_slots(std::string_view text, std::string_view what) {
  const bool digits =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto number = digits ? parse_integer(text) : std::nullopt;
  if (!digits || (number && *number == 0)) {
    return refuse(std::string(what) + " must be a positive integer, found " + in_double_quotes(text));
  }
  if (!number || *number > kMaxSlots) {
    return refuse(std::string(what) + " must be at most " + std::to_string(kMaxSlots) + ", found " +
                  in_double_quotes(text));
  }
  return static_cast<int>(*number);
}

Result<HostEntry> parse_host_entry(std::string_view text, std::size_t max_names) {
  HostEntry entry;
  // The last @: "me@corp.example@node1" has a user with an @, as for ssh.
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    DDL_TRY(check_user_name(text.substr(0, at)));
    entry.user = std::string(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  DDL_ASSIGN(parts, split_slots(text));
  if (parts.slots) {
    DDL_ASSIGN(slots, parse_slots(*parts.slots, "slots"));
    entry.slots = slots;
  }
  if (parts.is_ipv6) {
    entry.names.emplace_back(parts.name);
  } else {
    DDL_ASSIGN(names, expand_brackets(parts.name, max_names));
    entry.names = std::move(names);
  }
  for (const std::string& name : entry.names) DDL_TRY(check_host_name(name));
  return entry;
}

Result<std::vector<AllocatedNode>> parse_host_list(std::string_view text) {
  NodeList nodes(NamedAgain::kRefused);
  for (const std::string_view word : split_entries(text)) {
    if (const auto words = words_of(word); are_hosts_and_slots(words)) {
      if (auto added = add_hosts_and_slots(words, nodes); !added)
        return fail(about(word, std::move(added.error())));
      continue;
    }
    auto entry = parse_host_entry(word, nodes.remaining());
    if (!entry) return fail(about(word, std::move(entry.error())));
    for (std::string& name : entry->names) {
      AllocatedNode node;
      node.name = std::move(name);
      node.slots = entry->slots;
      node.user = entry->user;
      if (auto added = nodes.add(std::move(node)); !added) return fail(about(word, std::move(added.error())));
    }
  }
  return std::move(nodes).take();
}

Result<std::vector<std::string>> parse_host_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view word : split_entries(text)) {
    auto entry = parse_host_entry(word, kMaxHosts - names.size());
    if (!entry) return fail(about(word, std::move(entry.error())));
    if (entry->user || entry->slots) {
      return refuse(in_double_quotes(word) +
                    ": only names of hosts are allowed here, without users and slots");
    }
    for (std::string& name : entry->names) names.push_back(std::move(name));
  }
  return names;
}

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

template <class T>
Status set_once(std::optional<T>& target, Result<T> value, std::string_view what) {
  if (!value) return fail(std::move(value.error()));
  if (target) return refuse(std::string(what) + " is given twice");
  target = std::move(*value);
  return {};
}

Result<int> parse_port(std::string_view text) {
  constexpr int kMaxPort = 65535;
  const auto number = is_digits(text) ? parse_integer(text) : std::nullopt;
  if (!number || *number < 1 || *number > kMaxPort) {
    return refuse("port must be a number from 1 to 65535, found " + in_double_quotes(text));
  }
  return static_cast<int>(*number);
}

Result<std::string> parse_user(std::string_view text) {
  DDL_TRY(check_user_name(text));
  return std::string(text);
}

/// Open MPI's names for the same; its mpirun 4.1.4 takes these.
bool is_slots(std::string_view key) { return key == "slots" || key == "cpu" || key == "count"; }
bool is_max_slots(std::string_view key) {
  for (const std::string_view before : {"max_", "max-"}) {
    if (key.starts_with(before)) return is_slots(key.substr(before.size()));
  }
  for (const std::string_view behind : {"_max", "-max"}) {
    if (key.ends_with(behind)) return is_slots(key.substr(0, key.size() - behind.size()));
  }
  return false;
}

/// A line of Grid Engine's pe_hostfile: host, slots, the instance of the queue, and a range of processors, "UNDEFINED"
/// where there is none. With a number as the last word and another host behind the @ it is LSF's: "node1 8 me@node2 4".
bool is_of_grid_engine(const std::vector<std::string>& words) {
  if (words.size() != 4 || !is_digits(words[1])) return false;
  if (words[2] == "<NULL>" || words[2].ends_with("@" + words[0])) return true;
  return words[2].find('@') != std::string::npos && !is_digits(words[3]);
}

Status read_word(std::string_view word, AllocatedNode& node) {
  if (is_digits(word)) return set_once(node.slots, parse_slots(word, "slots"), "slots");
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (equals != std::string_view::npos) {
    if (is_slots(key)) return set_once(node.slots, parse_slots(value, "slots"), "slots");
    if (is_max_slots(key)) return set_once(node.max_slots, parse_slots(value, "max_slots"), "max_slots");
    if (key == "port") return set_once(node.port, parse_port(value), key);
    if (key == "user" || key == "username") return set_once(node.user, parse_user(value), "user");
    if (key == "binding") {
      if (value.empty()) return refuse("binding= has no value");
      if (!node.unused_binding.empty()) return refuse("binding is given twice");
      node.unused_binding = value;
      return {};
    }
  }
  return refuse("only slots=N, max_slots=N, port=N and user=NAME may follow a host, found " +
                in_double_quotes(word));
}

Status read_line(std::string_view line, NodeList& nodes) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty()) return {};
  if (const std::size_t comma = words.front().find(','); comma != std::string::npos) {
    const std::size_t open = words.front().find('[');
    if (open == std::string::npos || comma < open) return refuse("a hostfile has one host on each line");
  }
  if (is_of_grid_engine(words)) {
    const bool has_cpus = words[3] != "UNDEFINED" && words[3] != "<NULL>";
    return add_host_with_slots(words[0], words[1], has_cpus ? words[3] : "", nodes);
  }
  if (words.size() > 2 && are_hosts_and_slots(words)) return add_hosts_and_slots(words, nodes);
  DDL_ASSIGN(entry, parse_host_entry(words.front(), nodes.remaining()));
  AllocatedNode node;
  node.slots = entry.slots;
  node.user = entry.user;
  for (std::size_t i = 1; i < words.size(); ++i) DDL_TRY(read_word(words[i], node));
  if (node.slots && node.max_slots && *node.max_slots < *node.slots) {
    return refuse("max_slots is " + std::to_string(*node.max_slots) + ", fewer than the " +
                  counted(*node.slots, "slot"));
  }
  // As for mpirun: so many at most are also as many as there are.
  if (!node.slots) node.slots = node.max_slots;
  for (std::string& name : entry.names) {
    node.name = std::move(name);
    DDL_TRY(nodes.add(node));
  }
  return {};
}

}  // namespace

Result<std::string_view> without_byte_order_mark(std::string_view text, std::string_view name) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return refuse(std::string(name) +
                  " is encoded in UTF-16, as some programs of Windows write; save it as UTF-8");
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

Result<std::vector<AllocatedNode>> parse_hostfile(std::string_view whole, std::string_view name) {
  DDL_ASSIGN(text, without_byte_order_mark(whole, name));
  NodeList nodes(NamedAgain::kIsSlot);
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto status = read_line(line.substr(0, line.find('#')), nodes); !status) {
      return fail(std::move(status.error()).during(std::string(name) + ":" + std::to_string(number)));
    }
  }
  auto all = std::move(nodes).take();
  if (all.empty()) return refuse(std::string(name) + " names no host");
  return all;
}

namespace {

Status add_slots(std::optional<int>& sum, std::optional<int> more, const std::string& name) {
  if (!sum) return {};
  if (*more > kMaxSlots - *sum) {
    return refuse(name + " has more than " + std::to_string(kMaxSlots) + " slots in all");
  }
  *sum += *more;
  return {};
}

}  // namespace

Status NodeList::add(AllocatedNode node) {
  if (remaining() == 0)
    return refuse("hosts are named more than " + std::to_string(kMaxTimesNamed) + " times");
  ++named_;
  const auto [entry, is_new] = index_.try_emplace(host_key(node.name), nodes_.size());
  if (is_new) {
    if (nodes_.size() == kMaxHosts) return refuse("more than " + std::to_string(kMaxHosts) + " hosts");
    nodes_.push_back(std::move(node));
    times_.push_back(1);
    return {};
  }
  AllocatedNode& known = nodes_[entry->second];
  const bool is_slot = named_again_ == NamedAgain::kIsSlot && !known.slots && !node.slots;
  if (!is_slot && (!known.slots || !node.slots)) {
    return refuse(node.name + " is named twice, but not each time with slots; name it once, as " + node.name +
                  ":2");
  }
  if (known.user != node.user) return refuse(node.name + " is named twice, with different users");
  if (known.port != node.port) return refuse(node.name + " is named twice, with different ports");
  if (known.max_slots.has_value() != node.max_slots.has_value()) {
    return refuse(node.name + " is named twice, but not each time with max_slots");
  }
  ++times_[entry->second];
  if (known.slots) DDL_TRY(add_slots(known.slots, node.slots, node.name));
  return add_slots(known.max_slots, node.max_slots, node.name);
}

std::vector<AllocatedNode> NodeList::take() && {
  bool times_are_slots = false;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    times_are_slots = times_are_slots || (!nodes_[i].slots && times_[i] > 1);
  for (std::size_t i = 0; times_are_slots && i < nodes_.size(); ++i) {
    if (!nodes_[i].slots) nodes_[i].slots = times_[i];
  }
  return std::move(nodes_);
}

}  // namespace ddl::launcher
