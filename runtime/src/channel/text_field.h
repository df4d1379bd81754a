// Text with a fixed place in a message or in shared memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace ddl::runtime {

/// Plain data. Longer texts are cut; whatever arrived, reading never leaves the field.
template <std::size_t kBytes>
struct TextField {
  std::array<char, kBytes> text{};

  static TextField of(std::string_view value) {
    TextField field;
    std::memcpy(field.text.data(), value.data(), std::min(value.size(), kBytes - 1));
    return field;
  }
  std::string str() const { return std::string(text.data(), ::strnlen(text.data(), kBytes)); }
};

/// A host's name.
using HostField = TextField<64>;

}  // namespace ddl::runtime
