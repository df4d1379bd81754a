// What stands before a rank's line: "[3]<stdout>:", and the time at which it was written.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/output/output_chunk.h"

namespace ddl::launcher {

/// "[3]<stdout>:", as horovodrun has it.
std::string output_tag(int rank, OutputStream stream);

/// Formats Unix times in this process's time zone: "2026-03-29T02:00:00.123+01:00" (ISO 8601, RFC 3339). Remembers the
/// last one, because neighbouring lines share it. Not for several threads at once.
class TimeStampFormat {
 public:
  /// Reads TZ.
  TimeStampFormat();
  /// Valid until the next call.
  const std::string& text(std::int64_t time_ns);

 private:
  std::int64_t second_ = INT64_MIN;
  std::int64_t millisecond_ = -1;
  std::string text_;
};

}  // namespace ddl::launcher
