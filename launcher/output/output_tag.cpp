#include "launcher/output/output_tag.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace ddl::launcher {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::size_t kMillisecondsAt = 20;  // "2026-03-29T02:00:00." comes before them

/// "2026-03-29T02:00:00.000+01:00".
std::string whole_second(std::int64_t second) {
  const auto time = static_cast<std::time_t>(second);
  std::tm local{};
  ::localtime_r(&time, &local);
  const long offset_minutes = std::labs(local.tm_gmtoff) / 60;
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02dT%02d:%02d:%02d.000%c%02ld:%02ld", local.tm_year + 1900,
                local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                local.tm_gmtoff < 0 ? '-' : '+', offset_minutes / 60, offset_minutes % 60);
  return buffer;
}

}  // namespace

std::string output_tag(int rank, OutputStream stream) {
  return "[" + std::to_string(rank) + (stream == OutputStream::kStdout ? "]<stdout>:" : "]<stderr>:");
}

TimeStampFormat::TimeStampFormat() { ::tzset(); }

const std::string& TimeStampFormat::text(std::int64_t time_ns) {
  std::int64_t second = time_ns / kNanosecondsPerSecond;
  std::int64_t nanoseconds = time_ns % kNanosecondsPerSecond;
  if (nanoseconds < 0) {
    nanoseconds += kNanosecondsPerSecond;
    --second;
  }
  const std::int64_t millisecond = nanoseconds / 1'000'000;
  if (second == second_ && millisecond == millisecond_) return text_;
  if (second != second_) text_ = whole_second(second);
  second_ = second;
  millisecond_ = millisecond;
  text_[kMillisecondsAt] = static_cast<char>('0' + millisecond / 100);
  text_[kMillisecondsAt + 1] = static_cast<char>('0' + millisecond / 10 % 10);
  text_[kMillisecondsAt + 2] = static_cast<char>('0' + millisecond % 10);
  return text_;
}

}  // namespace ddl::launcher
