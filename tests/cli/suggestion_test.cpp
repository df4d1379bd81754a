#include "cli/options/option_table.h"

#include "support/catch.h"

using ddl::cli::suggest_option;

TEST_CASE("a similar option is suggested in its exact spelling, a dissimilar one is not") {
  CHECK(suggest_option("--verbos") == "--verbose");
  CHECK(suggest_option("-verbose") == "--verbose");
  CHECK(suggest_option("--oversubscirbe") == "--oversubscribe");
  CHECK(suggest_option("--num_proc=4") == "--num-proc");
  CHECK(suggest_option("--checkbuild") == "--check-build");
  CHECK(suggest_option("--out") == "--output-filename");
  CHECK(suggest_option("-np4") == "-np");
  // Short names with different first letters are different names.
  CHECK_FALSE(suggest_option("-genv"));
  CHECK_FALSE(suggest_option("--frobnicate"));
  CHECK_FALSE(suggest_option("-q"));
  CHECK_FALSE(suggest_option("--"));
  CHECK_FALSE(suggest_option(""));
  CHECK_FALSE(suggest_option(std::string(100'000, 'v')));
}
