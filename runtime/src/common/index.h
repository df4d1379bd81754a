// Ranks, hosts and members are numbers of type int, as in MPI; containers count by std::size_t.
#pragma once

#include <cstddef>

namespace ddl::runtime {

/// The element with this number, which is 0 or more.
template <class Container>
constexpr decltype(auto) nth(Container&& container, int index) {
  return container[static_cast<std::size_t>(index)];
}

/// The number of elements.
constexpr int int_size(const auto& container) { return static_cast<int>(container.size()); }

/// The bytes of so many things of this size: of those before an element, if number is its index.
constexpr std::size_t times(int number, std::size_t bytes) {
  return static_cast<std::size_t>(number) * bytes;
}

}  // namespace ddl::runtime
