// How a row of cores is split.
#pragma once

#include <vector>

namespace ddl::affinity {

/// Neighbours in a row.
struct Share {
  int first = 0;
  int count = 0;
  bool operator==(const Share&) const = default;
};

/// Part number index of count things split evenly into parts: it begins at ceil(index * count / parts). Some are empty
/// if there are fewer things than parts.
constexpr Share share_of(int count, int index, int parts) {
  const auto cut = [&](int at) {
    return static_cast<int>((static_cast<long long>(at) * count + parts - 1) / parts);
  };
  return {cut(index), cut(index + 1) - cut(index)};
}

/// The things of a share.
template <class T>
std::vector<T> take(const std::vector<T>& row, Share share) {
  return {row.begin() + share.first, row.begin() + share.first + share.count};
}

}  // namespace ddl::affinity
