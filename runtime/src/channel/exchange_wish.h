// How the ranks of one host are to meet, as the user says it.
#pragma once

#include <optional>
#include <string_view>

namespace ddl::runtime {

struct ExchangeWish {
  enum class Way { kAuto, kFlat, kGroups };
  Way way = Way::kAuto;
  /// Of kGroups: so many ranks in a row are a group; 0 = those that share a cache, a node or a package.
  int width = 0;

  /// "flat", "groups", or the width as a number from 2 to 1024.
  static std::optional<ExchangeWish> parse(std::string_view text);
};

}  // namespace ddl::runtime
