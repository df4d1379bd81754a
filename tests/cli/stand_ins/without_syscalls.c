/* without_syscalls NAME[,NAME...] COMMAND...: runs the command with a filter under which these system calls fail with
 * EPERM, as in a container. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char* name;
  unsigned number;
} kCalls[] = {{"memfd_create", SYS_memfd_create},
              {"pidfd_open", SYS_pidfd_open},
              {"set_mempolicy", SYS_set_mempolicy},
              {"process_vm_readv", SYS_process_vm_readv},
              {"io_uring_setup", SYS_io_uring_setup},
#ifdef SYS_mkdir
              {"mkdir", SYS_mkdir},
#else
              {"mkdir", SYS_mkdirat},
#endif
              {"socket", SYS_socket}};
enum { kMaxNames = sizeof kCalls / sizeof kCalls[0] };

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  struct sock_filter code[2 + 2 * kMaxNames];
  unsigned short length = 0;
  code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (char* name = strtok(argv[1], ","); name != NULL; name = strtok(NULL, ",")) {
    size_t known = 0;
    while (known < kMaxNames && strcmp(kCalls[known].name, name) != 0) ++known;
    if (known == kMaxNames || length + 3 > 2 + 2 * kMaxNames) {
      fprintf(stderr, "without_syscalls: %s is not known here\n", name);
      return 2;
    }
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCalls[known].number, 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {length, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("without_syscalls: prctl");
    return 77;
  }
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return 2;
}
