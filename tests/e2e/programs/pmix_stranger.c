/* pmix_stranger UID: calls PMIx_Init over a socket that belongs to the user UID, as the kernel sees it, while its
 * credential names the user of this process: that is what another user sends who claims to be this one. Needs root.
 * Prints "init=" and the status, 0 for success. The environment must be that of a rank. */
#define _GNU_SOURCE
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static uid_t owner;

/* What libpmix calls in place of the C library's. */
__attribute__((visibility("default"))) int socket(int domain, int type, int protocol) {
  const int before = setfsuid(owner);
  const int fd = (int)syscall(SYS_socket, domain, type, protocol);
  setfsuid((uid_t)before);
  return fd;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  owner = (uid_t)strtoul(argv[1], NULL, 10);
  pmix_proc_t me;
  printf("init=%d\n", (int)PMIx_Init(&me, NULL, 0));
  return 0;
}
