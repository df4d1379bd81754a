#include "net/pmi_line.h"

#include <algorithm>

#include "base/text.h"

namespace ddl::net {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 10;

tl::unexpected<Error> no_pmi(std::string_view line) {
  constexpr std::size_t kShown = 60;
  return fail(ErrorCode::kProtocol,
              "this is not a line of PMI-1: \"" + std::string(line.substr(0, kShown)) + "\"");
}

}  // namespace

std::string_view PmiLine::operator[](std::string_view name) const {
  const auto found =
      std::find_if(words.begin(), words.end(), [name](const auto& word) { return word.first == name; });
  return found == words.end() ? std::string_view() : found->second;
}

std::string PmiLine::text() const {
  std::string text = "cmd=" + command;
  for (const auto& [name, value] : words) text += " " + name + "=" + value;
  return text + "\n";
}

Result<PmiLine> PmiLine::parse(std::string_view line) {
  PmiLine parsed;
  std::string* last = nullptr;
  for (const std::string_view word : split(trim(line), ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos && last != nullptr) {
      *last += " " + std::string(word);  // of a message for people
      continue;
    }
    if (equals == std::string_view::npos || equals == 0) return no_pmi(line);
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (parsed.command.empty()) {
      if ((name != "cmd" && name != "mcmd") || value.empty()) return no_pmi(line);
      parsed.command = value;
    } else {
      parsed.words.emplace_back(name, value);
      last = &parsed.words.back().second;
    }
  }
  if (parsed.command.empty()) return no_pmi(line);
  return parsed;
}

Result<std::optional<std::string>> PmiLineReader::next() {
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (buffer_.size() > kMaxLineBytes)
      return fail(
          ErrorCode::kProtocol,
          "PMI-1: " + counted(static_cast<std::int64_t>(buffer_.size()), "byte") + " without an end of line");
    return std::optional<std::string>();
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return std::optional(std::move(line));
}

}  // namespace ddl::net
