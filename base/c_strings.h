// Texts as the C library's calls that start programs want them.
#pragma once

#include <string>
#include <vector>

namespace ddl {

/// Pointers into the texts, which must outlive them unchanged, and a null pointer at the end.
inline std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}
/// Of texts that end with the statement the pointers would lead into freed memory.
std::vector<char*> c_strings(const std::vector<std::string>&& texts) = delete;

}  // namespace ddl
