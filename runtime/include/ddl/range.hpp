// Intervals of a program in its timeline, in C++17.
#ifndef DDL_RANGE_HPP
#define DDL_RANGE_HPP

#include <cstdint>
#include <utility>

#include "ddl/ddl.h"

namespace ddl {

/// An interval of the calling thread, with a name: begins with this object and ends with it, which is not later than
/// the context. Errors are ignored, as the program does not depend on it. Context::range() makes it.
class Range {
 public:
  Range(ddl_context* context, const char* name) : context_(context) {
    (void)ddl_range_begin(context, name, &range_);
  }
  ~Range() { (void)ddl_range_end(context_, range_); }
  Range(Range&& other) noexcept : context_(other.context_), range_(std::exchange(other.range_, 0)) {}
  Range& operator=(Range&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(range_, other.range_);
    return *this;
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  ddl_context* context_;
  std::uint64_t range_ = 0;
};

}  // namespace ddl

#endif  // DDL_RANGE_HPP
