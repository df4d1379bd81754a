#include "launcher/output/output_stream.h"

#include "support/catch.h"

using ddl::launcher::LineSplitter;
using ddl::launcher::output_line_limit;
using ddl::launcher::output_refund_step;
using ddl::launcher::output_window;
using ddl::launcher::OutputCredit;

TEST_CASE("windows of all streams together stay within 16 MiB up to 2,048 ranks") {
  for (const int ranks : {1, 2, 3, 4, 8, 31, 32, 33, 64, 1000, 2048}) {
    CHECK(output_window(ranks) * 2 * static_cast<std::size_t>(ranks) <= std::size_t{16} << 20);
  }
  CHECK(output_window(1) == 256 * 1024);
  CHECK(output_window(32) == 256 * 1024);
  CHECK(output_window(64) == 128 * 1024);
  CHECK(output_window(100'000) == 4096);
  CHECK(output_window(0) == output_window(1));
}

TEST_CASE("the bytes that both ends hold back are always less than the window") {
  for (int ranks = 1; ranks <= 8192; ranks *= 2) {
    const std::size_t window = output_window(ranks);
    CHECK((output_line_limit(window) - 1) + (output_refund_step(window) - 1) < window);
    CHECK(output_line_limit(window) <= LineSplitter::kMaxLine);
    CHECK(output_line_limit(window) >= 2048);
  }
}

TEST_CASE("credit is spent by reading and returned by refunds") {
  OutputCredit credit(100);
  CHECK(credit.may_read() == 100);
  credit.spend(60);
  CHECK(credit.may_read() == 40);
  credit.spend(40);
  CHECK(credit.may_read() == 0);
  CHECK(credit.refund(30));
  CHECK(credit.may_read() == 30);
  CHECK(credit.under_way() == 70);
  CHECK_FALSE(credit.refund(71));
  CHECK(credit.under_way() == 70);
  CHECK(credit.refund(70));
  CHECK(credit.may_read() == 100);

  // The bytes that were still in the pipe at the rank's end are read without credit.
  credit.spend(250);
  CHECK(credit.may_read() == 0);
  CHECK(credit.refund(100));
  CHECK(credit.may_read() == 0);
  CHECK(credit.refund(100));
  CHECK(credit.may_read() == 50);
}
