#include "launcher/output/line_formatter.h"

#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include "support/catch.h"

using ddl::launcher::output_tag;
using ddl::launcher::OutputStream;
using ddl::launcher::TimeStampFormat;

namespace {

/// Sets TZ for a test and restores it. Values in the POSIX format need no time zone database.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    ::setenv("TZ", zone, 1);
  }
  ~TimeZone() {
    if (before_) {
      ::setenv("TZ", before_->c_str(), 1);
    } else {
      ::unsetenv("TZ");
    }
    ::tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::optional<std::string> before_;
};

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("tags have the format of horovodrun") {
  CHECK(output_tag(0, OutputStream::kStdout) == "[0]<stdout>:");
  CHECK(output_tag(123, OutputStream::kStderr) == "[123]<stderr>:");
}

TEST_CASE("time stamps are ISO 8601 with milliseconds and the offset of the time zone") {
  const TimeZone zone("UTC0");
  TimeStampFormat format;
  CHECK(format.text(0) == "1970-01-01T00:00:00.000+00:00");
  CHECK(format.text(1'709'210'096 * kSecond + 7'999'999) == "2024-02-29T12:34:56.007+00:00");
  CHECK(format.text(1'709'210'096 * kSecond + 999'999'999) == "2024-02-29T12:34:56.999+00:00");
  CHECK(format.text(1'709'210'097 * kSecond) == "2024-02-29T12:34:57.000+00:00");
  CHECK(format.text(-1) == "1969-12-31T23:59:59.999+00:00");
}

TEST_CASE("the offset follows daylight saving time") {
  const TimeZone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  TimeStampFormat format;
  CHECK(format.text(1'711'846'799 * kSecond) == "2024-03-31T01:59:59.000+01:00");
  CHECK(format.text(1'711'846'800 * kSecond) == "2024-03-31T03:00:00.000+02:00");
}

TEST_CASE("negative offsets and offsets of half an hour") {
  {
    const TimeZone zone("NST3:30");
    CHECK(TimeStampFormat().text(0) == "1969-12-31T20:30:00.000-03:30");
  }
  const TimeZone zone("<+0545>-5:45");
  CHECK(TimeStampFormat().text(500'000'000) == "1970-01-01T05:45:00.500+05:45");
}
