/* flood MEBIBYTES: a rank that writes this amount to standard output as fast as possible, in lines of 128 bytes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  static char block[65536];
  memset(block, 'x', sizeof block);
  for (size_t end = 127; end < sizeof block; end += 128) block[end] = '\n';
  const size_t total = (size_t)atol(argv[1]) << 20;
  for (size_t done = 0; done < total;) {
    const size_t at = done % sizeof block;
    const ssize_t written = write(STDOUT_FILENO, block + at, sizeof block - at);
    if (written < 0) return 1;
    done += (size_t)written;
  }
  return 0;
}
