// --config-file: reads options from a YAML file, which may have been written for horovodrun.
#include <algorithm>

#include "base/text.h"
#include "cli/options/foreign_options.h"
#include "cli/options/given_options.h"
#include "cli/options/option_table.h"
#include "templates/profile/yaml.h"

namespace ddl::cli {

namespace {

using templates::YamlNode;
using NodeKind = YamlNode::Kind;

std::string with_dashes(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

const OptionEntry* find_key(const std::string& key) {
  for (const std::string& name : {key, with_dashes(key)}) {
    for (const char* dashes : {"--", "-"}) {
      if (const OptionEntry* entry = find_spelling(dashes + name)) return entry;
    }
  }
  return nullptr;
}

bool is_group(std::string_view key) {
  const auto keys = horovodrun_keys();
  return std::any_of(keys.begin(), keys.end(), [key](const GroupKey& one) { return one.group == key; });
}

const OptionEntry* find_in_group(std::string_view group, std::string_view key) {
  for (const GroupKey& one : horovodrun_keys()) {
    if (one.group == group && one.key == key) return find_spelling(one.spelling);
  }
  return nullptr;
}

/// Options whose value is a list separated by commas, or may be one.
bool has_commas(OptionId id) {
  return id == OptionId::kHosts || id == OptionId::kHostsExclude || id == OptionId::kNetworkInterfaces ||
         id == OptionId::kCooldown;
}

constexpr std::string_view kNoMap =
    "a colon with a space behind it makes a map: write node1:4, or NAME=VALUE for -x";

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view name) : name_(name) {}

  Status read(const YamlNode& root) {
    if (root.kind == NodeKind::kNull) return {};  // an empty file
    if (root.kind != NodeKind::kMap)
      return refuse_line(root.line, "the file is not a map", "write one \"option: value\" a line");
    for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
      DDL_TRY(read_pair(root.items[i], root.items[i + 1]));
    }
    return {};
  }
  GivenOptions take() { return std::move(given_); }

 private:
  std::string where(int line) const { return std::string(name_) + ":" + std::to_string(line); }

  Status refuse_line(int line, std::string sentence, std::string hint) const {
    return fail(Error(ErrorCode::kInvalidArgument, std::move(sentence), std::move(hint)).during(where(line)));
  }

  Status unknown_key(const YamlNode& key) const {
    const auto suggestion = suggest_option(with_dashes(key.text));
    return refuse_line(key.line, "unknown key " + shell_quote(key.text),
                       suggestion
                           ? "did you mean " + suggestion->substr(suggestion->find_first_not_of('-')) + "?"
                           : "a key is an option without its dashes; ddlrun --help all lists the options");
  }

  Status read_pair(const YamlNode& key, const YamlNode& value) {
    if (key.kind != NodeKind::kScalar)
      return refuse_line(key.line, "a key is not a string", "write \"option: value\"");
    const std::string group = with_dashes(key.text);
    if (group == "controller") return read_controller(value);
    if (is_group(group) && value.kind != NodeKind::kScalar) return read_group(key.text, value);
    const OptionEntry* entry = find_key(key.text);
    if (entry == nullptr) return unknown_key(key);
    if (entry->id == OptionId::kConfigFile) {
      return refuse_line(key.line, "a configuration file cannot name another",
                         "put all options into one file");
    }
    return read_option(*entry, key.text, key.line, value);
  }

  Status read_group(const std::string& typed, const YamlNode& value) {
    const std::string group = with_dashes(typed);
    if (value.kind == NodeKind::kNull) return {};  // a heading with nothing under it
    if (value.kind != NodeKind::kMap)
      return refuse_line(value.line, typed + " is a group of options", "indent its options below it");
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
      const YamlNode& key = value.items[i];
      const OptionEntry* entry =
          key.kind == NodeKind::kScalar ? find_in_group(group, with_dashes(key.text)) : nullptr;
      if (entry == nullptr) {
        return refuse_line(key.line, "unknown key " + shell_quote(key.text) + " in " + typed, keys_of(group));
      }
      const std::string name = key.text + " in " + typed;
      DDL_TRY(read_option(*entry, name, key.line, value.items[i + 1]));
    }
    return {};
  }

  static std::string keys_of(std::string_view group) {
    std::vector<std::string> keys;
    for (const GroupKey& one : horovodrun_keys()) {
      if (one.group == group) keys.emplace_back(one.key);
    }
    return "it has " + join(keys, ", ");
  }

  Status read_controller(const YamlNode& value) {
    std::string name = value.text;  // as horovodrun reads it
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const OptionEntry* entry = name == "gloo" || name == "mpi" ? find_spelling("--" + name) : nullptr;
    if (entry == nullptr) {
      return refuse_line(value.line, "controller is an option of horovodrun, with the value gloo or mpi",
                         "omit it");
    }
    if (entry->is_available()) return accept_flag(*entry, value.line);
    return read_unavailable(*entry, value.line, "controller: " + value.text);
  }

  Status read_unavailable(const OptionEntry& entry, int line, const std::string& name) {
    if (entry.id == OptionId::kWithoutEffect) {
      given_.without_effect.push_back({&entry, name, where(line)});
      return {};
    }
    return fail(unavailable(entry, name).during(where(line)));
  }

  /// name: as the key stands in the file.
  Status read_option(const OptionEntry& entry, const std::string& name, int line, const YamlNode& value) {
    if (!entry.takes_value()) return read_flag(entry, name, line, value);
    return entry.is_available() ? read_value(entry, line, value) : read_unavailable(entry, line, name);
  }

  Status accept_flag(const OptionEntry& entry, int line) {
    given_[entry.id].push_back({"", where(line)});
    return {};
  }

  Status read_flag(const OptionEntry& entry, const std::string& name, int line, const YamlNode& value) {
    const bool on = value.text == "true" || value.text == "True" || value.text == "TRUE";
    const bool off = value.text == "false" || value.text == "False" || value.text == "FALSE";
    if (value.kind != NodeKind::kScalar || (!on && !off)) {
      return refuse_line(line,
                         display_name(entry) + " is a flag; here it is true or false" +
                             (value.kind == NodeKind::kScalar ? ", found " + shell_quote(value.text) : ""),
                         "write true or false");
    }
    // "tag-output: false" is --no-tag-output. Without such an option, false is the default.
    const OptionEntry* target = &entry;
    if (off) {
      target = find_spelling("--no-" + std::string(canonical_spelling(entry).substr(2)));
      if (target == nullptr || !target->is_available()) return {};
    }
    return target->is_available() ? accept_flag(*target, line) : read_unavailable(*target, line, name);
  }

  Status read_value(const OptionEntry& entry, int line, const YamlNode& value) {
    if (value.kind == NodeKind::kScalar) {
      given_[entry.id].push_back({value.text, where(line)});
      return {};
    }
    const std::string name = display_name(entry);
    const bool is_repeatable = (entry.rules & kRepeatable) != 0;
    const bool may_be_list = is_repeatable || has_commas(entry.id);
    if (value.kind == NodeKind::kNull) return refuse_line(line, name + " needs a value", usage_line(entry));
    if (value.kind != NodeKind::kSequence)
      return refuse_line(
          line, name + (may_be_list ? " takes one value or a list of them" : " takes one value"),
          value.kind == NodeKind::kMap && may_be_list ? std::string(kNoMap) : usage_line(entry));
    if (!may_be_list) return refuse_line(line, name + " takes one value", usage_line(entry));
    std::vector<std::string> parts;
    for (const YamlNode& item : value.items) {
      if (item.kind != NodeKind::kScalar)
        return refuse_line(item.line, name + " takes a list of strings",
                           item.kind == NodeKind::kMap ? std::string(kNoMap) : usage_line(entry));
      if (is_repeatable) given_[entry.id].push_back({item.text, where(item.line)});
      parts.push_back(item.text);
    }
    if (has_commas(entry.id)) given_[entry.id].push_back({join(parts, ","), where(line)});
    return {};
  }

  std::string_view name_;
  GivenOptions given_;
};

}  // namespace

Result<GivenOptions> read_config(std::string_view text, std::string_view name) {
  const auto root = templates::parse_yaml(text, name);
  if (!root) return fail(root.error().with_hint("write one \"option: value\" a line"));
  ConfigReader reader(name);
  DDL_TRY(reader.read(*root));
  return reader.take();
}

}  // namespace ddl::cli
