#include "runtime/src/bootstrap/needed_libraries.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace ddl::runtime {
namespace {

/// Items of one type that follow each other from a place in the file on, as far as the file goes.
template <class Item>
std::vector<Item> items_at(std::string_view file, std::uint64_t offset, std::uint64_t count) {
  if (offset > file.size()) return {};
  count = std::min<std::uint64_t>(count, (file.size() - offset) / sizeof(Item));
  std::vector<Item> items(count);
  if (count > 0) std::memcpy(items.data(), file.data() + offset, count * sizeof(Item));
  return items;
}

/// Where in the file the bytes lie that the loader maps to this address.
std::optional<std::uint64_t> offset_of(std::uint64_t address, const std::vector<Elf64_Phdr>& parts) {
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type == PT_LOAD && address >= part.p_vaddr && address - part.p_vaddr < part.p_filesz)
      return part.p_offset + (address - part.p_vaddr);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> needed_libraries(std::string_view elf) {
  const auto heads = items_at<Elf64_Ehdr>(elf, 0, 1);
  if (heads.empty() || std::memcmp(heads[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
  const Elf64_Ehdr& head = heads[0];
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr)) return {};
  const auto parts = items_at<Elf64_Phdr>(elf, head.e_phoff, head.e_phnum);

  const auto dynamic = std::find_if(parts.begin(), parts.end(),
                                    [](const Elf64_Phdr& part) { return part.p_type == PT_DYNAMIC; });
  if (dynamic == parts.end()) return {};
  std::vector<std::uint64_t> places;  // of the names, among all strings
  std::optional<std::uint64_t> strings;
  for (const auto& entry :
       items_at<Elf64_Dyn>(elf, dynamic->p_offset, dynamic->p_filesz / sizeof(Elf64_Dyn))) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) places.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr, parts);
  }
  if (!strings || *strings > elf.size()) return {};
  const std::string_view text = elf.substr(*strings);
  std::vector<std::string> names;
  for (const std::uint64_t place : places) {
    if (place >= text.size()) return {};
    const std::size_t end = text.find('\0', place);
    if (end == text.npos) return {};
    names.emplace_back(text.substr(place, end - place));
  }
  return names;
}

}  // namespace ddl::runtime
