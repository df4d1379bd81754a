// ddl_init() and ddl_finalize(), nothing in between.
#include <cstdio>

#include "bench/idle_rank.h"
#include "ddl/ddl.h"

int main(int argc, char** argv) {
  ddl_context* context = nullptr;
  if (ddl_init(nullptr, &context) != DDL_OK) {
    std::fprintf(stderr, "%s\n", ddl_last_error());
    return 1;
  }
  if (ddl_size(context) < 2) {
    std::fprintf(stderr, "libddl sees a world of one\n");
    return 1;
  }
  const bool held_well = ddl::bench::hold_if_asked(argc, argv);
  return ddl_finalize(context) == DDL_OK && held_well ? 0 : 1;
}
