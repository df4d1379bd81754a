#include "launcher/job/host_list.h"

#include <algorithm>

#include "base/text.h"
#include "launcher/job/bracket_range.h"
#include "launcher/job/host_name.h"
#include "launcher/job/node_list.h"

namespace ddl::launcher {
namespace {

// The host's name and what stands behind its colon.
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
  // Where the name ends: no colon of an IPv6 address, and none in brackets.
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
        "[2001:db8::1]:SLOTS; ports belong into a hostfile");
  }
  result.name = text.substr(0, colon);
  if (colon != std::string_view::npos) result.slots = text.substr(colon + 1);
  if (result.is_ipv6) {
    if (close + 1 != result.name.size()) return refuse("there is something behind the IPv6 address");
    result.name = result.name.substr(1, close - 1);
  }
  return result;
}

// Cuts at commas that stand in no brackets.
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

Error about(std::string_view entry, Error error) {
  return std::move(error).during(entry.empty() ? "an empty entry" : quoted(entry));
}

}  // namespace

Result<int> parse_slots(std::string_view text, std::string_view what) {
  const bool digits =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto number = digits ? parse_integer(text) : std::nullopt;
  if (!digits || (number && *number == 0)) {
    return refuse(std::string(what) + " must be a positive integer, found " + quoted(text));
  }
  if (!number || *number > kMaxSlots) {
    return refuse(std::string(what) + " must be at most " + std::to_string(kMaxSlots) + ", found " +
                  quoted(text));
  }
  return static_cast<int>(*number);
}

Result<HostEntry> parse_host_entry(std::string_view text, std::size_t most) {
  HostEntry entry;
  // The last one: "me@corp.example@node1" is a user with an @, as ssh has it.
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    DDL_TRY(check_user_name(text.substr(0, at)));
    entry.user = std::string(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  const auto parts = split_slots(text);
  if (!parts) return fail(parts.error());
  if (parts->slots) {
    const auto slots = parse_slots(*parts->slots, "slots");
    if (!slots) return fail(slots.error());
    entry.slots = *slots;
  }
  if (parts->is_ipv6) {
    entry.names.emplace_back(parts->name);
  } else {
    auto names = expand_brackets(parts->name, most);
    if (!names) return fail(std::move(names.error()));
    entry.names = std::move(*names);
  }
  for (const std::string& name : entry.names) DDL_TRY(check_host_name(name));
  return entry;
}

Result<std::vector<AllocatedNode>> parse_host_list(std::string_view text) {
  NodeList nodes(NamedAgain::kRefused);
  for (const std::string_view word : split_entries(text)) {
    auto entry = parse_host_entry(word, nodes.room());
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
      return refuse(quoted(word) + ": only the names of hosts stand here, without users and slots");
    }
    for (std::string& name : entry->names) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace ddl::launcher
