// The reader of timelines with arbitrary text, which it gets in pieces, and the page of what it has read.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fuzz/require.h"
#include "report/timeline_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto timeline = ddl::report::read_timeline([&](std::span<char> buffer) -> ddl::Result<std::size_t> {
    const std::size_t piece = std::min<std::size_t>({text.size(), buffer.size(), 100});
    std::copy_n(text.begin(), piece, buffer.begin());
    text.remove_prefix(piece);
    return piece;
  });
  if (!timeline) {
    require_refusal(timeline.error());
    return 0;
  }
  require(timeline->count() > 0);
  for (const auto& rank : timeline->ranks) {
    for (const auto& track : rank.tracks) {
      std::int64_t before = 0;
      for (const auto& event : track.events) {
        require(event.begin >= before && event.duration >= 0 && event.end() >= event.begin);
        require(event.waited >= 0 && event.waited <= event.duration);
        require(event.title < timeline->titles.size() && event.details < timeline->details.size());
        before = event.begin;
      }
    }
  }
  const auto page = ddl::report::timeline_view(*timeline, "fuzz");
  require(page.has_value() && page->find("</html>") != std::string::npos);
  return 0;
}
