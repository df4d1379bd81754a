#include "launcher/protocol/heartbeat.h"

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("the number of threads that want a CPU is read from /proc/loadavg") {
  CHECK(parse_runnable("0.20 0.18 0.12 3/412 11206\n") == 3);
  CHECK(parse_runnable("98.01 50.10 20.00 1100/3000 99999\n") == 1100);
  CHECK(parse_runnable("") == std::nullopt);
  CHECK(parse_runnable("0.20 0.18 0.12") == std::nullopt);
  CHECK(parse_runnable("0.20 0.18 0.12 x/y 1") == std::nullopt);
}
