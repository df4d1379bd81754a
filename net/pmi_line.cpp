#include "net/pmi_line.h"

#include <algorithm>
#include <array>
#include <map>

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

namespace {

/// Consecutive ranks: those of the first node, of the node after it, and so on.
struct Block {
  int first_node = 0;
  int nodes = 0;
  int ranks_of_each = 0;
};

constexpr int kMaxNumber = 1 << 24;

/// "0,2,4".
std::optional<Block> parse_block(std::string_view text) {
  const auto parts = split(text, ',');
  if (parts.size() != 3) return std::nullopt;
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = parse_integer(trim(parts[i]));
    if (!number || *number < (i == 0 ? 0 : 1) || *number > kMaxNumber) return std::nullopt;
    numbers[i] = static_cast<int>(*number);
  }
  return Block{numbers[0], numbers[1], numbers[2]};
}

/// The blocks after "(vector"; none if the text is invalid.
std::vector<Block> parse_blocks(std::string_view text) {
  constexpr std::string_view kBeginning = "(vector";
  if (!text.starts_with(kBeginning) || !text.ends_with(')')) return {};
  text = text.substr(kBeginning.size(), text.size() - kBeginning.size() - 1);
  std::vector<Block> blocks;
  while (!text.empty()) {
    const std::size_t close = text.find(')');
    if (!text.starts_with(",(") || close == std::string_view::npos) return {};
    const auto block = parse_block(text.substr(2, close - 2));
    if (!block) return {};
    blocks.push_back(*block);
    text.remove_prefix(close + 1);
  }
  return blocks;
}

}  // namespace

std::string process_mapping(const std::vector<std::vector<int>>& node_ranks) {
  std::vector<int> node_of;
  for (std::size_t node = 0; node < node_ranks.size(); ++node) {
    for (const int rank : node_ranks[node]) {
      const auto index = static_cast<std::size_t>(rank);
      if (node_of.size() <= index) node_of.resize(index + 1);
      node_of[index] = static_cast<int>(node);
    }
  }
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < node_of.size();) {
    std::size_t end = rank;
    while (end < node_of.size() && node_of[end] == node_of[rank]) ++end;
    const auto count = static_cast<int>(end - rank);
    if (!blocks.empty() && blocks.back().ranks_of_each == count &&
        blocks.back().first_node + blocks.back().nodes == node_of[rank]) {
      ++blocks.back().nodes;
    } else {
      blocks.push_back({node_of[rank], 1, count});
    }
    rank = end;
  }
  std::string text = "(vector";
  for (const Block& block : blocks) {
    text += ",(" + std::to_string(block.first_node) + "," + std::to_string(block.nodes) + "," +
            std::to_string(block.ranks_of_each) + ")";
  }
  return text + ")";
}

Result<std::vector<std::vector<int>>> parse_process_mapping(std::string_view text, int num_ranks) {
  const std::vector<Block> blocks = parse_blocks(trim(text));
  if (blocks.empty()) {
    return fail(ErrorCode::kProtocol,
                "the launcher's PMI_process_mapping is not understood: " + std::string(text.substr(0, 100)));
  }
  std::map<int, std::vector<int>> ranks_of_node;
  int rank = 0;
  while (rank < num_ranks) {
    for (const Block& block : blocks) {
      for (int node = 0; node < block.nodes && rank < num_ranks; ++node) {
        for (int i = 0; i < block.ranks_of_each && rank < num_ranks; ++i)
          ranks_of_node[block.first_node + node].push_back(rank++);
      }
    }
  }
  std::vector<std::vector<int>> groups;
  for (auto& [node, ranks] : ranks_of_node) groups.push_back(std::move(ranks));
  return groups;
}

}  // namespace ddl::net
