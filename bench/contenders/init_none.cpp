// A program that initialises nothing.
#include "bench/idle_rank.h"

int main(int argc, char** argv) { return ddl::bench::hold_if_asked(argc, argv) ? 0 : 1; }
