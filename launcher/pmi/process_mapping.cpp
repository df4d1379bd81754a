#include "launcher/pmi/process_mapping.h"

#include <cstddef>

namespace ddl::launcher {
namespace {

struct Block {
  std::size_t first_node = 0;
  std::size_t nodes = 0;
  std::size_t ranks_of_each = 0;
};

}  // namespace

std::string process_mapping(const std::vector<std::vector<int>>& node_ranks) {
  std::vector<std::size_t> node_of;
  for (std::size_t node = 0; node < node_ranks.size(); ++node) {
    for (const int rank : node_ranks[node]) {
      const auto index = static_cast<std::size_t>(rank);
      if (node_of.size() <= index) node_of.resize(index + 1);
      node_of[index] = node;
    }
  }
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < node_of.size();) {
    std::size_t end = rank;
    while (end < node_of.size() && node_of[end] == node_of[rank]) ++end;
    const std::size_t count = end - rank;
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

}  // namespace ddl::launcher
