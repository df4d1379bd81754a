#include "runtime/src/collective/parts.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"

namespace ddl::runtime {

Part CallBuffers::part_at(std::uint64_t first, std::uint64_t count) const {
  if (request_.parts.empty()) return OneBuffer(request_).range(first, count);
  const std::span<const Part> parts = request_.parts;
  while (first < begin_) begin_ -= parts[--found_].count;
  while (found_ < parts.size() && first - begin_ >= parts[found_].count) begin_ += parts[found_++].count;
  DDL_CHECK(found_ < parts.size(), "element " + std::to_string(first) + " of " + std::to_string(begin_));
  const Part& part = parts[found_];
  const std::uint64_t before = first - begin_;
  const std::size_t offset = before * request_.element_size;
  return {part.send + offset, part.recv + offset, std::min(count, part.count - before)};
}

Part CallBuffers::contiguous(std::uint64_t first, std::uint64_t count) const {
  if (count == 0) return {};
  const Part part = part_at(first, count);
  return part.count == count ? part : Part{};
}

}  // namespace ddl::runtime
