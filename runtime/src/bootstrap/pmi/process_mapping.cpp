#include "runtime/src/bootstrap/pmi/process_mapping.h"

#include <array>
#include <map>
#include <optional>
#include <string>

#include "base/text.h"

namespace ddl::runtime {
namespace {

struct Block {
  int first_node = 0;
  int nodes = 0;
  int ranks_of_each = 0;
};

constexpr int kMost = 1 << 24;

/// "0,2,4".
std::optional<Block> parse_block(std::string_view text) {
  const auto parts = split(text, ',');
  if (parts.size() != 3) return std::nullopt;
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = parse_integer(trim(parts[i]));
    if (!number || *number < (i == 0 ? 0 : 1) || *number > kMost) return std::nullopt;
    numbers[i] = static_cast<int>(*number);
  }
  return Block{numbers[0], numbers[1], numbers[2]};
}

/// What is in the brackets behind "(vector"; nothing if the text is something else.
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

Result<std::vector<std::vector<int>>> parse_process_mapping(std::string_view text, int size) {
  const std::vector<Block> blocks = parse_blocks(trim(text));
  if (blocks.empty()) {
    return fail(ErrorCode::kProtocol,
                "the launcher's PMI_process_mapping is not understood: " + std::string(text.substr(0, 100)));
  }
  std::map<int, std::vector<int>> ranks_of_node;
  int rank = 0;
  while (rank < size) {
    for (const Block& block : blocks) {
      for (int node = 0; node < block.nodes && rank < size; ++node) {
        for (int i = 0; i < block.ranks_of_each && rank < size; ++i)
          ranks_of_node[block.first_node + node].push_back(rank++);
      }
    }
  }
  std::vector<std::vector<int>> groups;
  for (auto& [node, ranks] : ranks_of_node) groups.push_back(std::move(ranks));
  return groups;
}

}  // namespace ddl::runtime
