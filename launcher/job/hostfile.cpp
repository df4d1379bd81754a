#include "launcher/job/hostfile.h"

#include <algorithm>

#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"
#include "launcher/job/node_list.h"

namespace ddl::launcher {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlanks = " \t";

// The words of a line; "slots = 4" is one word, as Open MPI's hostfiles have it.
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

template <class T>
Status set_once(std::optional<T>& target, Result<T> value, std::string_view what) {
  if (!value) return fail(std::move(value.error()));
  if (target) return refuse(std::string(what) + " is given twice");
  target = std::move(*value);
  return {};
}

Result<int> parse_port(std::string_view text) {
  constexpr int kLargestPort = 65535;
  const auto number = is_digits(text) ? parse_integer(text) : std::nullopt;
  if (!number || *number < 1 || *number > kLargestPort) {
    return refuse("port must be a number from 1 to 65535, found " + quoted(text));
  }
  return static_cast<int>(*number);
}

Result<std::string> parse_user(std::string_view text) {
  DDL_TRY(check_user_name(text));
  return std::string(text);
}

Status read_word(std::string_view word, AllocatedNode& node) {
  if (is_digits(word)) return set_once(node.slots, parse_slots(word, "slots"), "slots");
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (equals != std::string_view::npos) {
    if (key == "slots") return set_once(node.slots, parse_slots(value, key), key);
    if (key == "max_slots" || key == "max-slots") {
      return set_once(node.max_slots, parse_slots(value, "max_slots"), "max_slots");
    }
    if (key == "port") return set_once(node.port, parse_port(value), key);
    if (key == "user") return set_once(node.user, parse_user(value), key);
  }
  return refuse("behind a host stand slots=N, max_slots=N, port=N and user=NAME, found " + quoted(word));
}

Status read_line(std::string_view line, NodeList& nodes) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty()) return {};
  if (const std::size_t comma = words.front().find(','); comma != std::string::npos) {
    const std::size_t open = words.front().find('[');
    if (open == std::string::npos || comma < open) return refuse("a hostfile has one host a line");
  }
  auto entry = parse_host_entry(words.front(), nodes.room());
  if (!entry) return fail(std::move(entry.error()));
  AllocatedNode node;
  node.slots = entry->slots;
  node.user = entry->user;
  for (std::size_t i = 1; i < words.size(); ++i) DDL_TRY(read_word(words[i], node));
  if (node.slots && node.max_slots && *node.max_slots < *node.slots) {
    return refuse("max_slots is " + std::to_string(*node.max_slots) + ", fewer than the " +
                  counted(*node.slots, "slot"));
  }
  for (std::string& name : entry->names) {
    node.name = std::move(name);
    DDL_TRY(nodes.add(node));
  }
  return {};
}

}  // namespace

Result<std::vector<AllocatedNode>> parse_hostfile(std::string_view text, std::string_view name) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
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

}  // namespace ddl::launcher
