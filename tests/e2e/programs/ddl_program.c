/* ddl_program sum|loop|named|work|save|idle|late|leave|vanish|crash|wait|wait_for_tensor|abort|abort_in_thread|stopped: a rank that uses
 * libddl.
 *   sum   averages and sums over all ranks, twice, with finalize between
 *   loop  averages in an endless loop; after a rank is killed each of the others prints the error and exits with 0
 *   named the same with named tensors; also prints "called back: STATUS" for each, when that fails
 *   work  averages in an endless loop; prints the error and exits with 8 when that fails, as most programs do
 *   save  the same, but waits for SIGTERM; prints "rank R saved" in its handler and exits with 0
 *   idle  prints "ready" after init and waits for a signal
 *   late  averages, and finalizes at the end of its standard input
 *   leave rank 1 finalizes after the first of two calls, and stays; the others print the error and exit with 0
 *   vanish  rank 1 exits with 0 after the first of two calls; the others exit with 8
 *   crash  rank 1 is killed by SIGKILL after the first of two calls, and the others exit with 8
 *   wait  rank 1 does not make the second call; the others print the error and exit with 0
 *   wait_for_tensor  the same with a named tensor; the ranks wait for ever
 *   abort the last rank aborts the job with 42; the others print the errors of two calls and exit with 8
 *   abort_in_thread  the same from another thread, while that rank is inside a call
 *   stopped  makes a second context while its parent is stopped; prints the error and exits with 1 */
#include <ddl/ddl.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { kCount = 100000 };
static float values[kCount];

static int failed(const char* call, ddl_status status) {
  if (status == DDL_OK) return 0;
  printf("%s: %s: %s\n", call, ddl_status_name(status), ddl_last_error());
  return 1;
}

static int sum(void) {
  for (int round = 0; round < 2; ++round) {
    ddl_context* context = NULL;
    if (failed("init", ddl_init(NULL, &context))) return 1;
    const int rank = ddl_rank(context), size = ddl_size(context);
    for (int i = 0; i < kCount; ++i) values[i] = (float)((rank + 1) * (i % 100));
    if (failed("allreduce", ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_SUM, NULL)))
      return 1;
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) wrong += values[i] != (float)(size * (size + 1) / 2 * (i % 100));
    printf("round %d: ddl rank %d of %d, local %d of %d, by %s: %d wrong sums\n", round, rank, size,
           ddl_local_rank(context), ddl_local_size(context), ddl_bootstrap_name(context), wrong);
    if (failed("finalize", ddl_finalize(context))) return 1;
    if (wrong != 0) return 1;
  }
  return 0;
}

static int loop(void) {
  ddl_context* context = NULL;
  signal(
      SIGTERM,
      SIG_IGN); /* ddlrun sends SIGTERM to the surviving ranks at the same time: they must print their error */
  if (failed("init", ddl_init(NULL, &context))) return 1;
  printf("ready pid%d=%d\n", ddl_rank(context), getpid());
  ddl_status status = DDL_OK;
  while (status == DDL_OK) {
    status = ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_AVERAGE, NULL);
  }
  failed("allreduce", status);
  if (failed("finalize", ddl_finalize(context))) return 1;
  return status == DDL_ERROR_PEER_LOST ? 0 : 1;
}

static void print_status(void* name, ddl_status status, const char* message) {
  (void)message;
  if (status != DDL_OK) printf("%s called back: %s\n", (const char*)name, ddl_status_name(status));
}

static int named(void) {
  static const char* const names[] = {"first", "second", "third"};
  ddl_context* context = NULL;
  signal(SIGTERM, SIG_IGN); /* as in loop */
  if (failed("init", ddl_init(NULL, &context))) return 1;
  printf("ready pid%d=%d\n", ddl_rank(context), getpid());
  ddl_status status = DDL_OK;
  while (status == DDL_OK) {
    ddl_handle* handles[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3 && status == DDL_OK; ++i) {
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.completed = print_status;
      options.argument = (void*)names[i];
      float* const part = values + i * (kCount / 3);
      status = ddl_allreduce_async(context, names[i], part, part, kCount / 3, DDL_FLOAT32, DDL_AVERAGE,
                                   &options, &handles[i]);
    }
    if (failed("allreduce_async", status)) return 1;
    status = ddl_wait_all(handles, 3);
  }
  failed("wait_all", status);
  if (failed("finalize", ddl_finalize(context))) return 1;
  return status == DDL_ERROR_PEER_LOST ? 0 : 1;
}

static int work(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  printf("ready pid%d=%d\n", ddl_rank(context), getpid());
  for (;;) {
    if (failed("allreduce", ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_AVERAGE, NULL)))
      _exit(8);
  }
}

static char saved[32];
static void save_and_exit(int signal) {
  (void)signal;
  _exit(write(STDOUT_FILENO, saved, strlen(saved)) < 0);
}

static int save(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  const int rank = ddl_rank(context);
  snprintf(saved, sizeof saved, "rank %d saved\n", rank);
  signal(SIGTERM, save_and_exit);
  ddl_status status = ddl_barrier(context, NULL);
  if (status == DDL_OK) printf("ready\n");
  while (status == DDL_OK)
    status = ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_AVERAGE, NULL);
  printf("rank %d was told: %s: %s\n", rank, ddl_status_name(status), ddl_last_error());
  for (;;) pause();
}

static int idle(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  if (failed("barrier", ddl_barrier(context, NULL))) return 1;
  printf("ready\n");
  fflush(stdout);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  int signal = 0;
  sigwait(&signals, &signal);
  return failed("finalize", ddl_finalize(context));
}

static int late(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  if (failed("allreduce", ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_SUM, NULL)))
    return 1;
  while (getchar() != EOF) {
  }
  return failed("finalize", ddl_finalize(context));
}

/* Rank 1 makes one call less than the others, which print the error of their call. */
static int skip_a_call(int leaves) {
  ddl_context* context = NULL;
  signal(SIGTERM, SIG_IGN); /* as in loop */
  if (failed("init", ddl_init(NULL, &context))) return 1;
  const int is_missing = ddl_rank(context) == 1;
  for (int call = 0; call < (is_missing ? 1 : 2); ++call) {
    const ddl_status status = ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_AVERAGE, NULL);
    if (failed("allreduce", status)) return call == 1 ? 0 : 1;
  }
  if (!is_missing) return 1;
  if (leaves) ddl_finalize(context);
  for (;;) pause();
}

static int vanish(int is_killed) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context)) || failed("barrier", ddl_barrier(context, NULL))) return 1;
  if (ddl_rank(context) == 1 && is_killed) raise(SIGKILL);
  if (ddl_rank(context) == 1) _exit(0);
  failed("barrier", ddl_barrier(context, NULL));
  _exit(8);
}

/* Rank 1 does not submit the second tensor, which the others wait for. */
static int skip_a_tensor(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  const int tensors = ddl_rank(context) == 1 ? 1 : 2;
  static const char* const names[] = {"first", "second"};
  for (int i = 0; i < tensors; ++i) {
    ddl_handle* handle = NULL;
    if (failed("allreduce_async", ddl_allreduce_async(context, names[i], values, values, kCount, DDL_FLOAT32,
                                                      DDL_AVERAGE, NULL, &handle)) ||
        failed("wait", ddl_wait(handle)))
      return 1;
  }
  for (;;) pause();
}

static void* call_abort(void* context) {
  ddl_abort(context, 42, "the loss is\nnot a number");
  return NULL;
}

static int abort_job(int in_thread) {
  ddl_context* context = NULL;
  signal(SIGTERM, SIG_IGN); /* as in loop */
  if (failed("init", ddl_init(NULL, &context))) return 1;
  ddl_status status = ddl_barrier(context, NULL);
  const int aborts = ddl_rank(context) == ddl_size(context) - 1;
  if (aborts && !in_thread) call_abort(context);
  pthread_t thread;
  if (aborts) pthread_create(&thread, NULL, call_abort, context);
  /* The last rank may have left the barrier, and aborted, before this one returns. */
  while (status == DDL_OK)
    status = ddl_allreduce(context, values, values, kCount, DDL_FLOAT32, DDL_AVERAGE, NULL);
  /* The call returns in no rank that aborts: this exit code would be the job's. */
  if (aborts) return 1;
  failed("call", status);
  failed("again", ddl_barrier(context, NULL));
  return 8;
}

/* Whether all threads of a process are stopped. Only its parent is notified of a stop, so this polls. */
static int is_stopped(pid_t process) {
  char path[300];
  snprintf(path, sizeof path, "/proc/%d/task", (int)process);
  DIR* tasks = opendir(path);
  if (tasks == NULL) return 0;
  int all = 1;
  for (const struct dirent* task = readdir(tasks); task != NULL && all; task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    char state = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)process, task->d_name);
    FILE* stat = fopen(path, "r");
    if (stat != NULL) {
      if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) state = 0;
      fclose(stat);
    }
    all = state == 'T';
  }
  closedir(tasks);
  return all;
}

static int stopped(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  if (failed("finalize", ddl_finalize(context))) return 1;
  const pid_t server = getppid();
  setenv("DDL_START_TIMEOUT_SECONDS", "0.01", 1);
  kill(server, SIGSTOP);
  while (!is_stopped(server)) sched_yield();
  const ddl_status status = ddl_init(NULL, &context);
  kill(server, SIGCONT);
  const int has_failed = failed("init", status);
  /* mpiexec forwards its SIGCONT to the ranks. If it arrives while LeakSanitizer stops the process at exit, that
   * hangs. */
  _exit(has_failed);
}

int main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(argv[1], "sum") == 0) return sum();
  if (strcmp(argv[1], "loop") == 0) return loop();
  if (strcmp(argv[1], "named") == 0) return named();
  if (strcmp(argv[1], "work") == 0) return work();
  if (strcmp(argv[1], "save") == 0) return save();
  if (strcmp(argv[1], "idle") == 0) return idle();
  if (strcmp(argv[1], "late") == 0) return late();
  if (strcmp(argv[1], "leave") == 0) return skip_a_call(1);
  if (strcmp(argv[1], "vanish") == 0) return vanish(0);
  if (strcmp(argv[1], "crash") == 0) return vanish(1);
  if (strcmp(argv[1], "wait") == 0) return skip_a_call(0);
  if (strcmp(argv[1], "wait_for_tensor") == 0) return skip_a_tensor();
  if (strcmp(argv[1], "abort") == 0) return abort_job(0);
  if (strcmp(argv[1], "abort_in_thread") == 0) return abort_job(1);
  if (strcmp(argv[1], "stopped") == 0) return stopped();
  return 2;
}
