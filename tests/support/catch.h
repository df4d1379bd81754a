// Catch2 of the distribution: v2 (Debian 12) or v3 (Debian 13), under the names of v2.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <cstddef>
#include <string>

#include <catch2/catch_all.hpp>

namespace Catch {
namespace Matchers {
// In v3 Contains() is about ranges, for which these overloads are closer to text than its templates.
inline auto Contains(const std::string& text) { return ContainsSubstring(text); }
inline auto Contains(std::string& text) { return ContainsSubstring(text); }
inline auto Contains(std::string&& text) { return ContainsSubstring(text); }
inline auto Contains(const char* text) { return ContainsSubstring(text); }
template <std::size_t kSize>
auto Contains(const char (&text)[kSize]) {
  return ContainsSubstring(text);
}
template <std::size_t kSize>
auto Contains(char (&text)[kSize]) {
  return ContainsSubstring(text);
}
}  // namespace Matchers
using Matchers::Contains;
using Matchers::EndsWith;
using Matchers::StartsWith;
using Matchers::VectorContains;
}  // namespace Catch
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
