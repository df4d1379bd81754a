/* A rank of an elastic job: counts steps with the others until there is a file "stop", and prints who it is in each
 * generation. After a planned change no step is made again. Arguments: "once" does not join again; "early" exits with 0
 * after a step, as rank 1, because it gets SIGTERM, without having finished; "exits7" does with 7, and "fails" before
 * its first step; "waits" makes steps only while there is a file "go"; "abort" aborts the job in generation 1; "stop2" stops in generation 2, after a step; "shrinks"
 * when there are fewer ranks than in the generation before; "die" kills rank 1 in
 * generation 0, and stops in the next; "save_badly" fails as rank 0 when the job is drained; "never" makes no steps;
 * "hang1" keeps the others waiting as rank 1 of generation 1, and "spin1" does, computing; "slow" pauses long enough after each for a signal to
 * come; "open" has a tensor on its way, as rank 1, when the ranks check; "resets" has a generation for each step, and prints what the process uses in two of them. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ddl/ddl.h"

static const char* mode = "";
static int64_t step;

static int is(const char* name) { return strcmp(mode, name) == 0; }

static void pause_a_moment(void) {
  struct timespec moment = {0, is("slow") ? 700000000 : 1000000};
  while (nanosleep(&moment, &moment) != 0) {
  }
}

static void exit_well(int signal) {
  (void)signal;
  _exit(0);
}

static void print_usage(ddl_context* context) {
  long pages = 0, resident = 0, descriptors = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file != NULL && fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  DIR* folder = opendir("/proc/self/fd");
  while (folder != NULL && readdir(folder) != NULL) ++descriptors;
  if (folder != NULL) closedir(folder);
  printf("usage of rank %d: %ld kB, %ld descriptors\n", ddl_rank(context),
         resident * (sysconf(_SC_PAGESIZE) / 1024), descriptors);
  fflush(stdout);
}

static int32_t last_size, earlier_size; /* of this generation, and of the one before */

/* All ranks count their own number: their sum is known. */
static ddl_status make_step(ddl_context* context, int32_t* change, int32_t* stops) {
  const int generation = ddl_elastic_generation(context);
  const int is_last = (strncmp(mode, "stop", 4) == 0 && generation == mode[4] - '0') ||
                      (is("die") && generation == 1) || (is("shrinks") && last_size < earlier_size);
  const int32_t size = ddl_size(context), own[2] = {ddl_rank(context), is_last || access("stop", F_OK) == 0};
  int32_t all[2] = {0, 0};
  const ddl_status status = ddl_allreduce(context, own, all, 2, DDL_INT32, DDL_SUM, NULL);
  if (status != DDL_OK) return status;
  if (all[0] != size * (size - 1) / 2) {
    fprintf(stderr, "a wrong sum, %d\n", all[0]);
    _exit(3);
  }
  if (++step == 1) {
    printf("the first step is made\n");
    fflush(stdout);
  }
  *stops = all[1] > 0;
  return ddl_elastic_check(context, change);
}

/* On its own, rank 1 cannot complete it. */
static void submit_a_tensor(ddl_context* context) {
  static int32_t value = 1;
  ddl_handle* handle = NULL;
  if (ddl_rank(context) == 1)
    ddl_allreduce_async(context, "gradient", &value, &value, 1, DDL_INT32, DDL_SUM, NULL, &handle);
}

static ddl_status work(ddl_context* context, uint64_t* reason) {
  const uint64_t joined = *reason;
  *reason = DDL_ELASTIC_FIRST;
  int64_t agreed = 0;
  ddl_status status = ddl_allreduce(context, &step, &agreed, 1, DDL_INT64, DDL_MAX, NULL);
  if (status != DDL_OK) return status;
  if (joined == DDL_ELASTIC_CHANGED && step != agreed) {
    fprintf(stderr, "ranks change at steps %lld and %lld\n", (long long)step, (long long)agreed);
    _exit(3);
  }
  step = agreed;
  printf("generation %d: rank %d of %d, local %d of %d, pid %d, at step %d\n",
         ddl_elastic_generation(context), ddl_rank(context), ddl_size(context), ddl_local_rank(context),
         ddl_local_size(context), (int)getpid(), step > 0);
  fflush(stdout);
  earlier_size = last_size;
  last_size = ddl_size(context);
  if (is("abort") && ddl_elastic_generation(context) == 1) ddl_abort(context, 5, "no data");
  volatile int spins = strncmp(mode, "spin", 4) == 0 && ddl_rank(context) == 1 &&
                       ddl_elastic_generation(context) == mode[4] - '0';
  while (spins) {
  }
  while (is("never") || (strncmp(mode, "hang", 4) == 0 && ddl_rank(context) == 1 &&
                         ddl_elastic_generation(context) == mode[4] - '0'))
    pause();
  if (is("open")) submit_a_tensor(context);
  if (is("fails") && ddl_rank(context) == 1) _exit(7);
  for (;;) {
    int32_t change = DDL_ELASTIC_STAYS, stops = 0;
    while (is("waits") && access("go", F_OK) != 0) pause_a_moment();
    status = make_step(context, &change, &stops);
    if (status != DDL_OK || stops) return status;
    if (is("resets")) {
      const int generation = ddl_elastic_generation(context), last = 200;
      if (generation == 20 || generation == last) print_usage(context);
      if (generation < last) *reason = DDL_ELASTIC_CHANGED;
      return DDL_OK;
    }
    if (change == DDL_ELASTIC_DRAINS) {
      printf("drained at step %d\n", step > 0);
      fflush(stdout);
      if (is("save_badly") && ddl_rank(context) == 0) _exit(9);
      ddl_finalize(context);
      _exit(DDL_ELASTIC_EXIT_DRAINED);
    }
    if (change == DDL_ELASTIC_CHANGES) {
      *reason = DDL_ELASTIC_CHANGED;
      return DDL_OK;
    }
    if (is("die") && ddl_rank(context) == 1) raise(SIGKILL);
    if (is("exits7") && ddl_rank(context) == 1) _exit(7);
    if (is("early") && ddl_rank(context) == 1) {
      signal(SIGTERM, exit_well);
      raise(SIGTERM);
    }
    pause_a_moment();
  }
}

int main(int argc, char** argv) {
  if (argc > 1) mode = argv[1];
  const char* const generation = getenv("DDL_GENERATION");
  if (is("waits") && generation != NULL && strcmp(generation, "0") != 0) {
    printf("joins later: pid %d\n", (int)getpid());
    fflush(stdout);
  }
  ddl_elastic_join_options options = DDL_ELASTIC_JOIN_OPTIONS_INIT;
  for (;;) {
    ddl_context* context = NULL;
    options.commits = (uint64_t)step;
    if (ddl_elastic_join(&options, &context) != DDL_OK) {
      printf("join: %s\n", ddl_last_error());
      return 1;
    }
    const ddl_status status = work(context, &options.reason);
    if (status != DDL_OK) {
      printf("lost: %s: %s\n", ddl_status_name(status), ddl_last_error());
      fflush(stdout);
      if (is("once") || is("open")) return 1;
      options.reason = DDL_ELASTIC_LOST;
    }
    const int is_done = options.reason == DDL_ELASTIC_FIRST;
    if (is_done) ddl_elastic_finished(context);
    ddl_finalize(context);
    if (!is_done) continue;
    printf("done\n");
    return 0;
  }
}
