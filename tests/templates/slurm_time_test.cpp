#include "templates/cluster/slurm_values.h"

#include "support/catch.h"

using ddl::templates::slurm_minutes;
using ddl::templates::slurm_time_of;

TEST_CASE("Slurm's ways to write a time") {
  CHECK(slurm_minutes("90") == 90);
  CHECK(slurm_minutes("90:00") == 90);
  CHECK(slurm_minutes("01:30:00") == 90);
  CHECK(slurm_minutes("1-2") == 26 * 60);
  CHECK(slurm_minutes("1-02:03") == 26 * 60 + 3);
  CHECK(slurm_minutes("1-02:03:00") == 26 * 60 + 3);
  CHECK(slurm_minutes("0") == 0);
  CHECK(slurm_minutes("00:00:00") == 0);
}

TEST_CASE("seconds are rounded up to a minute") {
  CHECK(slurm_minutes("0:01") == 1);
  CHECK(slurm_minutes("5:30") == 6);
  CHECK(slurm_minutes("1:00:01") == 61);
  CHECK(slurm_minutes("1-00:00:59") == 24 * 60 + 1);
  CHECK(slurm_minutes("0:120") == 2);
}

TEST_CASE("text that is not a time of Slurm") {
  for (const char* text : {"", "-", "-1", "1-", "-1-2", ":", "1:", ":30", "1:2:3:4", "1-2:3:4:5", "1h", "1.5",
                           " 5", "+5", "UNLIMITED", "1--2", "1-2-3", "99999999999", "9999999999-00"})
    CHECK_FALSE(slurm_minutes(text));
}

TEST_CASE("a time with units becomes one of Slurm") {
  CHECK(slurm_time_of("2h") == "2:00:00");
  CHECK(slurm_time_of("90m") == "1:30:00");
  CHECK(slurm_time_of("45min") == "0:45:00");
  CHECK(slurm_time_of("1d12h") == "1-12:00:00");
  CHECK(slurm_time_of("36hours") == "1-12:00:00");
  CHECK(slurm_time_of("1h5m7s") == "1:05:07");
  for (const char* text :
       {"", "2", "h", "2h30", "2w", "2 h", "-2h", "1.5h", "2H", "99999999999h", "9999999999d"})
    CHECK_FALSE(slurm_time_of(text));
}
