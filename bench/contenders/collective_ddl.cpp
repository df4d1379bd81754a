// libddl, with private buffers.
#include "bench/contenders/ddl_collectives.h"

int main(int argc, char** argv) { return ddl::bench::run_ddl(argc, argv, /*in_shared_heap=*/false); }
