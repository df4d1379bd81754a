// PMI-1 with arbitrary bytes: lines, with different splits into reads, and their contents; and a launcher's process
// mapping.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/pmi_line.h"

namespace {

using ddl::net::PmiLine;

std::vector<std::string> lines_of(std::string_view stream, std::size_t read_size) {
  std::vector<std::string> lines;
  ddl::net::PmiLineReader reader;
  for (std::size_t at = 0; at < stream.size(); at += read_size) {
    reader.append(stream.substr(at, read_size));
    for (;;) {
      const auto line = reader.next();
      if (!line || !*line) break;
      lines.push_back(**line);
    }
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kPiece = 3;
  const auto lines = lines_of(text, size + 1);
  if (lines_of(text, kPiece) != lines) std::abort();
  for (const std::string& line : lines) {
    const auto parsed = PmiLine::parse(line);
    if (!parsed) continue;
    // A parsed line is unchanged after it is written and parsed again.
    std::string again = parsed->text();
    again.pop_back();
    const auto second = PmiLine::parse(again);
    if (!second || *second != *parsed) std::abort();
  }
  constexpr int kSize = 100;
  if (const auto groups = ddl::net::parse_process_mapping(text, kSize)) {
    std::size_t ranks = 0;
    for (const auto& group : *groups) ranks += group.size();
    if (ranks != kSize) std::abort();
  }
  return 0;
}
