/* pmix_client identity|modex|subset|publish|event|abort|silent: a rank that calls PMIx itself. Prints its results,
 * one "name=value" a line; exits with 1 and names the call if anything fails. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;

static void check(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS) return;
  fprintf(stderr, "rank %u: %s: %s\n", me.rank, call, PMIx_Error_string(status));
  exit(1);
}

/* A number of any of the widths that the standard allows for these keys. */
static unsigned long number(pmix_rank_t rank, const char* key) {
  pmix_proc_t whom = me;
  whom.rank = rank;
  pmix_value_t* value = NULL;
  check(key, PMIx_Get(&whom, key, NULL, 0, &value));
  unsigned long result = 0;
  switch (value->type) {
    case PMIX_UINT16: result = value->data.uint16; break;
    case PMIX_UINT32: result = value->data.uint32; break;
    case PMIX_PROC_RANK: result = value->data.rank; break;
    default: check(key, PMIX_ERR_TYPE_MISMATCH);
  }
  PMIX_VALUE_RELEASE(value);
  return result;
}

static void text(pmix_rank_t rank, const char* key, char* out, size_t size) {
  pmix_proc_t whom = me;
  whom.rank = rank;
  pmix_value_t* value = NULL;
  check(key, PMIx_Get(&whom, key, NULL, 0, &value));
  if (value->type != PMIX_STRING) check(key, PMIX_ERR_TYPE_MISMATCH);
  snprintf(out, size, "%s", value->data.string);
  PMIX_VALUE_RELEASE(value);
}

static void fence(int collects) {
  pmix_proc_t all = me;
  all.rank = PMIX_RANK_WILDCARD;
  pmix_info_t collect;
  bool yes = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  check("PMIx_Fence", PMIx_Fence(&all, 1, &collect, collects ? 1 : 0));
}

static void identity(void) {
  char line[256];
  printf("rank=%u\n", me.rank);
  printf("job_size=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE));
  printf("univ_size=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE));
  printf("max_procs=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_MAX_PROCS));
  printf("num_apps=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_JOB_NUM_APPS));
  printf("num_nodes=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_NUM_NODES));
  printf("local_size=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE));
  printf("node_size=%lu\n", number(PMIX_RANK_WILDCARD, PMIX_NODE_SIZE));
  text(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, line, sizeof line);
  printf("local_peers=%s\n", line);
  printf("local_rank=%lu\n", number(me.rank, PMIX_LOCAL_RANK));
  printf("node_rank=%lu\n", number(me.rank, PMIX_NODE_RANK));
  printf("global_rank=%lu\n", number(me.rank, PMIX_GLOBAL_RANK));
  printf("app_rank=%lu\n", number(me.rank, PMIX_APP_RANK));
  printf("node_id=%lu\n", number(me.rank, PMIX_NODEID));
  text(me.rank, PMIX_HOSTNAME, line, sizeof line);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  printf("hostname_is_right=%d\n", strcmp(line, host) == 0);
}

/* Every rank reads every rank's data: first collected by the fence, then fetched on demand. */
static void modex(void) {
  const unsigned long size = number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  char value_text[128], expected[128];
  for (int collects = 1; collects >= 0; --collects) {
    const char* key = collects ? "collected" : "on-demand";
    pmix_value_t value;
    snprintf(value_text, sizeof value_text, "%s data of rank %u", key, me.rank);
    PMIX_VALUE_LOAD(&value, value_text, PMIX_STRING);
    check("PMIx_Put", PMIx_Put(PMIX_GLOBAL, key, &value));
    PMIX_VALUE_DESTRUCT(&value);
    check("PMIx_Commit", PMIx_Commit());
    fence(collects);
    for (unsigned long rank = 0; rank < size; ++rank) {
      text((pmix_rank_t)rank, key, value_text, sizeof value_text);
      snprintf(expected, sizeof expected, "%s data of rank %lu", key, rank);
      if (strcmp(value_text, expected) != 0) {
        fprintf(stderr, "rank %u got \"%s\" for rank %lu\n", me.rank, value_text, rank);
        exit(1);
      }
    }
  }
  printf("modex=%lu\n", size);
}

/* Even and odd ranks fence in two groups, the even ones twice, and then all ranks fence; after the fence of its group
 * a rank has the group's data. */
static void subset(void) {
  const unsigned long size = number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  pmix_proc_t* group = calloc(size, sizeof *group);
  size_t members = 0;
  for (unsigned long rank = me.rank % 2; rank < size; rank += 2, ++members)
    PMIX_LOAD_PROCID(&group[members], me.nspace, (pmix_rank_t)rank);
  pmix_value_t value;
  pmix_rank_t mine = me.rank;
  PMIX_VALUE_LOAD(&value, &mine, PMIX_PROC_RANK);
  check("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "subset", &value));
  check("PMIx_Commit", PMIx_Commit());
  pmix_info_t collect;
  bool yes = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  for (int time = 0; time < (me.rank % 2 == 0 ? 2 : 1); ++time)
    check("PMIx_Fence", PMIx_Fence(group, members, &collect, 1));
  unsigned long sum = 0;
  for (size_t i = 0; i < members; ++i) sum += number(group[i].rank, "subset");
  free(group);
  fence(1);
  printf("subset=%lu\n", sum);
}

static int event_pipe[2];

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t* source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t* results, size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void* context) {
  (void)id, (void)status, (void)results, (void)nresults;
  char line[128] = "";
  for (size_t i = 0; i < ninfo; ++i) {
    if (strcmp(info[i].key, "words") == 0)
      snprintf(line, sizeof line, "event=%s from rank %u\n", info[i].value.data.string, source->rank);
  }
  if (write(event_pipe[1], line, strlen(line)) < 0) exit(1);
  if (done != NULL) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, context);
}

/* Rank 0 sends an event; every other rank prints the event that it receives. */
static void event(void) {
  pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;
  if (pipe(event_pipe) != 0) exit(1);
  if (me.rank != 0) {
    const pmix_status_t id = PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    if (id < 0) check("PMIx_Register_event_handler", id);
  }
  fence(0);
  if (me.rank == 0) {
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, "words", "it is time", PMIX_STRING);
    check("PMIx_Notify_event", PMIx_Notify_event(code, &me, PMIX_RANGE_NAMESPACE, &info, 1, NULL, NULL));
    PMIX_INFO_DESTRUCT(&info);
  } else {
    char line[128];
    const ssize_t got = read(event_pipe[0], line, sizeof line);
    if (got <= 0 || write(STDOUT_FILENO, line, (size_t)got) != got) exit(1);
  }
  fence(0);
}

static pmix_status_t look_up(const char* key, int waits, char* out, size_t size) {
  pmix_pdata_t data;
  PMIX_PDATA_CONSTRUCT(&data);
  PMIX_LOAD_KEY(data.key, key);
  pmix_info_t wait;
  int all = 0;
  PMIX_INFO_LOAD(&wait, PMIX_WAIT, &all, PMIX_INT);
  const pmix_status_t status = PMIx_Lookup(&data, 1, &wait, waits ? 1 : 0);
  if (status == PMIX_SUCCESS) {
    if (data.value.type != PMIX_STRING) check("PMIx_Lookup", PMIX_ERR_TYPE_MISMATCH);
    snprintf(out, size, "%s from rank %u", data.value.data.string, data.proc.rank);
  }
  PMIX_PDATA_DESTRUCT(&data);
  return status;
}

/* All wait for the data that rank 0 publishes; after it has unpublished them, no rank finds them. */
static void publish(void) {
  char found[128] = "";
  if (me.rank == 0) {
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, "port-name", "here I am", PMIX_STRING);
    check("PMIx_Publish", PMIx_Publish(&info, 1));
    PMIX_INFO_DESTRUCT(&info);
  }
  check("PMIx_Lookup", look_up("port-name", 1, found, sizeof found));
  printf("found=%s\n", found);
  fence(0);
  if (me.rank == 0) {
    char* keys[] = {(char*)"port-name", NULL};
    check("PMIx_Unpublish", PMIx_Unpublish(keys, NULL, 0));
  }
  fence(0);
  printf("after_unpublish=%s\n", PMIx_Error_string(look_up("port-name", 0, found, sizeof found)));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  check("PMIx_Init", PMIx_Init(&me, NULL, 0));
  if (strcmp(argv[1], "identity") == 0) {
    identity();
  } else if (strcmp(argv[1], "modex") == 0) {
    modex();
  } else if (strcmp(argv[1], "subset") == 0) {
    subset();
  } else if (strcmp(argv[1], "event") == 0) {
    event();
  } else if (strcmp(argv[1], "publish") == 0) {
    publish();
  } else if (strcmp(argv[1], "abort") == 0) {
    fence(0);
    if (me.rank == 1) PMIx_Abort(42, "the loss is not a number", NULL, 0);
    for (;;) pause();
  } else if (strcmp(argv[1], "silent") == 0) {
    _exit(0); /* exits without PMIx_Finalize, as a program that crashes after its work */
  } else {
    return 2;
  }
  check("PMIx_Finalize", PMIx_Finalize(NULL, 0));
  return 0;
}
