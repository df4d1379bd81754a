/* memory_eater MEBIBYTES: a rank that allocates memory and writes to it, up to this amount. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fprintf(stderr, "reading the data set\n");
  for (long mebibyte = 0; mebibyte < atol(argv[1]); ++mebibyte) {
    char* memory = malloc(1 << 20);
    if (memory == NULL) return 3;
    memset(memory, 1, 1 << 20);
  }
  return 0;
}
