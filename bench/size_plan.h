// Message sizes: how often each is called, as text for the rank programs, and as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::bench {

/// One message size and how often it is called. Of training steps the size is a bucket's.
struct SizePlan {
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;     ///< measured, at most
  std::uint64_t warm_ups = 0;  ///< before them, not measured
};

/// "4:2000:100,1024:2000:100" and back.
std::string plan_text(const std::vector<SizePlan>& plan);
Result<std::vector<SizePlan>> parse_plan(std::string_view text);

/// 4 B to 256 MiB, in steps of 4 or 16.
const std::vector<std::uint64_t>& default_sizes();

/// Enough calls of each size for a steady median, and little enough that a block takes seconds and not minutes. quick: a
/// few calls of each, and no size above 1 MiB.
std::vector<SizePlan> plan_of_sizes(const std::vector<std::uint64_t>& sizes, bool quick);

/// "4", "64K", "1M", "256MiB": a positive number of bytes below 2^40.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace ddl::bench
