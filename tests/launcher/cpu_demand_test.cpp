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

TEST_CASE("the part of the time in which threads wait for a CPU is read from /proc/pressure/cpu") {
  CHECK(parse_cpu_pressure("some avg10=76.37 avg60=70.15 avg300=47.95 total=255205538\nfull avg10=0.00") ==
        76.37);
  CHECK(parse_cpu_pressure("some avg10=0.00") == 0);
  CHECK(parse_cpu_pressure("some avg10=x avg60=1") == std::nullopt);
  CHECK(parse_cpu_pressure("full avg10=0.00") == std::nullopt);
  CHECK(parse_cpu_pressure("") == std::nullopt);
}
